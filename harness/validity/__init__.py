"""Doubts about a cell or a run: one home for codes, limits, verdicts and hints."""

from harness.validity.registry import FAMILIES, RULES, blame, decisive, eases, judge, unchecked
from harness.validity.rule import LONGEST_AGAIN_S, Cause, Evidence, Rule, Violation
