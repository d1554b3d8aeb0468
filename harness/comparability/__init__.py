"""Whether cells may be compared: under which conditions each was measured, and what makes them unequal."""

from harness.comparability.conditions import conditions
from harness.comparability.keys import Key, Measured, Relation, relation
from harness.comparability.settings import Settings, classified, settings
from harness.comparability.stated import with_manifest
from harness.comparability.table import TABLE
from harness.comparability.unequal import unequal

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
