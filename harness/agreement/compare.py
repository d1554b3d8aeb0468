"""Answers of all backends to the `agreement` of summary.json: right, alike, and unharmed by load."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from statistics import median
from typing import Any

from harness.agreement.questions import Question
from harness.agreement.score import CHANGES, FAULTS, Answer, change, fault, right
from harness.model import RunWarning
from harness.validity import notices

Answers = Mapping[str, Answer]  # by question id

CONDITIONS = ("unloaded", "saturated")
HARM = ("failed", "empty", "truncated", "garbled", "repeated")  # of an answer under load
MAX_P = 0.05  # over all pairs


def compare(questions: Sequence[Question], asked: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """`asked`: by backend, what was stored: per condition `concurrency` and `answers`. None for nobody."""
    if not asked:
        return None
    changes = {label: _changed_by_load(questions, stored) for label, stored in asked.items()}
    couples = list(combinations(asked, 2))
    return {
        "questions": len(questions),
        "kinds": dict(Counter(question.kind for question in questions)),
        "backends": {label: _backend(questions, stored) for label, stored in asked.items()},
        "pairs": [
            _pair(questions, (a, asked[a]["unloaded"]["answers"]), (b, asked[b]["unloaded"]["answers"]))
            | {
                "disagreement": _disagreement(
                    questions, (asked[a], asked[b]), (changes[a], changes[b]), len(couples)
                )
            }
            for a, b in couples
        ],
    }


def warnings(found: Mapping[str, Any] | None) -> Iterator[RunWarning]:
    """What a reader of speeds must know: answers that load destroyed, a backend that is right more often."""
    if not found:
        return
    for label, backend in found["backends"].items():
        harmed = {name: count for name, count in backend["under_load"].items() if name in HARM and count}
        if harmed:
            what = ", ".join(f"{count} {name}" for name, count in harmed.items())
            at_once = f"with {backend['saturated']['concurrency']} questions at once"
            yield notices.ANSWERS_HARMED.warning(f"{label}: {at_once}: {what}")
    for pair in found["pairs"]:
        if pair["p_value"] is not None and pair["p_value"] < MAX_P / len(found["pairs"]):
            better, worse = sorted(("a", "b"), key=lambda side: -int(pair[f"only_{side}_right"]))
            more, fewer = pair[f"only_{better}_right"], pair[f"only_{worse}_right"]
            text = f"{pair[better]} is right in {more} questions where {pair[worse]} is wrong"
            yield notices.ANSWERS_DIFFER.warning(
                f"{text}, and wrong in {fewer} where that is right (p {pair['p_value']:.2g})"
            )


def _backend(questions: Sequence[Question], stored: Mapping[str, Any]) -> dict[str, Any]:
    answers: list[Answers] = [stored[condition]["answers"] for condition in CONDITIONS]
    changes: dict[str, list[str]] = {name: [] for name in CHANGES}
    for question in questions:
        if all(question.id in given for given in answers):
            changes[change(*(given[question.id] for given in answers))].append(question.id)
    return {
        **{condition: _condition(questions, stored[condition]) for condition in CONDITIONS},
        "under_load": {name: len(ids) for name, ids in changes.items()},
        "changed": {name: ids for name, ids in changes.items() if ids and name != "same"},
    }


def _condition(questions: Sequence[Question], stored: Mapping[str, Any]) -> dict[str, Any]:
    answers: Answers = stored["answers"]
    known = [question for question in questions if question.id in answers]
    by_kind: dict[str, dict[str, int]] = {}
    for question in known:
        kind = by_kind.setdefault(question.kind, {"asked": 0, "right": 0})
        kind["asked"] += 1
        kind["right"] += right(question, answers[question.id])
    faults = Counter(fault(answers[question.id]) for question in known)
    return {
        "concurrency": stored["concurrency"],
        "asked": len(known),
        "right": sum(kind["right"] for kind in by_kind.values()),
        "by_kind": by_kind,
        "faults": {name: faults[name] for name in FAULTS},
    }


def _pair(
    questions: Sequence[Question], one: tuple[str, Answers], two: tuple[str, Answers]
) -> dict[str, Any]:
    """Of the unloaded answers, where both answered."""
    (a, of_a), (b, of_b) = one, two
    both = [q for q in questions if q.id in of_a and q.id in of_b]
    verdicts = Counter((right(q, of_a[q.id]), right(q, of_b[q.id])) for q in both)
    tokens = [
        (of_a[q.id]["prompt_tokens"], of_b[q.id]["prompt_tokens"])
        for q in both
        if None not in (of_a[q.id]["prompt_tokens"], of_b[q.id]["prompt_tokens"])
    ]
    only_a, only_b = verdicts[True, False], verdicts[False, True]
    return {
        "a": a,
        "b": b,
        "compared": len(both),
        "same_text": sum(of_a[q.id]["text"] == of_b[q.id]["text"] for q in both),
        "both_right": verdicts[True, True],
        "only_a_right": only_a,
        "only_b_right": only_b,
        "both_wrong": verdicts[False, False],
        "p_value": _sign_test(only_a, only_b),
        "prompt_tokens_compared": len(tokens),
        "prompt_tokens_equal": sum(first == second for first, second in tokens),
        "prompt_tokens_difference": median(second - first for first, second in tokens) if tokens else None,
        "different": [q.id for q in both if of_a[q.id]["text"] != of_b[q.id]["text"]],
    }


def _discord(questions: Sequence[Question], one: Answers, two: Answers) -> tuple[int, int]:
    """Questions that one of the two answers rightly and the other does not, and of how many.

    By rightness and not by text: engines that compute alike word an answer otherwise by rounding alone.
    """
    both = [question for question in questions if question.id in one and question.id in two]
    return sum(right(q, one[q.id]) != right(q, two[q.id]) for q in both), len(both)


def _changed_by_load(questions: Sequence[Question], stored: Mapping[str, Any]) -> tuple[int, int]:
    unloaded, saturated = (stored[condition]["answers"] for condition in CONDITIONS)
    return _discord(questions, unloaded, saturated)


def _disagreement(
    questions: Sequence[Question],
    stored: tuple[Mapping[str, Any], Mapping[str, Any]],
    own: tuple[tuple[int, int], tuple[int, int]],
    pairs: int,
) -> dict[str, Any]:
    """Between two backends, against what load does to the one of them that it changes more."""
    one, two = (of["unloaded"]["answers"] for of in stored)
    count, compared = _discord(questions, one, two)
    worst, asked = max(own, key=lambda found: found[0] / max(found[1], 1))
    p_value = _exceeds(count, compared, worst, asked)
    return {
        "answers": count,
        "own": worst,
        "own_asked": asked,
        "p_value": p_value,
        "beyond_load": p_value is not None and p_value < MAX_P / pairs,
    }


def _exceeds(count: int, of: int, other: int, other_of: int) -> float | None:
    """Fisher's exact test, one-sided: chance of so many in the first if both rates are equal."""
    if not of or not other_of:
        return None
    total, every = count + other, of + other_of
    ways = sum(comb(of, k) * comb(other_of, total - k) for k in range(count, min(of, total) + 1))
    return ways / comb(every, total)


def _sign_test(only_a: int, only_b: int) -> float | None:
    """McNemar's exact test: chance of so uneven a split if neither is better. None where none differs."""
    count = only_a + only_b
    if not count:
        return None
    tail = sum(comb(count, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, float(2 * tail / 2**count))
