"""What a client could see of an answer, however odd the answer."""

import json

import pytest

from harness.apis import RESPONSES
from harness.probe.exchange import _read
from harness.records.layout import UNKNOWN
from tests.unit.probe.answering import chunk, seen

OWN = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}


@pytest.mark.parametrize(
    ("documents", "first", "usage"),
    [
        ([chunk("", role="assistant"), chunk("a"), chunk("b"), chunk(finish="stop"), OWN], "role", "last"),
        ([chunk("a", role="assistant"), chunk("b"), chunk(finish="stop", usage=True)], "text", "finish"),
        ([chunk("a", usage=True), chunk("b", usage=True), chunk(finish="stop", usage=True)], "text", "each"),
        ([chunk("a"), chunk("b", finish="stop")], "text", "never"),
        ([], None, "never"),
    ],
)
def test_the_shapes_of_streams(documents, first, usage):
    found = seen(*documents)
    assert (found.first, found.usage) == (first, usage)
    assert found.text == "ab"[: found.text_events]
    assert found.count("output_tokens") == (UNKNOWN if usage == "never" else 2)


def test_the_shapes_of_other_apis():
    created = {"type": "response.created", "response": {"usage": None}}
    text = {"type": "response.output_text.delta", "delta": "a"}
    end = {"type": "response.completed", "response": {"status": "completed", "usage": {"output_tokens": 1}}}
    thought = {"type": "response.reasoning_text.delta", "delta": "hm"}
    found = seen(created, text, end, done=False, api=RESPONSES)
    assert (found.first, found.usage, found.text, found.finish_reason) == ("role", "last", "a", "completed")
    assert found.reasoning_fields() == set()
    assert seen(created, thought, text, end, api=RESPONSES).reasoning_fields() == {"events of its own"}
    assert seen(created, text, done=False, api=RESPONSES).usage == "never"


def test_reasoning_fields_are_named():
    found = seen(chunk(reasoning_content="hm"), chunk("a", reasoning=None))
    assert found.reasoning_fields() == {"reasoning_content"}


@pytest.mark.parametrize(
    "document",
    [
        {"choices": [None, 5, {"delta": [1]}, {"delta": {"content": {"a": 1}}, "finish_reason": 7}]},
        {"choices": 5, "usage": [1]},
        {"choices": [{"delta": None}], "usage": {"prompt_tokens": "many"}},
        [1, 2],
        None,
    ],
)
def test_nothing_that_a_server_writes_breaks_the_reading(document):
    found = seen(document, chunk("a"))
    assert found.text == "a"
    assert found.count("prompt_tokens") == UNKNOWN
    assert found.reasoning_fields() == set()
    assert found.usage in ("never", "last", "finish")


def test_an_answer_in_one_piece_is_one_event():
    body = json.dumps({"choices": [{"message": {"content": "ab"}}]}).encode()
    assert _read(200, body, [(0.0, len(body))], stream=False).text == "ab"


def test_special_tokens_are_events_without_text():
    """As vLLM writes past the end that `ignore_eos` forbids: token 2, then a line, then token 1."""
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
    found = seen(chunk("a"), chunk(""), chunk("b"), chunk(""), chunk("c", finish="length"), usage)
    assert (found.text_events, found.silent_events) == (3, 2)
    fewer = usage | {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    assert seen(chunk("a"), chunk(""), chunk("b"), chunk("c"), fewer).silent_events == 0
