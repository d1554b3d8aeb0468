"""Conservation: figures of a cell that contradict each other describe something else than was measured."""

import math
from collections.abc import Iterator
from functools import partial

from harness.errors import page_address
from harness.metrics.conservation import COUNTED, ENGINE
from harness.model import Cause, IssueCode, Law, known
from harness.model.numbers import digits_apart, fixed, short
from harness.validity.rule import Evidence, Rule, Violation

BROKEN_TIMES, BROKEN_SHARE = 3.0, 0.1  # of the tolerance of a law, and of what it expects


@partial(
    Rule,
    code=IssueCode.DOES_NOT_ADD_UP,
    measures=f"each law: the reason names it, and the law its cause "
    f"({page_address('metrics', 'conservation-laws')})",
    limit=f"its tolerance; INVALID beyond {BROKEN_TIMES:g} of them and {BROKEN_SHARE:.0%}",
    verdicts=("SUSPECT", "INVALID"),
    hint="a record or a figure of this cell is wrong: measure it again, and report it",
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
        cause, hint = _why(law, cell)
        yield Violation(
            f"{law.law}: {found} seen, {wanted} expected",
            f"a difference of {allowed}" if tolerance else "no difference",
            hint,
            "INVALID" if abs(measured - expected) > broken else "SUSPECT",
            cause=cause,
        )


def _why(law: Law, cell: Evidence) -> tuple[Cause, str | None]:
    """Who broke the law, and what to do where that is not the rule's advice.

    Another client adds to prompt and to output tokens: it is ruled out where one of the two is not more.
    """
    counted = [other for other in cell.laws if other.law in COUNTED.values()]
    if law.law != ENGINE and law not in counted:
        return "client", None
    engine, wrong = "this engine", "one of the two counts is wrong"
    if law in counted and known(cell.facts.roles) is not None:
        engine, wrong = "these engines", "a role of --metrics-url is wrong: prompts are counted at prefill "
        wrong += "engines, answers at decode engines"
    if law in counted and any(other.holds or _fewer(other) for other in counted):
        return "work", f"{wrong}; no other client can cause that, and measuring again is no better"
    return "either", f"other clients used {engine} meanwhile, or {wrong}"


def _fewer(law: Law) -> bool:
    return law.measured is not None and law.expected is not None and law.measured < law.expected


def _apart(measured: float, expected: float, tolerance: float) -> tuple[str, str, str]:
    """Both sides end at the second digit of the tolerance, or where they read as farther apart than it;
    whole where there is none, since that is of counts."""
    if not tolerance:
        return fixed(measured, 0), fixed(expected, 0), "0"
    digits = digits_apart(abs(measured - expected), tolerance, least=2, shown=short)
    decimals = max(digits - 1 - math.floor(math.log10(tolerance)), 0)
    return fixed(measured, decimals), fixed(expected, decimals), short(tolerance, digits)


RULES = (_broken,)
