"""Events out of bodies: engines' habits one by one, and any stream against the plain reference."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.apis.payload import CallPart, Payload
from harness.load.sse import Parsed, parse_document, parse_events
from harness.records.layout import UNKNOWN, EventKind
from tests.factories.answers import DONE, FINISH, USAGE, delta, event
from tests.factories.sse_reference import read_stream


def kinds(body: bytes) -> list[EventKind]:
    return [EventKind(kind) for kind in parse_events(body, ended=True).kinds]


def test_role_chunk_text_finish_usage_done() -> None:
    body = b"".join(map(event, [delta("", role="assistant"), delta("Hel"), delta("lo"), FINISH, USAGE, DONE]))
    parsed = parse_events(body, ended=True)
    assert kinds(body) == [
        EventKind.OTHER,
        EventKind.TEXT,
        EventKind.TEXT,
        EventKind.OTHER,
        EventKind.USAGE,
        EventKind.DONE,
    ]
    assert parsed.text() == "Hello"
    assert parsed.finish_reason == "stop"
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (11, 4, 7)
    assert parsed.done
    assert sum(parsed.sizes) == len(body)


@pytest.mark.parametrize(
    ("payload", "kind", "text"),
    [
        (delta(role="assistant"), EventKind.OTHER, ""),
        (b'{"choices":[{"delta":{"content":null}}]}', EventKind.OTHER, ""),
        (delta(None, reasoning="hm"), EventKind.REASONING, "hm"),
        (delta(None, reasoning_content="hm"), EventKind.REASONING, "hm"),
        (delta(None, reasoning_text="hm"), EventKind.REASONING, "hm"),
        (delta(None, thinking="hm"), EventKind.REASONING, "hm"),
        (delta(None, reasoning="hm", reasoning_content="hm"), EventKind.REASONING, "hm"),
        (
            delta([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            EventKind.REASONING,
            "hm",
        ),
        (delta("", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]), EventKind.REASONING, "hm"),
        (
            delta("", reasoning="hm", reasoning_details=[{"type": "reasoning.summary", "summary": "hm"}]),
            EventKind.REASONING,
            "hm",
        ),
        (delta("", reasoning_details=[{"type": "reasoning.encrypted", "data": "aGk="}]), EventKind.OTHER, ""),
        (delta("hm", extra_content={"google": {"thought": True}}), EventKind.REASONING, "hm"),
        (delta("hi", extra_content={"google": {"thought_signature": "aGk="}}), EventKind.TEXT, "hi"),
        (
            delta([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]),
            EventKind.REASONING,
            "hm",
        ),
        (delta(None, refusal="I can't"), EventKind.TEXT, "I can't"),
        (delta("a", refusal=None), EventKind.TEXT, "a"),
        (
            delta(None, tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]),
            EventKind.TOOL_CALL,
            '{"a":',
        ),
        (delta(None, tool_calls=[{"index": 0, "function": {"name": "f"}}]), EventKind.TOOL_CALL, "f"),
        (delta(None, tool_calls={"name": "f", "arguments": "{}"}), EventKind.OTHER, ""),
        (b'{"choices":[{"index":0,"text":"abc"}]}', EventKind.TEXT, "abc"),
        (b'{"choices":[{"delta":null,"message":{"content":"a"}}]}', EventKind.TEXT, "a"),
        (b'{"choices":[{"delta":{},"message":{"content":"all so far"}}]}', EventKind.OTHER, ""),
        (b'{"choices":[{"delta":{"content":[{"type":"text","text":"ab"}]}}]}', EventKind.TEXT, "ab"),
        (b'{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}', EventKind.TEXT, "ab"),
        (b'{"choices":[]}', EventKind.OTHER, ""),
        (b'{"choices":[],"usage":{"completion_tokens":3}}', EventKind.USAGE, ""),
        # A token without text, of an engine that counts in each event.
        (b'{"choices":[{"delta":{"content":""}}],"usage":{"completion_tokens":3}}', EventKind.OTHER, ""),
    ],
)
def test_payload_kinds(payload: bytes, kind: EventKind, text: str) -> None:
    parsed = parse_events(event(payload), ended=True)
    assert (list(parsed.kinds), parsed.text()) == ([kind], text)


_CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("chunks", "kinds", "chars"),
    [
        ([delta("a", reasoning="hm")], [EventKind.REASONING, EventKind.TEXT], [2, 1]),
        (
            [delta(None, reasoning="hm"), delta("", role="assistant"), delta("a", reasoning="so")],
            [EventKind.REASONING, EventKind.OTHER, EventKind.TEXT],
            [4, 0, 1],
        ),
        ([delta("a"), delta("b", reasoning="hm")], [1, EventKind.REASONING, EventKind.TEXT], [1, 2, 1]),
        ([delta("a", tool_calls=[_CALL])], [EventKind.TEXT, EventKind.TOOL_CALL], [1, 3]),
    ],
)
def test_what_one_event_holds_of_several_kinds_stays_apart(
    chunks: list[bytes], kinds: list[int], chars: list[int]
) -> None:
    """With several tokens an event, one may hold the end of the reasoning and the beginning of the answer."""
    body = b"".join(map(event, chunks))
    parsed = parse_events(body, ended=True)
    assert (list(parsed.kinds), list(parsed.chars)) == (kinds, chars)
    assert sum(parsed.sizes) == len(body)
    assert len(parsed.text()) == sum(chars)


def test_comments_and_keep_alives_are_counted_apart() -> None:
    body = b": keepalive 1/9\n\n" + event(delta("x")) + b":\n\n: note\n" + event(delta("y"))
    assert kinds(body) == [EventKind.COMMENT, EventKind.TEXT, EventKind.COMMENT, EventKind.TEXT]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end(line_end: bytes) -> None:
    body = b"".join(event(data, line_end) for data in [delta("a"), delta("b"), DONE])
    parsed = parse_events(body, ended=True)
    assert (parsed.text(), parsed.done) == ("ab", True)
    assert sum(parsed.sizes) == len(body)


def test_a_carriage_return_may_be_half_of_a_line_end() -> None:
    body = event(delta("a"), b"\r\n")[:-1] + event(delta("b"), b"\r\n") + event(delta("c"), b"\r\n")
    parsed = parse_events(body, ended=True)
    assert parsed.text() == "abc"
    assert parsed.sizes.tolist() == [len(event(delta("a"), b"\r\n")) - 1] + 2 * [
        len(event(delta("b"), b"\r\n"))
    ]


def test_data_over_several_lines_and_without_the_space() -> None:
    body = b'event: message\nid: 1\ndata:{"choices":[{"delta":\ndata: {"content":"x"}}]}\n\n'
    assert parse_events(body, ended=True).text() == "x"


def test_usage_in_every_chunk_keeps_the_last_and_the_text_kind() -> None:
    chunks = []
    for count in (1, 2, 3):
        chunk = json.loads(delta("t"))
        chunk["usage"] = {"prompt_tokens": 5, "completion_tokens": count}
        chunks.append(event(json.dumps(chunk).encode()))
    parsed = parse_events(b"".join(chunks), ended=True)
    assert list(parsed.kinds) == [EventKind.TEXT] * 3
    assert (parsed.prompt_tokens, parsed.output_tokens, parsed.cached_tokens) == (5, 3, UNKNOWN)


def test_llama_cpp_timings_stand_in_for_usage() -> None:
    chunk = b'{"choices":[],"timings":{"cache_n":30,"prompt_n":6,"predicted_n":9}}'
    parsed = parse_events(event(chunk), ended=True)
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (36, 30, 9)


@pytest.mark.parametrize(
    "where",
    [
        '{"choices":[{"delta":{},"finish_reason":"stop","usage":%s}]}',
        '{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null,"x_groq":{"usage":%s}}',
    ],
)
@pytest.mark.parametrize("name", ["cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens"])
def test_usage_is_found_where_services_put_it(where: str, name: str) -> None:
    usage = json.dumps({"prompt_tokens": 36, "completion_tokens": 9, name: 30})
    parsed = parse_events(event((where % usage).encode()), ended=True)
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (36, 30, 9)
    assert parsed.finish_reason == "stop"


@pytest.mark.parametrize(("more", "prompt"), [({}, 36), ({"prompt_tokens": 40}, 40)])
def test_usage_may_have_the_names_of_responses(more: dict[str, int], prompt: int) -> None:
    """A gateway may write both, and a count of its own under one of them."""
    own = {"input_tokens": 36, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 30}}
    usage = {**own, **({**more, "completion_tokens": 9} if more else {})}
    parsed = parse_events(event(json.dumps({"choices": [], "usage": usage}).encode()), ended=True)
    assert (parsed.prompt_tokens, parsed.output_tokens) == (prompt, 9)
    assert parsed.cached_tokens == (UNKNOWN if more else 30)


@pytest.mark.parametrize(
    ("total", "output", "reasoning"), [(23, 9, 4), (27, 13, 4), (None, 9, 4), (34, 20, 11), (23, 9, 11)]
)
def test_reasoning_is_a_part_of_the_output(total: int | None, output: int, reasoning: int) -> None:
    """xAI counts it next to the output, which the total shows."""
    details = {"reasoning_tokens": reasoning}
    usage = {"prompt_tokens": 14, "completion_tokens": 9, "completion_tokens_details": details}
    chunk = {"choices": [], "usage": {**usage, "total_tokens": total}}
    parsed = parse_events(event(json.dumps(chunk).encode()), ended=True)
    assert (parsed.prompt_tokens, parsed.output_tokens, parsed.reasoning_tokens) == (14, output, reasoning)


@pytest.mark.parametrize(
    "counts", [{"reasoning_tokens": 1}, {"reasoning_tokens": 4, "prompt_tokens": 14, "total_tokens": 17}]
)
def test_reasoning_alone_is_no_output(counts: dict[str, int]) -> None:
    chunk = {"choices": [], "usage": counts}
    assert parse_events(event(json.dumps(chunk).encode()), ended=True).output_tokens == UNKNOWN


def test_no_prompt_has_0_tokens() -> None:
    """Gateways without a count of their own write zeros."""
    chunks = [b'{"choices":[],"usage":{"prompt_tokens":%d}}' % count for count in (7, 0)]
    assert parse_events(event(chunks[1]), ended=True).prompt_tokens == UNKNOWN
    assert parse_events(b"".join(map(event, chunks)), ended=True).prompt_tokens == 7


@pytest.mark.parametrize("wrong", ["-1", "true", '"7"', "1e9", "99999999999"])
def test_counts_that_are_no_counts_stay_unknown(wrong: str) -> None:
    body = event(f'{{"choices":[],"usage":{{"completion_tokens":{wrong}}}}}'.encode())
    assert parse_events(body, ended=True).output_tokens == UNKNOWN


def test_a_count_may_be_written_as_a_decimal() -> None:
    usage = b'{"prompt_tokens":7.0,"completion_tokens":%b}'
    for written, tokens in ((b"11.0", 11), (b"1.1e1", 11), (b"11.5", UNKNOWN), (b"1e999", UNKNOWN)):
        body = event(b'{"choices":[],"usage":%b}' % (usage % written))
        parsed = parse_events(body, ended=True)
        assert (parsed.prompt_tokens, parsed.output_tokens) == (7, tokens)


def test_zeros_behind_a_count_are_none() -> None:
    """A gateway may add a block of its own to that of the engine."""
    body = b"".join(_counted(content, count) for content, count in (("a", 1), ("b", 2), ("", 0)))
    assert parse_events(body, ended=True).reported_tokens() == 2


@pytest.mark.parametrize(
    "block",
    [
        b'data: {"error":{"message":"out of memory","code":500}}',
        b'data: {"object":"error","message":"out of memory"}',
        b'data: {"type":"error","message":"out of memory"}',
        b'event: error\ndata: {"detail":"out of memory"}',
        b'error: {"code":500,"message":"out of memory"}',
        b'{"error":"out of memory","error_type":"overloaded"}',
        b'data: {"code":500,"message":"out of memory"}',
        b'data: {"code":"InternalError","message":"out of memory","request_id":"7"}',
        b"event: error\ndata: out of memory",
        b'data: {"error_code":"LIMIT","message":"out of memory"}',
        b'data: {"detail":"out of memory"}',
        b'data: {"result":null,"success":false,"errors":[{"code":7,"message":"out of memory"}]}',
        b'data: {"choices":[{"delta":{"content":""},"error":{"code":502,"message":"out of memory"}}]}',
        b'data: {"choices":[{"delta":{}}],"x_groq":{"error":"out of memory"}}',
        b'data: {"choices":null,"base_resp":{"status_code":1002,"status_msg":"out of memory"}}',
    ],
)
def test_error_events(block: bytes) -> None:
    parsed = parse_events(event(delta("a")) + block + b"\n\n", ended=True)
    assert list(parsed.kinds) == [EventKind.TEXT, EventKind.ERROR]
    assert parsed.error == "out of memory"


@pytest.mark.parametrize(
    "more",
    [
        {"code": 0, "message": "fine"},
        {"code": 20000, "message": "success"},
        {"code": "", "message": ""},
        {"code": 500, "message": {"content": "a"}},
        {"code": 500, "message": "a", "choices": []},
        {"detail": "a", "choices": [{"delta": {}, "error": None}], "x_groq": {"id": "7"}},
        {"detail": None, "errors": []},
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"message": "a"},
    ],
)
def test_a_message_with_a_code_is_no_error_by_itself(more: dict[str, object]) -> None:
    parsed = parse_events(event(delta("a")) + event(json.dumps(more).encode()), ended=True)
    assert (parsed.kinds[0], parsed.error) == (EventKind.TEXT, "")


@pytest.mark.parametrize(
    "block", [b"data: {", b"data: [1]", b"data: \xff", b'data: {"choices":' + b"[" * 100_000]
)
def test_malformed_events_do_not_lose_the_others(block: bytes) -> None:
    parsed = parse_events(event(delta("a")) + block + b"\n\n" + event(delta("b")), ended=True)
    assert parsed.malformed
    assert parsed.text() == "ab"


@pytest.mark.parametrize("block", [b"foo: bar", b"id: 7\nretry: 10", b"id", b"<html>"])
def test_fields_without_a_meaning_are_ignored(block: bytes) -> None:
    body = event(delta("a")) + block + b"\n\n" + block + b"\n" + event(delta("b"))
    parsed = parse_events(body, ended=True)
    assert (kinds(body), parsed.text(), parsed.malformed) == ([EventKind.TEXT] * 2, "ab", "")
    assert sum(parsed.sizes) == len(body)


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    body = b"\xef\xbb\xbf" + event(delta("a"))
    parsed = parse_events(body, ended=True)
    assert (parsed.text(), list(parsed.sizes)) == ("a", [len(body)])
    assert parse_events(event(delta("a")) + body, ended=True).text() == "a"


@pytest.mark.parametrize("place", [{"index": 0}, {}], ids=["the first place", "no place"])
def test_calls_with_ids_of_their_own_are_apart_at_one_place(place) -> None:
    def part(**more: object) -> bytes:
        return event(delta(None, tool_calls=[place | more]))

    events = [
        part(id="a", function={"name": "f", "arguments": ""}),
        part(function={"arguments": '{"n": 1}'}),
        part(id="b", function={"name": "f", "arguments": "{"}),
        part(id="b", function={"name": "f", "arguments": "}"}),
        part(id="", function={"arguments": " "}),
    ]
    parsed = parse_events(b"".join(events), ended=True)
    assert json.loads(parsed.tool_calls()) == [
        {"id": "a", "name": "f", "arguments": '{"n": 1}'},
        {"id": "b", "name": "f", "arguments": "{} "},
    ]


def test_a_call_that_is_moved_is_behind_all_that_came() -> None:
    calls = [(4, "a"), (4, "b"), (2, "c"), (2, "d"), (6, "e")]
    events = [
        event(
            delta(None, tool_calls=[{"index": at, "id": name, "function": {"name": "f", "arguments": name}}])
        )
        for at, name in calls
    ]
    parsed = parse_events(b"".join(events), ended=True)
    assert [call["arguments"] for call in json.loads(parsed.tool_calls())] == ["c", "a", "b", "d", "e"]


def test_a_tool_call_begins_with_its_name_which_counts_once() -> None:
    def call(**function: str) -> bytes:
        return event(delta(None, tool_calls=[{"index": 0, "id": "c", "function": function}]))

    body = call(name="look_up", arguments="") + call(name="look_up", arguments="") + call(arguments="{}")
    parsed = parse_events(body, ended=True)
    assert list(parsed.kinds) == [EventKind.TOOL_CALL, EventKind.OTHER, EventKind.TOOL_CALL]
    assert (list(parsed.chars), parsed.text()) == ([7, 0, 2], "look_up{}")
    assert json.loads(parsed.tool_calls()) == [{"id": "c", "name": "look_up", "arguments": "{}"}]


def _counted(content: str, count: int | None) -> bytes:
    usage = {} if count is None else {"usage": {"completion_tokens": count}}
    return event(json.dumps({"choices": [{"index": 0, "delta": {"content": content}}], **usage}).encode())


@pytest.mark.parametrize(
    ("chunks", "first"),
    [
        ([("", 0), ("abc", 3), ("d", 4)], 3),
        ([("", 2), ("abc", None)], 2),  # counted ahead of the text
        ([("", 0), ("abc", None), ("d", 4)], UNKNOWN),
        ([("a", None), ("b", None)], UNKNOWN),
    ],
)
def test_tokens_by_the_first_text_event(chunks: list[tuple[str, int | None]], first: int) -> None:
    body = b"".join(_counted(content, count) for content, count in chunks)
    assert parse_events(body, ended=True).first_tokens == first


def test_last_event_without_its_empty_line_counts_only_when_the_body_is_whole() -> None:
    body = event(delta("a")) + b"data: " + delta("b")
    assert parse_events(body, ended=True).text() == "ab"
    assert parse_events(body, ended=False).text() == "a"


def test_surrogate_halves_in_two_events_become_one_character() -> None:
    halves = [delta("@").replace(b"@", half) for half in (b"\\ud83d", b"\\ude00")]
    assert parse_events(b"".join(map(event, halves)), ended=True).text() == "😀"
    assert parse_events(event(halves[0]), ended=True).text() == "\ufffd"


@pytest.mark.parametrize(("first", "second", "chars"), [(b"", b"", [0, 1, 3]), (b"hm ", b" so", [3, 4, 3])])
def test_halves_of_reasoning_leave_the_answer_as_it_is(first: bytes, second: bytes, chars: list[int]) -> None:
    """The character counts where it is whole; an event of its first half alone has no text yet."""
    reasons = [first + b"\\ud83d", b"\\ude00" + second]
    chunks = [delta(reasoning_content="@").replace(b"@", text) for text in reasons]
    parsed = parse_events(b"".join(map(event, [*chunks, delta("yes")])), ended=True)
    assert list(parsed.chars) == chars
    assert len(parsed.text()) == sum(chars)
    assert parsed.kinds[0] == (EventKind.REASONING if first else EventKind.OTHER)


def test_whole_json_answer() -> None:
    body = (
        b'{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],'
        b'"usage":{"completion_tokens":1}}'
    )
    for document in (body, b"\xef\xbb\xbf" + body):
        parsed = parse_document(document)
        assert (list(parsed.kinds), parsed.text(), parsed.output_tokens) == ([EventKind.TEXT], "Hi", 1)


# Streams that mix what engines send; texts include what must be escaped in JSON.
_texts = st.one_of(
    st.sampled_from(["", " the", "\n", '"', "\\", "é", "😀", "data: ", "\u2028", '"}}]}\n\n', "\x00"]),
    st.text(max_size=6),
)
_payloads = st.one_of(
    st.builds(delta, _texts, ascii_only=st.booleans()),
    st.builds(delta, _texts, ascii_only=st.booleans()),
    st.builds(lambda text: delta(None, reasoning=text), _texts),
    st.sampled_from([DONE, FINISH, USAGE, b'{"error":"x"}', b"{", b"[]", b"", delta(role="assistant")]),
)
_blocks = st.one_of(
    st.builds(
        lambda data, sep: b"data: " + data + sep,
        _payloads,
        st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r"]),
    ),
    st.sampled_from(
        [b": hi\n\n", b"\n", b"\r\n", b"event: ping\n\n", b"data\n\n", b"junk\n\n", b"id: 1\n", b"\xff\n\n"]
    ),
)
streams = st.lists(_blocks, max_size=25).map(b"".join)


@settings(max_examples=4 * settings().max_examples)
@example(b"data: " + delta(" the") + b'\n\ndata: {"error":"x"}\n\ndata: [DONE]\n\n', True)
@given(streams, st.booleans())
def test_any_stream_reads_like_the_reference(body: bytes, ended: bool) -> None:
    parsed, reference = parse_events(body, ended=ended), read_stream(body, ended=ended)
    assert "".join(parsed.texts) == reference.text
    assert len(parsed.kinds) == len(parsed.sizes) == len(parsed.chars) == reference.events
    assert sum(1 for chars in parsed.chars if chars) == reference.text_events
    ends = [sum(parsed.sizes[: i + 1]) for i in range(len(parsed.sizes))]
    assert ends == reference.ends
    assert parsed.done == reference.done
    assert bool(parsed.malformed) == reference.malformed
    assert parsed.kinds.count(EventKind.ERROR) == reference.errors


@given(streams, st.data())
def test_a_cut_body_reads_like_the_reference(body: bytes, data: st.DataObject) -> None:
    cut = body[: data.draw(st.integers(0, len(body)))]
    parsed, reference = parse_events(cut, ended=False), read_stream(cut, ended=False)
    assert "".join(parsed.texts) == reference.text
    assert len(parsed.kinds) == reference.events


class Unsearched(dict[int, list[str]]):
    def values(self) -> Any:
        raise AssertionError("calls times ends: a hostile answer holds up the window")


def test_the_call_that_ends_is_found_by_its_id() -> None:
    parsed = Parsed(calls=Unsearched())
    for whole in (False, True):
        for place, name in enumerate(("a", "b")):
            part = CallPart(1 - place if whole else place, name, "f", "{}" if whole else "", whole=whole)
            parsed.add(Payload(EventKind.TOOL_CALL, calls=(part,)), 1)
    assert [call["id"] + call["arguments"] for call in json.loads(parsed.tool_calls())] == ["a{}", "b{}"]
    assert list(parsed.chars) == [1, 1, 2, 2]
