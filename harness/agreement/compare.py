"""Answers of all backends to the `agreement` of summary.json: right, alike, and unharmed by load."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median

from msgspec.structs import replace

from harness.agreement.accuracy import accuracy, changes, marks
from harness.agreement.questions import Question, interleaved, sha256
from harness.agreement.score import CHANGES, FAULTS, change, fault, right
from harness.agreement.values import compare_values
from harness.model import (
    UNSET,
    Agreement,
    AskedBackend,
    AskedCondition,
    BackendAgreement,
    ConditionAgreement,
    Disagreement,
    PairAgreement,
    RightCount,
    RunWarning,
    StoredAnswer,
)
from harness.stats.binomial import more_often
from harness.stats.paired import mcnemar
from harness.validity import notices

Answers = Mapping[str, StoredAnswer]  # by question id

CONDITIONS = ("unloaded", "saturated")
HARM = ("failed", "empty", "truncated", "garbled", "repeated")  # of an answer under load
MAX_P = 0.05  # over all pairs


def compare(questions: Sequence[Question], asked: Mapping[str, AskedBackend]) -> Agreement | None:
    """`asked`: by backend. None for nobody."""
    if not asked:
        return None
    if values := {label: answers.values for label, answers in asked.items() if answers.values}:
        return Agreement(questions=0, kinds={}, backends={}, pairs=(), values=compare_values(values))
    by_load = {
        label: _discord(questions, stored.unloaded.answers, stored.saturated.answers)
        for label, stored in asked.items()
    }
    couples = list(combinations(asked, 2))
    pairs = []
    for a, b in couples:
        of_a, of_b = asked[a].unloaded.answers, asked[b].unloaded.answers
        against = _disagreement(_discord(questions, of_a, of_b), (by_load[a], by_load[b]), len(couples))
        pairs.append(replace(_pair(questions, (a, of_a), (b, of_b)), disagreement=against))
    backends = {label: _backend(questions, stored) for label, stored in asked.items()}
    return Agreement(
        questions=len(questions),
        kinds=dict(Counter[str](question.kind for question in questions)),
        backends=backends,
        pairs=tuple(pairs),
        sha256=sha256(interleaved(questions)),
        accuracy=tuple(changes(backends)),
    )


def warnings(agreement: Agreement | None) -> Iterator[RunWarning]:
    """Warns readers of speeds: answers that load destroyed, a backend that is right more often."""
    if not agreement:
        return
    for compared in agreement.values.pairs if agreement.values else ():
        if not compared.alike:
            yield notices.VALUES_DIFFER.warning(compared.words)
    lost = {
        compared.a: compared
        for compared in agreement.accuracy
        if compared.a == compared.b and compared.verdict == "loses"
    }
    for label, backend in agreement.backends.items():
        if not backend.unloaded.right:
            faults, none = backend.unloaded.faults, "no question was answered"
            some = faults["failed"] + faults["empty"] < backend.unloaded.asked
            text = f"{none} correctly, so no loss can show" if some else none
            yield notices.AGREEMENT_MISSING.warning(f"{label}: {text}", backend=label)
        harmed = {name: count for name, count in backend.under_load.items() if name in HARM and count}
        if harmed or label in lost:
            what = ", ".join(f"{count} {name}" for name, count in harmed.items())
            what = "; ".join(filter(None, (what, f"it {lost[label].words}" if label in lost else "")))
            unit = "requests" if backend.saturated.load else "questions"
            at_once = f"with {backend.saturated.concurrency} {unit} at once"
            yield notices.ANSWERS_HARMED.warning(f"{label}: {at_once}: {what}", backend=label)
    for pair in agreement.pairs:
        if pair.p_value is not None and pair.p_value < MAX_P / len(agreement.pairs):
            sides = [(pair.only_a_right, pair.a), (pair.only_b_right, pair.b)]
            (more, better), (fewer, worse) = sorted(sides, key=lambda side: -side[0])
            yield notices.ANSWERS_DIFFER.warning(
                f"{better} is right in {more} questions where {worse} is wrong, "
                f"and wrong in {fewer} where that is right (p {pair.p_value:.2g})"
            )


def _backend(questions: Sequence[Question], stored: AskedBackend) -> BackendAgreement:
    before, after = stored.unloaded.answers, stored.saturated.answers
    changes: dict[str, list[str]] = {name: [] for name in CHANGES}
    for question in questions:
        if question.id in before and question.id in after:
            changes[change(before[question.id], after[question.id])].append(question.id)
    return BackendAgreement(
        unloaded=_condition(questions, stored.unloaded),
        saturated=_condition(questions, stored.saturated),
        under_load={name: len(ids) for name, ids in changes.items()},
        changed={name: tuple(ids) for name, ids in changes.items() if ids and name != "same"},
    )


def _condition(questions: Sequence[Question], stored: AskedCondition) -> ConditionAgreement:
    answers = stored.answers
    known = [question for question in questions if question.id in answers]
    asked = Counter(question.kind for question in known)
    rights = Counter(question.kind for question in known if right(question, answers[question.id]))
    faults = Counter(fault(answers[question.id]) for question in known)
    marked = marks(interleaved(questions), stored)
    return ConditionAgreement(
        concurrency=stored.concurrency,
        load=stored.load,
        accuracy=accuracy(marked) or UNSET,
        marks=marked,
        asked=len(known),
        right=rights.total(),
        by_kind={kind: RightCount(asked=count, right=rights[kind]) for kind, count in asked.items()},
        faults={name: faults[name] for name in FAULTS},
    )


def _pair(
    questions: Sequence[Question], first: tuple[str, Answers], second: tuple[str, Answers]
) -> PairAgreement:
    """Compares the unloaded answers to the questions that both answered."""
    (a, of_a), (b, of_b) = first, second
    both = [q for q in questions if q.id in of_a and q.id in of_b]
    verdicts = Counter((right(q, of_a[q.id]), right(q, of_b[q.id])) for q in both)
    counts = [(of_a[q.id].prompt_tokens, of_b[q.id].prompt_tokens) for q in both]
    tokens = [(mine, other) for mine, other in counts if mine is not None and other is not None]
    different = tuple(q.id for q in both if not _same_text(of_a[q.id], of_b[q.id]))
    only_a, only_b = verdicts[True, False], verdicts[False, True]
    return PairAgreement(
        a=a,
        b=b,
        compared=len(both),
        same_text=len(both) - len(different),
        both_right=verdicts[True, True],
        only_a_right=only_a,
        only_b_right=only_b,
        both_wrong=verdicts[False, False],
        p_value=mcnemar(only_a, only_b) if only_a + only_b else None,
        prompt_tokens_compared=len(tokens),
        prompt_tokens_equal=sum(mine == other for mine, other in tokens),
        prompt_tokens_difference=median(other - mine for mine, other in tokens) if tokens else None,
        different=different,
    )


def _same_text(first: StoredAnswer, second: StoredAnswer) -> bool:
    return first.text == second.text and "failed" not in (fault(first), fault(second))


def _discord(questions: Sequence[Question], first: Answers, second: Answers) -> tuple[int, int]:
    """Questions that one of the two answers rightly and the other does not, and of how many.

    By rightness and not by text: engines that compute alike word an answer otherwise by rounding alone.
    """
    both = [question for question in questions if question.id in first and question.id in second]
    return sum(right(q, first[q.id]) != right(q, second[q.id]) for q in both), len(both)


def _disagreement(
    between: tuple[int, int], own: tuple[tuple[int, int], tuple[int, int]], pairs: int
) -> Disagreement:
    """Compares how often two disagree with how often load changes the one that explains it better."""
    count, compared = between
    known = [(more_often(count, compared, *changed), *changed) for changed in own if compared and changed[1]]
    p_value, worst, asked = max(known, default=(None, 0, 0))
    return Disagreement(
        answers=count,
        own=worst,
        own_asked=asked,
        p_value=p_value,
        beyond_load=p_value is not None and p_value < MAX_P / pairs,
    )
