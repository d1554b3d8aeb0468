"""Whether cells may be compared: the conditions of each, and what makes them unequal."""

from harness.conditions.cell_conditions import conditions
from harness.conditions.keys import Key, Measured, Relation, relation
from harness.conditions.settings import Settings, classified, in_words, settings, words_of
from harness.conditions.stated import with_manifest
from harness.conditions.table import TABLE
from harness.conditions.unequal import unequal
