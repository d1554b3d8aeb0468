"""Turns figures of several runs into verdicts and rank lines. Pure; docs/verdict-rules.md defines them."""

from harness.verdicts.comparison import compare
from harness.verdicts.rules import Rules, rules_of
