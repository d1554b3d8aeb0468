"""What may be wrong with a cell or a run: one home for codes, limits, verdicts and what to do."""

from harness.validity.registry import FAMILIES, RULES, blame, eases, judge
from harness.validity.rule import Cause, Evidence, Found, Rule

__all__ = ["FAMILIES", "RULES", "Cause", "Evidence", "Found", "Rule", "blame", "eases", "judge"]
