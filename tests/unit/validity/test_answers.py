"""Texts of answers: what no model says, and what small models do say."""

from dataclasses import replace

import pytest

from harness.metrics.view import RequestView
from harness.records.layout import UNKNOWN
from harness.records.request_table import Expected
from harness.validity import Evidence, answers
from tests.factories.recorded import facts, records, requested

TOKENS = 24
PHRASE = "The island of the "  # as SmolLM2 says it over and over
CALL = '[{"id": "1", "name": "f", "arguments": "{}"}]'


def found(texts, tokens=TOKENS, counted=None, *, differ=True, calls=(), numbers=(), expected=(), **fields):
    made = records(
        *(
            {"texts": list(range(tokens)), "tokens": tokens if counted is None else counted, **fields}
            for _ in texts
        )
    )
    made = replace(made, texts=texts, tool_calls=calls)
    asked = requested(*(("", of) for of in numbers or [{}] * len(texts)))
    asked = replace(asked, expectations=expected)
    cell = Evidence(RequestView(made), facts(workload__prompts_differ=differ), requested=asked)
    return {str(rule.code): violation.measured for rule in answers.RULES for violation in rule.find(cell)}


def usual(count, begin=0):
    """Texts that differ, of 24 tokens of some letters each."""
    return [" ".join(f"{number}word{at}" for at in range(TOKENS)) for number in range(begin, begin + count)]


def test_usual_answers_are_in_no_doubt():
    assert found(usual(20)) == {}
    assert found([]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA error: device-side assert triggered",
        "RuntimeError: probability tensor contains inf",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "Traceback (most recent call last):\n  File",
        "Internal Server Error",
        "502 Bad Gateway",
        "upstream connect error or disconnect/reset before headers",
        '{"error": {"message": "overloaded", "code": 500}}',
        '{"object": "error", "message": "bad"}',
    ],
)
def test_an_error_is_no_answer(text):
    shown = " ".join(text.split())
    assert found([*usual(9), text], tokens=4) == {"errors-as-answers": f'1 of 10 answers: "{shown[:60]}"'}


@pytest.mark.parametrize(
    "text",
    [
        "A CUDA error means that a kernel failed.",
        "Mirror: mirror, on the wall",
        "The server says Internal Server Error when it fails.",
        "Error handling is what this text is about.",
        "RuntimeError: " + "and what follows from it " * 20,
    ],
)
def test_an_answer_about_errors_is_none_of_them(text):
    assert found([*usual(9), text]) == {}


def test_one_text_for_many_prompts():
    same = "It is the same text, whatever is asked."
    assert found([*usual(20), *[same] * 5])["answers-same"] == f'5 of 25 answers are the same text: "{same}"'
    assert found([*usual(20), *[same] * 4]) == {}  # SmolLM2 gave 4 of 24 equal answers
    assert found([*usual(40), *[same] * 7]) == {}
    assert found([*usual(20), *["Yes."] * 20], tokens=4) == {}


def test_one_text_is_right_where_prompts_are_equal_or_not_known_to_differ():
    texts = ["It is the same text, whatever is asked."] * 20
    assert found(texts, differ=False) == found(texts, differ=None) == {}


def test_later_turns_and_recorded_calls_may_be_answered_alike():
    texts = ["It is the same text, whatever is asked."] * 20
    assert found(texts, numbers=[{"turn": 1}] * 20) == found(texts, numbers=[{"kept": 9}] * 20) == {}
    assert "answers-same" in found(texts, numbers=[{"turn": 0}] * 20)


@pytest.mark.parametrize("token", ["!", " the", "a\n", "\N{REPLACEMENT CHARACTER}"])
def test_one_token_over_and_over(token):
    (code,) = found([*usual(9), token * TOKENS])
    assert code == "one-token-repeated"
    assert found([*usual(20), token * TOKENS]) == {}  # one of 21


def test_a_phrase_over_and_over_is_what_small_models_say():
    assert found([(PHRASE * 30)[: 5 * TOKENS]] * 2, tokens=TOKENS) == {}
    assert found(["no, " * 12] * 2, tokens=TOKENS) == {}  # two tokens each time
    assert found(["!" * 12] * 2, tokens=12) == {}  # too short to say


def test_tokens_without_text():
    texts = [f"Hi {number}" for number in range(10)]
    assert found(texts) == {
        "tokens-without-text": "10 of 10 answers: 24.0 tokens in 4.0 bytes of text (means)"
    }
    assert found(texts, tokens=4) == {}
    assert found(["é" * 12 + str(number) for number in range(10)]) == {}  # 25 bytes
    assert found(texts, thoughts=2) == {}
    assert found(texts, calls=[CALL] * 10) == {}


def test_tokens_that_nobody_counted_are_not_judged():
    assert found([f"Hi {number}" for number in range(10)], counted=UNKNOWN) == {}


def test_answers_that_are_held_to_something_are_judged_by_that():
    expected = (Expected("choice", ["!" * TOKENS], "x"),)
    assert found(["!" * TOKENS] * 10, numbers=[{"expected": 0}] * 10, expected=expected) == {}
    assert found(["!" * TOKENS] * 10) != {}
