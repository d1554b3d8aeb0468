"""What engines do without saying so, found in the records."""

import pytest

from harness.metrics.view import RequestView
from harness.model import Answers
from harness.records.layout import Outcome, Phase
from harness.validity import Evidence, judge
from tests.factories import recorded

ANSWER = {"intended": 0, "texts": [10, 20, 30], "prompt": 110, "cached": 0, "tokens": 3}
ONE = {"tokens_per_event": "one"}


def shape(rate, constrained=True, truncated=0):
    counts = {"constrained": constrained, "asked": 8, "rate": rate, "truncated": truncated}
    return Answers(structured={"regex": counts})


def codes(rows=None, answered=None, **facts):
    records = recorded.records(*(rows or [ANSWER] * 6))
    about = recorded.facts(workload__exact_output=False, **facts)
    found = judge(Evidence(RequestView(records), about, answers=answered)).reasons
    return [reason.code for reason in found if reason.code != "first-event-tokens"]


def test_an_honest_engine_is_not_doubted():
    assert codes(habits=ONE, request={"thinking": "off"}, answered=shape(1.0)) == []


def test_answers_without_usage_are_counted():
    silent = ANSWER | {"tokens": -1}
    (reason,) = judge(
        Evidence(RequestView(recorded.records(*[ANSWER] * 4, silent, silent)), recorded.facts())
    ).reasons
    assert (reason.code, reason.measured) == ("usage-missing", "2 of 6 answers without a usage block")


@pytest.mark.parametrize(("tokens", "habits", "found"), [(6, ONE, True), (6, {}, False), (3, ONE, False)])
def test_tokens_sent_together_are_found_where_one_is_declared(tokens, habits, found):
    assert codes([ANSWER | {"tokens": tokens}] * 6, habits=habits) == ["tokens-per-event"] * found


def test_wrong_counts_of_prompts_hide_no_doubt_about_the_tokens_of_an_answer():
    made = recorded.records(*[ANSWER | {"tokens": 6, "cached": 300}] * 6)
    reasons = judge(
        Evidence(RequestView(made), recorded.facts(habits=ONE, workload__exact_output=False))
    ).reasons
    assert {"usage-implausible", "first-event-tokens", "tokens-per-event"} <= {one.code for one in reasons}


@pytest.mark.parametrize(
    ("images", "tokens", "measured"),
    [
        ((0, 1, 4), (40, 40, 40), "40 prompt tokens with 0 images, 40 with 4"),
        ((0, 1, 1), (40, 41, 40), "40 prompt tokens with 0 images, 40.5 with 1"),
        ((0, 1, 4), (40, 133, 412), None),
        ((0, 1, 4), (40, -1, -1), None),
        ((1, 1, 1), (40, 40, 40), None),
        ((-1, -1, -1), (40, 40, 40), None),
    ],
    ids=["none", "half a token", "read", "not counted", "one count", "no images"],
)
def test_an_engine_that_looks_at_no_image_counts_the_text_alone(images, tokens, measured):
    asked = recorded.requested(*((f"{count}", {"images": count}) for count in images))
    records = recorded.records(*[ANSWER | {"prompt": count} for count in tokens])
    found = judge(Evidence(RequestView(records), recorded.facts(), requested=asked)).reasons
    shown = [reason.measured for reason in found if reason.code == "images-unread"]
    assert shown == ([measured] if measured else [])


def test_tokens_around_reasoning_are_not_tokens_sent_together():
    row = ANSWER | {"tokens": 6, "thoughts": 1}
    assert "tokens-per-event" not in codes([row] * 6, habits=ONE, request={"thinking": "on"})


@pytest.mark.parametrize(
    ("asked", "thinking", "found"),
    [
        ("off", 1, "thinking-not-off: 1 answer with reasoning text"),
        ("off", 0, ""),
        ("off", -2, "thinking-not-off: 2 answers with reasoning, 2 of them without its text"),
        ("on", -6, ""),
        ("on", 6, ""),
        ("on", 4, "thinking-missing: 2 of 6 answers without reasoning"),
    ],
)
def test_reasoning_that_was_not_asked_for_and_that_did_not_come(asked, thinking, found):
    """Below 0: so many that only the server counts."""
    rows = [ANSWER | {"thoughts": 1}] * thinking + [ANSWER] * (6 - max(thinking, 0))
    facts, made = recorded.facts(request={"thinking": asked}), recorded.records(*rows)
    made.requests["reasoning_tokens"][: max(-thinking, 0)] = 2
    reasons = judge(Evidence(RequestView(made), facts)).reasons
    assert [f"{reason.code}: {reason.measured}" for reason in reasons] == [found] * bool(found)


def test_reasoning_counts_in_measured_answers_only():
    thought = ANSWER | {"thoughts": 1}
    others = [thought | {"phase": Phase.WARMUP}, thought | {"outcome": Outcome.TRUNCATED}]
    made = recorded.records(*others, *[ANSWER] * 200)
    found = judge(Evidence(RequestView(made), recorded.facts(request={"thinking": "off"}))).reasons
    assert [reason.code for reason in found] == ["failed-requests"]


def test_a_shape_that_is_not_kept_to():
    assert codes(answered=shape(0.1)) == ["structured-ignored"]
    assert codes(answered=shape(0.9)) == ["structured-invalid"]
    assert codes(answered=shape(None)) == codes(answered=Answers()) == []
    assert codes(answered=shape(0.1, constrained=False)) == []
    assert codes(answered=shape(None, truncated=8)) == ["structured-cut"]
    assert codes(answered=shape(1.0, truncated=4)) == []


def test_answers_that_were_cut_are_a_share_of_those_that_came():
    counts = {"constrained": True, "asked": 10, "rate": None, "refused": 5, "failed": 1, "truncated": 3}
    records, about = recorded.records(*[ANSWER] * 6), recorded.facts(workload__exact_output=False)
    answers = Answers(structured={"regex": counts})
    reasons = judge(Evidence(RequestView(records), about, answers=answers)).reasons
    measured = {reason.code: reason.measured for reason in reasons}
    assert measured["structured-cut"] == "3 of 4 answers end at the token limit (regex)"
    none_came = Answers(structured={"regex": {**counts, "refused": 10, "failed": 0, "truncated": 0}})
    assert codes(answered=none_came) == []


@pytest.mark.parametrize(
    ("rate", "text"), [(0.004, "0.4%"), (0.497, "49.7%"), (0.5, "50%"), (0.976, "97.6%"), (0.87, "87%")]
)
def test_a_share_of_valid_answers_does_not_read_as_the_limit_that_it_misses(rate, text):
    records, about = recorded.records(*[ANSWER] * 6), recorded.facts(workload__exact_output=False)
    reasons = judge(Evidence(RequestView(records), about, answers=shape(rate))).reasons
    measured = {reason.code: reason.measured for reason in reasons}
    code = "structured-ignored" if rate < 0.5 else "structured-invalid"
    assert measured[code] == f"{text} of the whole answers are valid (regex)"


def test_they_are_reasons_of_the_verdict():
    records = recorded.records(*[ANSWER | {"tokens": 6}] * 6)
    verdict = judge(
        Evidence(RequestView(records), recorded.facts(habits=ONE, workload__output_tokens=6), 0.0)
    )
    assert verdict.verdict == "SUSPECT"
    assert [reason.code for reason in verdict.reasons] == ["first-event-tokens", "tokens-per-event"]


def named(answered, requests=1, first_s=0.0, requested="bench"):
    return {"requested": requested, "answered": answered, "requests": requests, "first_s": first_s}


@pytest.mark.parametrize(
    ("answered", "measured"),
    [
        ([named("a"), named("b", 20, 12.34)],
         "2 models: a (1 answer, the first sent at 0.0 s), b (20 answers, the first sent at 12.3 s)"),
        ([named("base"), named("one", requested="adapter-1"), named("two", requested="adapter-1")],
         "2 models for adapter-1: one (1 answer, the first sent at 0.0 s), "
         "two (1 answer, the first sent at 0.0 s)"),
        ([named("a", 21), named("b", 1)],
         "2 models: a (21 answers, the first sent at 0.0 s), b (1 answer, the first sent at 0.0 s); "
         "some answers name several"),
        ([named("/models/a.gguf", 6)], None),
        ([named("a", requested="adapter-1"), named("b", requested="adapter-2")], None),
        ([], None),
    ],
)  # fmt: skip
def test_answers_of_several_models_to_requests_for_one(answered, measured):
    about = recorded.facts(workload__exact_output=False, answered_models=answered)
    reasons = judge(Evidence(RequestView(recorded.records(*[ANSWER] * 21)), about)).reasons
    found = [reason.measured for reason in reasons if reason.code == "model-changed"]
    assert found == [measured] * (measured is not None)


def test_a_long_list_of_models_is_cut():
    about = recorded.facts(answered_models=[named(f"m{number}") for number in range(5)])
    reasons = judge(Evidence(RequestView(recorded.records(*[ANSWER] * 6)), about)).reasons
    (found,) = [reason.measured for reason in reasons if reason.code == "model-changed"]
    assert found.startswith("5 models: m0 (")
    assert found.endswith(", 2 more")
