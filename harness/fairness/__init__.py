"""Whether cells may be compared: under which conditions each was measured, and what makes them unequal."""

from harness.fairness.conditions import conditions
from harness.fairness.unequal import unequal

__all__ = ["conditions", "unequal"]
