"""How many answers are right, and which backend lost how much: paired by question, in the order of asking."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from harness.agreement.questions import Question
from harness.agreement.score import right
from harness.model import AccuracyChange, AskedCondition, BackendAgreement, Interval
from harness.stats.paired import LEVEL, NOT_ASKED, change, share_interval


def marks(questions: Sequence[Question], asked: AskedCondition) -> str:
    """`1` right, `0` wrong, `-` not asked. A failed answer is wrong."""
    answers = asked.answers
    return "".join(
        str(int(right(question, answers[question.id]))) if question.id in answers else NOT_ASKED
        for question in questions
    )


def accuracy(marked: str) -> Interval | None:
    """Share right; None where nothing was asked."""
    asked = len(marked) - marked.count(NOT_ASKED)
    if not asked:
        return None
    count = marked.count("1")
    low, high = share_interval(count, asked)
    return Interval(low, count / asked, high)


def changes(backends: Mapping[str, BackendAgreement]) -> Iterator[AccuracyChange]:
    """Pairs asked one question at a time, pairs under load, and each backend under load against itself.

    The level of 5% holds for all of each kind together.
    """
    couples = list(combinations(backends, 2))
    for under_load in (False, True):
        for a, b in couples:
            pair = backends[a], backends[b]
            first, second = ((each.saturated if under_load else each.unloaded).marks for each in pair)
            if found := change(first, second, LEVEL / len(couples)):
                yield found.between(a, b, under_load=under_load)
    for label, backend in backends.items():
        if found := change(backend.unloaded.marks, backend.saturated.marks, LEVEL / len(backends)):
            yield found.between(label, label, under_load=True)


def decided(
    questions: Sequence[Question], first: AskedCondition, second: AskedCondition, level: float
) -> bool:
    """Whether more questions would not change the verdict."""
    found = change(marks(questions, first), marks(questions, second), level)
    return found is not None and found.verdict != "undecided"
