"""Conservation: figures of a cell that contradict each other describe something else than was measured."""

import math
from collections.abc import Iterator
from functools import partial

from harness.errors import page_address
from harness.metrics.conservation import hint
from harness.model import IssueCode
from harness.model.numbers import digits_apart, fixed, short
from harness.validity.rule import Evidence, Rule, Violation

BROKEN_TIMES, BROKEN_SHARE = 3.0, 0.1  # of the tolerance of a law, and of what it expects


@partial(
    Rule,
    code=IssueCode.DOES_NOT_ADD_UP,
    measures=f"each law ({page_address('metrics', 'conservation-laws')}): the reason names it",
    limit=f"its tolerance; INVALID beyond {BROKEN_TIMES:g} of them and {BROKEN_SHARE:.0%}",
    verdicts=("SUSPECT", "INVALID"),
    hint="measure the cell again; the reason says whether other clients may have used the engine",
    cause="client",
    eases=True,
)
def _broken(cell: Evidence) -> Iterator[Violation]:
    for law in cell.laws:
        measured, expected, tolerance = law.measured, law.expected, law.tolerance
        if law.holds is not False or measured is None or expected is None or tolerance is None:
            continue
        broken = max(BROKEN_TIMES * tolerance, BROKEN_SHARE * abs(expected))
        found, wanted, allowed = _apart(measured, expected, tolerance)
        yield Violation(
            f"{law.law}: {found}",
            f"{wanted} ± {allowed}",
            hint(law, cell.facts),
            "INVALID" if abs(measured - expected) > broken else "SUSPECT",
        )


def _apart(measured: float, expected: float, tolerance: float) -> tuple[str, str, str]:
    """Both sides end at the second digit of the tolerance, or where they read as farther apart than it;
    whole where there is none, since that is of counts."""
    if not tolerance:
        return fixed(measured, 0), fixed(expected, 0), "0"
    digits = digits_apart(abs(measured - expected), tolerance, least=2, shown=short)
    decimals = max(digits - 1 - math.floor(math.log10(tolerance)), 0)
    return fixed(measured, decimals), fixed(expected, decimals), short(tolerance, digits)


RULES = (_broken,)
