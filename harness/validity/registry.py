"""All rules, and the verdict on a cell by them.

INVALID: the figures may be the client's, not the server's, or describe too few successes to mean anything.
SUSPECT: usable with the stated doubt.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from harness.model import Imported, IssueCode, Reason, Validity
from harness.validity import (
    answers,
    arrivals,
    cache,
    client,
    conservation,
    engine,
    imported,
    machine,
    nodes,
    replicas,
    requests,
    slots,
    stalls,
    steady,
    stream,
    structured,
    usage,
)
from harness.validity.rule import Cause, Evidence, Rule

# Each has a docstring that names it, and RULES.
FAMILIES: tuple[ModuleType, ...] = (
    imported,
    client,
    stalls,
    nodes,
    replicas,
    arrivals,
    slots,
    requests,
    steady,
    stream,
    usage,
    answers,
    engine,
    structured,
    cache,
    machine,
    conservation,
)
_ORDER = list(IssueCode)
RULES: Mapping[IssueCode, Rule] = MappingProxyType(
    {
        rule.code: rule
        for rule in sorted(
            (rule for family in FAMILIES for rule in family.RULES),
            key=lambda rule: _ORDER.index(rule.code),
        )
    }
)


def judge(cell: Evidence) -> Validity:
    applied = (rule for rule in RULES.values() if imported.applies(rule.code, cell.facts.imported))
    reasons = [reason for rule in applied for reason in rule.reasons(cell)]
    if cell.facts.imported is not None:
        reasons = [imported.for_another_client(reason) for reason in reasons]
    return Validity.of(reasons)


def unchecked(file: Imported | None) -> list[IssueCode]:
    """Rules that need what the file of another tool does not have."""
    return [code for code in RULES if not imported.applies(code, file)]


def blame(validity: Validity) -> tuple[Cause, IssueCode] | None:
    """The cause of an INVALID cell and its code; None for other cells.

    If engine and client are both at fault, the client may have caused the failures and has the blame; not if
    its fault makes the load easier, as idle slots do. A code that no rule knows counts as the work's and
    decides nothing.
    """
    if validity.verdict != "INVALID":
        return None
    codes = [reason.code for reason in validity.reasons if reason.verdict == "INVALID"]
    rules = [RULES[code] for code in codes if code in RULES]
    if certain := [rule for rule in rules if rule.certain]:
        # A dead engine cannot be measured again, whatever else stood still.
        sure = next((rule for rule in certain if rule.cause == "engine"), certain[0])
        return sure.cause, sure.code
    harder = [rule for rule in rules if not rule.eases or rule.cause == "engine"]
    order: tuple[Cause, ...] = ("client", "machine", "engine")
    for candidates in (harder, rules):
        for cause in order:
            if matching := next((rule for rule in candidates if rule.cause == cause), None):
                return cause, matching.code
    return ("work", codes[0]) if codes else None


def decisive(validity: Validity) -> tuple[Cause, Reason] | None:
    """The cause of an INVALID cell as `blame` finds it, and the reason that shows it; None for other cells.

    A rule may have lesser doubts too, under the same code.
    """
    if (blamed := blame(validity)) is None:
        return None
    cause, code = blamed
    return cause, next(
        reason for reason in validity.reasons if (reason.code, reason.verdict) == (code, "INVALID")
    )


def eases(code: IssueCode) -> bool:
    """Whether such a doubt can make a load look easier than it is; False for an unknown code."""
    return code in RULES and RULES[code].eases
