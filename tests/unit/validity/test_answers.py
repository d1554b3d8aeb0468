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


def found(
    texts,
    tokens=TOKENS,
    counted=None,
    *,
    equal=1,
    random_weights=False,
    echoed=None,
    calls=(),
    numbers=(),
    expected=(),
    **fields,
):
    made = records(
        *(
            {"texts": list(range(tokens)), "tokens": tokens if counted is None else counted, **fields}
            for _ in texts
        )
    )
    made = replace(made, texts=texts, tool_calls=calls)
    asked = requested(*(("", of) for of in numbers or [{}] * len(texts)))
    asked = replace(asked, expectations=expected)
    of_cell = facts(workload__equal_prompts=equal, random_weights=random_weights, echoed=echoed)
    cell = Evidence(RequestView(made), of_cell, requested=asked)
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
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
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
        "CUDA out of memory is what a GPU says whose memory is full.",
        "CUDA error handling begins with cudaGetLastError().",
        "502 Bad Gateway is the status of a proxy without a server.",
        "Too many requests were made: the server answers 429.",
        "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        "RuntimeError: dictionary changed size during iteration",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1',
        '{"error": "timeout", "service": "billing"}',
        '{"error": null, "result": 4}',
        "RuntimeError: " + "and what follows from it " * 20,
    ],
)
def test_an_answer_about_errors_is_none_of_them(text):
    assert found([*usual(9), text]) == {}


SAME = "It is the same text, whatever is asked: it begins, goes on and ends alike."
LONG = 48


def test_one_text_for_many_prompts():
    texts = [*usual(16), *[SAME] * 9]
    assert found(texts, LONG)["answers-same"] == f'9 of 25 answers are the same text: "{SAME[:60]}"'
    assert found([*usual(17), *[SAME] * 8], LONG) == {}  # a third is allowed
    assert found([*usual(4), *[SAME] * 4], LONG) == {}  # SmolLM2 gave 4 of 24 equal answers


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Yes.", 4),
        ("I'm sorry, but I can't assist with that request.", 12),
        ("Here is a concise summary of the text that you gave me:", LONG - 1),
        ('{"name": null, "street": null, "city": null, "phone": null, "language": "en"}', LONG),
    ],
)
def test_a_text_that_is_right_for_many_prompts(text, tokens):
    assert found([text] * 20, tokens) == {}


def test_one_text_is_right_for_prompts_that_may_be_equal():
    assert found([SAME] * 20, LONG, equal=20) == found([SAME] * 20, LONG, equal=None) == {}
    assert found([SAME] * 20, LONG, equal=5) == {}  # of as few as four prompts
    assert "answers-same" in found([SAME] * 20, LONG, equal=4)


def test_random_weights_may_say_one_token_to_all_prompts():
    texts = ["\n" * LONG] * 20  # as random-llama-tiny does
    assert found(texts, LONG, random_weights=True) == {}
    assert found(["Hi"] * 20, LONG, random_weights=True) == {}
    assert found(texts, LONG) == {
        "answers-same": "20 of 20 answers are the same text: white space",
        "one-token-repeated": "20 of 20 answers: white space",
    }


def test_later_turns_and_recorded_calls_may_be_answered_alike():
    texts = [SAME] * 20
    assert found(texts, LONG, numbers=[{"turn": 1}] * 20) == {}
    assert found(texts, LONG, numbers=[{"kept": 9}] * 20) == {}
    assert "answers-same" in found(texts, LONG, numbers=[{"turn": 0}] * 20)


def test_prompts_given_back_are_a_share_of_the_first_turns():
    assert found(usual(12), echoed=5) == {"prompt-echoed": "5 of 12 answers hold their own prompt"}
    assert found(usual(12), echoed=4) == found(usual(15), echoed=5) == found(usual(12)) == {}
    later = [{"turn": 1}] * 4
    assert "5 of 12 answers" in found(usual(16), echoed=5, numbers=[{}] * 12 + later)["prompt-echoed"]


@pytest.mark.parametrize("token", ["!", " the", "a\n", "\N{REPLACEMENT CHARACTER}"])
def test_one_token_over_and_over(token):
    (code,) = found([*usual(9), token * TOKENS])
    assert code == "one-token-repeated"
    assert found([*usual(20), token * TOKENS]) == {}  # one of 21


def test_a_phrase_over_and_over_is_what_small_models_say():
    assert found([(PHRASE * 30)[: 5 * TOKENS]] * 2, tokens=TOKENS) == {}
    assert found(["no, " * 20] * 2, tokens=40) == {}  # two tokens each time
    assert found(["!" * 19 + " and then it goes on."] * 2) == {}
    assert found(["!" * 12] * 2, tokens=12) == {}  # too short to say
    assert found(["=" * 64] * 2, tokens=4) == {}  # one token may be sixteen of these


def test_tokens_without_text():
    texts = [f"Hi {number}" for number in range(10)]
    assert found(texts) == {
        "tokens-without-text": "10 of 10 answers: 24.0 tokens in 4.0 bytes of text (means)"
    }
    assert found(texts, tokens=4) == {}
    assert found(["é" * 12 + str(number) for number in range(10)]) == {}  # 25 bytes
    assert found(texts, thoughts=2) == found(texts, thoughts=2, reasoning=UNKNOWN) == {}
    assert found(texts, calls=[CALL] * 10) == {}


def test_tokens_that_nobody_counted_are_not_judged():
    assert found([f"Hi {number}" for number in range(10)], counted=UNKNOWN) == {}
    assert found([*usual(9), "no, " * 20], tokens=10, counted=UNKNOWN) == {}  # four tokens in each event


def test_answers_that_are_held_to_something_are_judged_by_that():
    expected = (Expected("choice", ["!" * TOKENS], "x"),)
    assert found(["!" * TOKENS] * 10, numbers=[{"expected": 0}] * 10, expected=expected) == {}
    assert found(["!" * TOKENS] * 10) != {}
