"""Whether cells may be compared: under which conditions each was measured, and what makes them unequal."""

from harness.fairness.conditions import conditions
from harness.fairness.keys import Key, Measured, Relation, relation
from harness.fairness.settings import Settings, classified, settings
from harness.fairness.stated import with_manifest
from harness.fairness.table import TABLE
from harness.fairness.unequal import unequal

__all__ = [
    "TABLE",
    "Key",
    "Measured",
    "Relation",
    "Settings",
    "classified",
    "conditions",
    "relation",
    "settings",
    "unequal",
    "with_manifest",
]
