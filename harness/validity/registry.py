"""All rules, and the verdict on a cell by them.

INVALID: the figures may be the client's, not the server's, or describe too few successes to mean anything.
SUSPECT: usable with the stated doubt.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from harness.model import Cause, Imported, IssueCode, Reason, Validity, known
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
from harness.validity.rule import Evidence, Rule

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
_AT_FAULT: tuple[Cause, ...] = ("client", "machine", "engine")
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
    found = [reason for rule in applied for reason in rule.reasons(cell)]
    explained = {code for _, codes in found for code in codes}
    reasons = [reason for reason, _ in found if reason.code not in explained]
    if cell.facts.imported is not None:
        reasons = [imported.for_another_client(reason) for reason in reasons]
    return Validity.of(reasons)


def unchecked(file: Imported | None) -> list[IssueCode]:
    """Rules that need what the file of another tool does not have."""
    return [code for code in RULES if not imported.applies(code, file)]


def cause_of(reason: Reason) -> Cause:
    """The reason's own cause, else its rule's. A code that no rule knows counts as the work's."""
    rule = RULES.get(reason.code)
    return known(reason.cause) or (rule.cause if rule else "work")


def decisive(validity: Validity) -> tuple[Cause, Reason] | None:
    """The cause of an INVALID cell, and the reason that shows it; None for other cells.

    If engine and client are both at fault, the client may have caused the failures and has the blame; not if
    its fault makes the load easier, as idle slots do. A code that no rule knows decides nothing.
    """
    broken = [(cause_of(reason), reason) for reason in validity.reasons if reason.verdict == "INVALID"]
    by_rules = [(cause, reason) for cause, reason in broken if reason.code in RULES]
    if certain := [found for found in by_rules if RULES[found[1].code].certain]:
        # A dead engine cannot be measured again, whatever else stood still.
        return next((found for found in certain if found[0] == "engine"), certain[0])
    harder = [found for found in by_rules if found[0] == "engine" or not RULES[found[1].code].eases]
    for candidates, order in ((harder, _AT_FAULT), (by_rules, (*_AT_FAULT, "work", "either"))):
        for cause in order:
            if matching := next((found for found in candidates if found[0] == cause), None):
                return matching
    return next(iter(broken), None)


def blame(validity: Validity) -> tuple[Cause, IssueCode] | None:
    """The cause of an INVALID cell as `decisive` finds it, and its code; None for other cells."""
    found = decisive(validity)
    return (found[0], found[1].code) if found else None


def spoiled(cause: Cause | None) -> bool:
    """Whether a doubt of this cause says nothing of the engine, so that measuring again may be better."""
    return cause in ("client", "machine", "either")


def eases(code: IssueCode) -> bool:
    """Whether such a doubt can make a load look easier than it is; False for an unknown code."""
    return code in RULES and RULES[code].eases
