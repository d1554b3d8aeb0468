"""Conservation: figures of a cell that contradict each other describe something else than was measured."""

import math
from collections.abc import Iterator

from harness.metrics.conservation import hint
from harness.model import IssueCode
from harness.model.numbers import short
from harness.validity.rule import Evidence, Rule, Violation

BROKEN_TIMES, BROKEN_SHARE = 3.0, 0.1  # of the tolerance of a law, and of what it expects


def _broken(cell: Evidence) -> Iterator[Violation]:
    for law in cell.laws:
        measured, expected, tolerance = law.measured, law.expected, law.tolerance
        if law.holds is not False or measured is None or expected is None or tolerance is None:
            continue
        broken = max(BROKEN_TIMES * tolerance, BROKEN_SHARE * abs(expected))
        yield Violation(
            f"{law.law}: {_as_exact(measured, tolerance)}",
            f"{_as_exact(expected, tolerance)} ± {short(tolerance, 2)}",
            hint(law),
            "INVALID" if abs(measured - expected) > broken else "SUSPECT",
        )


def _as_exact(value: float, tolerance: float) -> str:
    """Ends at the second digit of the tolerance; whole where there is none, since that is of counts."""
    decimals = 1 - math.floor(math.log10(tolerance)) if tolerance else 0
    return f"{value:.{max(decimals, 0)}f}"


RULES = (
    Rule(
        code=IssueCode.DOES_NOT_ADD_UP,
        find=_broken,
        measures="each conservation law ([metrics.md](metrics.md)): the reason names it",
        limit=f"its tolerance; INVALID beyond {BROKEN_TIMES:g} of them and {BROKEN_SHARE:.0%}",
        verdicts=("SUSPECT", "INVALID"),
        hint="measure the cell again; the reason says whether other clients may have used the engine",
        cause="client",
        eases=True,
    ),
)
