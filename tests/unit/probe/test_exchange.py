"""What a client could see of an answer, however odd the answer."""

import json
import time
from dataclasses import replace

import pytest

from harness.apis import RESPONSES
from harness.client.answer import Answer
from harness.client.client import Client
from harness.host.access import Access
from harness.probe.exchange import Line
from harness.records.layout import UNKNOWN
from tests.factories.answers import DONE, event
from tests.unit.probe.answering import answered, chunk, read, seen

KIMI = {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"completion_tokens": 2}}]}
OWN = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}


@pytest.mark.parametrize(
    ("documents", "first", "usage"),
    [
        ([chunk("", role="assistant"), chunk("a"), chunk("b"), chunk(finish="stop"), OWN], "role", "last"),
        ([chunk("a", role="assistant"), chunk("b"), chunk(finish="stop", usage=True)], "text", "finish"),
        ([chunk("a", role="assistant"), chunk("b"), KIMI], "text", "finish"),
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


def test_an_event_with_text_and_a_call_is_one():
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    found = seen(chunk("Let me look", tool_calls=[call]), chunk(finish="tool_calls"))
    assert (found.text_events, len(found.text_s), found.text) == (1, 1, "Let me look")


def test_reasoning_that_is_not_shown_is_no_token_after_the_first_text():
    counts = {"completion_tokens": 51, "completion_tokens_details": {"reasoning_tokens": 40}}
    hidden = answered("x" * 11, **counts)
    assert replace(hidden, text_s=(0.1, 1.1)).tpot_s == pytest.approx(0.1)
    among = answered("x" * 51, **counts)
    assert replace(among, text_s=(0.1, 5.1)).tpot_s == pytest.approx(0.1)


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


ANSWER = {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9}}
STREAM = b"".join(event(json.dumps(chunk(text)).encode()) for text in ("a", "b", "c")) + event(DONE)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", None])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_answer_in_one_piece_is_one_event(content_type, indent):
    found = read(json.dumps(ANSWER, indent=indent).encode(), content_type)
    assert (found.ok, found.text, found.text_events) == (True, "ab", 1)
    assert (found.usage, found.count("prompt_tokens"), found.finish_reason) == ("finish", 9, "stop")


@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "text/plain", None])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"id: 1\n\n", b"\xef\xbb\xbfevent: x\r\n"])
def test_a_stream_is_read_as_the_load_reads_it(content_type, start):
    found = read(start + STREAM, content_type)
    assert (found.ok, found.text, found.text_events, len(found.documents)) == (True, "abc", 3, 3)


def test_what_is_neither_a_stream_nor_json_is_an_error():
    assert not read(b"<html></html>", "text/html").ok


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
def test_an_answer_without_a_body_is_an_error(content_type, monkeypatch):
    line = Line("http://127.0.0.1:1/x", Access(), time.monotonic() + 60)
    empty = Answer(line.url, 200, {"content-type": content_type}, b"", ())
    monkeypatch.setattr(Client, "ask", lambda *_given, **_more: empty)
    found = line.ask(b"{}")
    assert (found.ok, found.status, found.error) == (False, 200, "an answer without a body")


def test_each_event_has_the_time_at_which_its_last_byte_came():
    """The empty lines between events count: without them a late event would take an earlier arrival."""
    ends = [STREAM.index(end) + len(end) for end in (b'"a"', b'"b"', b'"c"')]
    ends = [STREAM.index(b"\n\n", end) + 2 for end in ends]
    found = read(STREAM, pieces=[(1.0, ends[0]), (2.0, ends[1]), (3.0, ends[2]), (4.0, len(STREAM))])
    assert found.text_s == (1.0, 2.0, 3.0)
    found = read(STREAM, pieces=[(1.0, ends[0]), (2.0, ends[1] - 1), (3.0, ends[2] - 1), (4.0, len(STREAM))])
    assert found.text_s == (1.0, 3.0, 4.0)


def test_special_tokens_are_events_without_text():
    """As vLLM writes past the end that `ignore_eos` forbids: token 2, then a line, then token 1."""
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
    found = seen(chunk("a"), chunk(""), chunk("b"), chunk(""), chunk("c", finish="length"), usage)
    assert (found.text_events, found.silent_events) == (3, 2)
    fewer = usage | {"usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    assert seen(chunk("a"), chunk(""), chunk("b"), chunk("c"), fewer).silent_events == 0
