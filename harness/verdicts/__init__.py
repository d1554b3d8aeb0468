"""Figures of several runs to verdicts and rank lines. Pure; definitions are in docs/verdict-rules.md."""

from harness.verdicts.comparison import compare
from harness.verdicts.rules import Rules, rules_of

__all__ = ["Rules", "compare", "rules_of"]
