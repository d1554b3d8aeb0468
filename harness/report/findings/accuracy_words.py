"""Whether a backend loses accuracy, in lines, and the words for how the questions were asked."""

from collections.abc import Iterator

from harness.model import (
    AccuracyChange,
    Agreement,
    ComparedPair,
    ConditionAgreement,
    RunComparison,
    Summary,
    known,
)
from harness.report.wording import plain

MANY = 100  # questions: more than --agreement has, so a loss of accuracy is looked for


def accuracy_lines(summary: Summary) -> Iterator[str]:
    """Who lost or gained accuracy; with many questions, also who is as accurate or undecided."""
    agreement = summary.agreement
    if agreement is None or agreement.values:
        return
    for label, backend in agreement.backends.items():
        if agreement.questions >= MANY and not backend.unloaded.right:
            yield plain(f"accuracy, one at a time: {label} answered no question correctly")
    alone = len(agreement.backends) == 1
    for change in agreement.accuracy:
        decided = change.verdict in ("loses", "gains")
        if decided or (
            agreement.questions >= MANY and (alone or change.a != change.b or change.verdict == "undecided")
        ):
            yield plain(f"accuracy, {asked_at(agreement, change)}: {_between(change)}")


def compared_accuracy(
    document: RunComparison, pair: ComparedPair, *, losses_only: bool = False
) -> Iterator[str]:
    """`accuracy, one at a time: loses 3.1 to 8.4 points (31 lost, 6 gained of 658)`."""
    for row in document.accuracy:
        loss = row.change is not None and row.change.verdict == "loses"
        if (row.a, row.b) == (pair.a, pair.b) and (loss or not losses_only):
            yield plain(f"accuracy, {'under load' if row.under_load else 'one at a time'}: {row.why}")


def _between(change: AccuracyChange) -> str:
    if change.a == change.b:
        return f"{change.b} {change.words}, against itself one at a time"
    return f"{change.b} against {change.a}: {change.words}"


def asked_at(agreement: Agreement, change: AccuracyChange) -> str:
    answers = agreement.backends[change.b]
    return at_once(answers.saturated) if change.under_load else "one at a time"


def at_once(agreement: ConditionAgreement) -> str:
    """`48 at once`, or `between requests of c8`."""
    load = known(agreement.load)
    return f"between requests of {load.label}" if load else f"{agreement.concurrency} at once"
