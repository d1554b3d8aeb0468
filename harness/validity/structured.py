"""Structured output, by shape: an engine may keep to one and not to another."""

from collections.abc import Iterator
from functools import partial

from harness.metrics.answer_check import TRUNCATED
from harness.metrics.quality import FAILED, REFUSED
from harness.model import Counts, IssueCode
from harness.model.numbers import percent_apart
from harness.validity.rule import Evidence, Rule, Violation

# Share of valid answers: below the first some of a schema is not enforced, below the second nothing is.
ENFORCED, IGNORED = 0.98, 0.5
CUT = 0.5  # share of answers that the token limit ended


def _shapes(cell: Evidence) -> Iterator[tuple[str, Counts]]:
    """Counts per shape without cut answers and refusals."""
    for shape, counts in (cell.answers.checks.get("structured", {}) if cell.answers else {}).items():
        if counts["constrained"]:
            yield shape, counts


def _valid(cell: Evidence) -> Iterator[tuple[float, Violation]]:
    for shape, counts in _shapes(cell):
        rate = counts["rate"]
        if rate is not None and rate < ENFORCED:
            share = percent_apart(rate, IGNORED, ENFORCED)
            yield rate, Violation(f"{share}% of the whole answers are valid ({shape})")


@partial(
    Rule,
    code=IssueCode.STRUCTURED_IGNORED,
    measures=f"valid answers among the whole ones, where fewer than {IGNORED:.0%} are",
    limit=f"{ENFORCED:.0%}",
    hint="this engine accepts the constraint and ignores it: `bench probe` shows its answers",
    cause="work",
)
def _ignored(cell: Evidence) -> Iterator[Violation]:
    return (violation for rate, violation in _valid(cell) if rate < IGNORED)


@partial(
    Rule,
    code=IssueCode.STRUCTURED_INVALID,
    measures="valid answers among the whole ones",
    limit=f"{ENFORCED:.0%}",
    hint="this engine enforces the constraint in part: see what its answers break",
    cause="work",
)
def _invalid(cell: Evidence) -> Iterator[Violation]:
    return (violation for rate, violation in _valid(cell) if rate >= IGNORED)


@partial(
    Rule,
    code=IssueCode.STRUCTURED_CUT,
    measures="answers that end at the token limit",
    limit=f"{CUT:.0%}",
    hint="answers without a shape have no end: see `bench probe`; or raise --output-tokens",
    cause="work",
)
def _cut(cell: Evidence) -> Iterator[Violation]:
    for shape, counts in _shapes(cell):
        cut = counts.get(TRUNCATED) or 0
        answers = (counts["asked"] or 0) - sum(counts.get(key) or 0 for key in (REFUSED, FAILED))
        if cut > CUT * answers:
            yield Violation(f"{cut} of {answers} answers end at the token limit ({shape})")


RULES = (_ignored, _invalid, _cut)
