"""Claims of others in words: how many hold, what was stated and measured, and under what conditions."""

from collections.abc import Sequence
from itertools import chain

from harness.model import ClaimFinding, ClaimResult
from harness.model.numbers import counted, number
from harness.report.wording import are, listing

WORDS = ("reproduced", "contradicted", "not decidable here")


def by_verdict(entries: Sequence[ClaimResult]) -> dict[str, list[ClaimResult]]:
    """Sorted as WORDS, without those that no claim has."""
    by_word = {word: [entry for entry in entries if entry.verdict == word] for word in WORDS}
    return {word: mine for word, mine in by_word.items() if mine}


def counts(entries: Sequence[ClaimResult]) -> str:
    groups = by_verdict(entries)
    if not groups:
        return "No claim in the list is about these engines under this scenario."
    parts = listing([f"{len(mine)} {word}" for word, mine in groups.items()])
    return f"{counted(len(entries), 'published claim')} {are(len(entries))} about this run: {parts}."


def stated(finding: ClaimFinding, kind: str) -> str:
    """`1.1× or more`, `10 to 30`."""
    low, high = finding.stated
    sign = "" if kind == "value" else "×"
    if high is None:
        return f"more than 1{sign}" if low == 1 and sign else f"{number(low)}{sign} or more"
    return f"{number(low)} to {number(high)}{sign}" if low else f"at most {number(high)}{sign}"


def measured(finding: ClaimFinding, kind: str) -> str:
    triple = finding.measured
    if not triple:
        return "no interval"
    low, middle, high = (number(value) for value in triple)
    sign = "" if kind == "value" else "×"
    return f"{middle}{sign} [{low}, {high}]"


def here(entries: Sequence[ClaimResult]) -> list[str]:
    """Conditions of all claims that this run can check: `hardware: a CPU`."""
    statements: dict[str, dict[str, None]] = {}
    for what, found in chain.from_iterable(entry.unstated.items() for entry in entries):
        statements.setdefault(what, {}).update(dict.fromkeys(found))
    return [f"{what}: {', '.join(found)}" for what, found in statements.items()]


def conditions(entry: ClaimResult) -> list[str]:
    """What was stated, what was left open, what differs here."""
    conflicts = [f"the sources contradict each other: {topic}" for topic in entry.conflicts]
    missing = [f"not stated: {listing(list(entry.unstated))}"] if entry.unstated else []
    return [f"stated under: {entry.stated_under}", *missing, *entry.others, *conflicts]
