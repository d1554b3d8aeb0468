"""Doubts about a cell or a run: one home for codes, limits, verdicts and hints."""

from harness.validity.registry import (
    FAMILIES,
    RULES,
    blame,
    cause_of,
    decisive,
    eases,
    judge,
    spoiled,
    unchecked,
)
from harness.validity.rule import LONGEST_AGAIN_S, Evidence, Rule, Violation
