"""What the streams of each API say, in the shapes of real engines."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apis import APIS, CHAT, COMPLETIONS, MESSAGES, RESPONSES, Api
from harness.load.job import Promised
from harness.load.sse import Parsed, parse_answer, parse_document, parse_events
from harness.mockserver.wire import chunk
from harness.records.layout import UNKNOWN, EventKind, Outcome
from tests.factories.answers import CHUNKED, chunked, field, head, play
from tests.factories.api_streams import completions, llamacpp_messages, named, vllm_messages, vllm_responses

TEXTS = ["The", " sea", ' is "', "blue\n"]
WHOLE = {
    "completions": (COMPLETIONS, completions(TEXTS), "length"),
    "responses": (RESPONSES, vllm_responses(TEXTS), "completed"),
    "messages of vLLM": (MESSAGES, vllm_messages(TEXTS), "end_turn"),
    "messages of llama.cpp": (MESSAGES, llamacpp_messages(TEXTS), "end_turn"),
}
ONE_TEXT = {  # by API, an event with the text a
    "chat": b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n',
    "completions": b'data: {"choices":[{"text":"a"}]}\n\n',
    "responses": named({"type": "response.output_text.delta", "delta": "a"}),
    "messages": named({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}),
}

STREAMED = [api for api in APIS.values() if api.gives == "text"]


def read(api: Api, *documents: dict[str, object]) -> Parsed:
    return parse_events(b"".join(map(named, documents)), api, ended=True)


@pytest.mark.parametrize(("api", "body", "reason"), WHOLE.values(), ids=WHOLE)
def test_a_whole_stream(api: Api, body: bytes, reason: str) -> None:
    parsed = parse_events(body, api, ended=True)
    assert parsed.text() == "".join(TEXTS)
    assert [kind for kind in parsed.kinds if kind == EventKind.TEXT] == [EventKind.TEXT] * len(TEXTS)
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (11, 4, len(TEXTS))
    assert (parsed.finish_reason, parsed.done, parsed.error, parsed.malformed) == (reason, True, "", "")
    assert parsed.first_tokens == UNKNOWN
    assert sum(parsed.sizes) == len(body)


def test_no_time_to_first_token_is_taken_before_the_first_delta() -> None:
    body = vllm_responses(TEXTS)
    first = body.index(b"event: response.output_text.delta")
    reads = [body[:first], body[first:]]
    settled = play([head(CHUNKED), *map(chunk, reads), b"0\r\n\r\n"], api=RESPONSES)
    assert settled.outcome is Outcome.OK
    assert field(settled, "first_text_ns") == 3  # the second read of the body


@pytest.mark.parametrize(("api", "body", "reason"), WHOLE.values(), ids=WHOLE)
def test_events_in_another_order_lose_no_text(api: Api, body: bytes, reason: str) -> None:
    """As in chat: what tells the end may come first, and what opens a part may be missing."""
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    texts = [event for event in events if any(json.dumps(text).encode()[1:-1] in event for text in TEXTS)]
    deltas = [event for event in texts if b"delta" in event or api is COMPLETIONS][: len(TEXTS)]
    for order in ([events[-1], *events[:-1]], [*deltas, events[-1]]):
        settled = play([head(CHUNKED), chunked(order)], api=api)
        assert (settled.outcome, settled.text) == (Outcome.OK, "".join(TEXTS))


@pytest.mark.parametrize(("api", "body", "reason"), WHOLE.values(), ids=WHOLE)
def test_a_stream_that_breaks_off_is_a_failure(api: Api, body: bytes, reason: str) -> None:
    promised = Promised(finish_reason=True)
    last_text = body.rindex(b"blue")
    cut = body[: body.index(b"\n\n", last_text) + 2]
    settled = play([head(CHUNKED), chunked([cut])], promised=promised, api=api)
    assert settled.outcome is Outcome.UNFINISHED
    assert api.end in settled.error
    settled = play([head(CHUNKED), chunked([cut])[:-5]], promised=promised, api=api)
    assert settled.outcome is Outcome.TRUNCATED


@pytest.mark.parametrize("api", [RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_the_end_of_chat_is_not_the_end_of_another_api(api: Api) -> None:
    """A gateway may write it after the stream of an engine that died."""
    whole = {"responses": vllm_responses(TEXTS), "messages": vllm_messages(TEXTS)}[api.name]
    done = b"data: [DONE]\n\n"
    cut = whole[: whole.index(b"\n\n", whole.index(b"blue")) + 2]
    assert play([head(CHUNKED), chunked([cut, done])], api=api).outcome is Outcome.UNFINISHED
    assert play([head(CHUNKED), chunked([whole, done])], api=api).outcome is Outcome.OK


@pytest.mark.parametrize("api", STREAMED, ids=lambda api: api.name)
def test_an_error_that_a_done_follows_is_a_failure(api: Api) -> None:
    assert api.name in ONE_TEXT, "add to ONE_TEXT an event of the API with the text a"
    died = b'data: {"error": {"message": "EngineCore died", "code": 500}}\n\ndata: [DONE]\n\n'
    settled = play([head(CHUNKED), chunked([ONE_TEXT[api.name], died])], api=api)
    assert (settled.outcome, settled.error, settled.text) == (Outcome.STREAM_ERROR, "EngineCore died", "a")


@pytest.mark.parametrize(
    ("api", "event"),
    [
        (RESPONSES, {"type": "error", "code": "server_error", "message": "no room"}),
        (RESPONSES, {"type": "response.failed", "response": {"error": {"message": "no room"}}}),
        (RESPONSES, {"type": "response.completed", "response": {"status": "failed", "error": "no room"}}),
        (MESSAGES, {"type": "error", "error": {"type": "overloaded_error", "message": "no room"}}),
        (MESSAGES, {"type": "error", "message": "no room"}),
    ],
)
def test_errors_have_their_own_events(api: Api, event: dict[str, object]) -> None:
    parsed = read(api, event)
    assert parsed.error == "no room"
    assert list(parsed.kinds) == [EventKind.ERROR]


@pytest.mark.parametrize("api", [RESPONSES, MESSAGES], ids=lambda api: api.name)
@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.audio.delta", "delta": "UklGRg=="},
        {"type": "ping"},
        {"choices": [{"text": "a"}]},
        {},
    ],
)
def test_unknown_events_say_nothing(api: Api, event: dict[str, object]) -> None:
    document: dict[str, object] = {"type": "ping", **event}
    parsed = read(api, document)
    ping = api is MESSAGES and document["type"] == "ping"
    kind = EventKind.COMMENT if ping else EventKind.OTHER
    assert (list(parsed.kinds), parsed.text(), parsed.error) == ([kind], "", "")


def test_an_event_that_keeps_the_connection_is_no_token_without_text() -> None:
    """A gap with such a token is left out of ITL, and these come where the server is silent for long."""
    for api, kind in ((MESSAGES, "ping"), (RESPONSES, "keepalive")):
        assert list(read(api, {"type": kind}).kinds) == [EventKind.COMMENT]


@pytest.mark.parametrize(
    ("status", "reason", "seen"),
    [
        ("incomplete", "max_output_tokens", "max_output_tokens"),
        ("incomplete", None, "incomplete"),
        ("completed", None, "completed"),
    ],
)
def test_why_a_response_ended(status: str, reason: str | None, seen: str) -> None:
    body = vllm_responses(TEXTS, status=status, reason=reason)
    assert parse_events(body, RESPONSES, ended=True).finish_reason == seen


def test_an_incomplete_response_without_a_reason_is_no_whole_answer() -> None:
    body = vllm_responses(TEXTS, status="incomplete")
    assert play([head(CHUNKED), chunked([body])], api=RESPONSES).outcome is Outcome.ABORTED


def test_the_end_of_a_response_makes_up_for_a_broken_connection() -> None:
    for api, body, _ in WHOLE.values():
        assert play([head(CHUNKED), chunked([body])[:-5]], api=api).outcome is Outcome.OK


def test_reasoning_and_tool_calls_of_responses() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": ""}
    parsed = read(
        RESPONSES,
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "1}"},
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": '{"a":1}'},
    )
    assert list(parsed.kinds) == [
        EventKind.OTHER, EventKind.REASONING, *[EventKind.TOOL_CALL] * 3, EventKind.OTHER,
    ]  # fmt: skip
    assert parsed.text() == 'hmlook{"a":1}'
    assert json.loads(parsed.tool_calls()) == [{"id": "c1", "name": "look", "arguments": '{"a":1}'}]


@pytest.mark.parametrize("part", ["_text", "_summary_text", "", "_summary"])
def test_reasoning_of_responses_has_several_names(part: str) -> None:
    parsed = read(RESPONSES, {"type": f"response.reasoning{part}.delta", "delta": "hm"})
    assert (list(parsed.kinds), parsed.text()) == ([EventKind.REASONING], "hm")


def _item(kind: str, **fields: object) -> dict[str, object]:
    item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "", **fields}
    return {"type": f"response.output_item.{kind}", "output_index": 1, "item": item}


@pytest.mark.parametrize(
    ("events", "chars"),
    [
        ([_item("added"), "done", _item("done", arguments='{"a":1}')], [4, 7, 0]),
        ([_item("added"), _item("done", arguments='{"a":1}')], [4, 7]),
        ([_item("done", arguments='{"a":1}')], [11]),
        ([_item("added", arguments='{"a":1}'), "done"], [11, 0]),
        ([_item("added"), "delta", "done", _item("done", call_id="c2", arguments='{"a":1}')], [4, 7, 0, 0]),
        (["done", _item("done", arguments='{"a":1}')], [0, 11]),
    ],
)
def test_arguments_of_a_response_that_come_whole_count_once(
    events: list[str | dict[str, object]], chars: list[int]
) -> None:
    kinds: dict[str, dict[str, object]] = {
        name: {"type": f"response.function_call_arguments.{name}", "output_index": 1, key: '{"a":1}'}
        for name, key in (("delta", "delta"), ("done", "arguments"))
    }
    parsed = read(RESPONSES, *(kinds[event] if isinstance(event, str) else event for event in events))
    assert list(parsed.chars) == chars
    assert json.loads(parsed.tool_calls()) == [{"id": "c1", "name": "look", "arguments": '{"a":1}'}]


def test_the_ends_of_parallel_calls_at_one_place_add_no_call() -> None:
    added = [_item("added", call_id=name) for name in ("c1", "c2")]
    ends = [_item("done", call_id=name, arguments=f'{{"{name}":1}}') for name in ("c1", "c2")]
    calls = json.loads(read(RESPONSES, *added, *ends).tool_calls())
    assert [(call["id"], call["arguments"]) for call in calls] == [("c1", '{"c1":1}'), ("c2", '{"c2":1}')]


def test_an_answer_that_the_last_event_alone_holds_is_read_and_one_that_came_is_not_repeated() -> None:
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
        _item("done", arguments='{"a":1}')["item"],
    ]
    response = {"id": "r", "status": "completed", "output": output, "usage": {"output_tokens": 9}}
    last: dict[str, object] = {"type": "response.completed", "response": response}
    alone = read(RESPONSES, last)
    assert (alone.text(), alone.finish_reason, alone.done) == ('Hilook{"a":1}', "completed", True)
    assert json.loads(alone.tool_calls()) == [{"id": "c1", "name": "look", "arguments": '{"a":1}'}]
    behind = read(RESPONSES, {"type": "response.output_text.delta", "delta": "Hi"}, last)
    assert (behind.text(), behind.tool_calls(), behind.output_tokens) == ("Hi", "", 9)
    assert list(behind.kinds) == [EventKind.TEXT, EventKind.USAGE]


def test_a_tool_use_may_begin_with_its_whole_input() -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}
    start: dict[str, object] = {"type": "content_block_start", "index": 0, "content_block": tool}
    parsed = read(MESSAGES, start)
    assert json.loads(parsed.tool_calls()) == [{"id": "t1", "name": "look", "arguments": '{"a": 1}'}]


def test_parts_of_an_input_take_the_place_of_the_whole_one() -> None:
    """Clients of the API read it so: what a call begins with is replaced by the parts that follow."""
    events: list[dict[str, object]] = []
    for number in "12":
        tool = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {"a": 1}}
        events.append({"type": "content_block_start", "content_block": tool})
    for part in ('{"a":', "1}"):
        delta = {"type": "input_json_delta", "partial_json": part}
        events.append({"type": "content_block_delta", "delta": delta})
    calls = json.loads(read(MESSAGES, *events).tool_calls())
    assert [call["arguments"] for call in calls] == ['{"a": 1}', '{"a":1}']


def test_thinking_that_messages_count_is_a_part_of_the_output() -> None:
    """A service may count it and keep it to itself."""
    usage = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}}
    parsed = read(MESSAGES, {"type": "message_delta", "delta": {}, "usage": usage})
    assert (parsed.output_tokens, parsed.reasoning_tokens) == (30, 20)


def test_thinking_and_tool_use_of_messages() -> None:
    tool = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    parsed = read(
        MESSAGES,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": ""}},
        {"type": "content_block_start", "index": 1, "content_block": tool},
        {"type": "content_block_delta", "index": 1,
         "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
    )  # fmt: skip
    assert list(parsed.kinds) == [
        EventKind.OTHER, EventKind.REASONING, EventKind.OTHER, EventKind.TOOL_CALL, EventKind.TOOL_CALL,
    ]  # fmt: skip
    assert json.loads(parsed.tool_calls()) == [{"id": "t1", "name": "look", "arguments": '{"a":1}'}]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_a_call_of_the_servers_own_tool_is_text_that_no_chat_goes_on_with(kind: str) -> None:
    tool = {"type": kind, "id": "s1", "name": "search", "input": {}}
    parsed = read(
        MESSAGES,
        {"type": "content_block_start", "index": 0, "content_block": tool},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{}"},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
    )
    assert list(parsed.kinds) == [EventKind.TOOL_CALL, EventKind.TOOL_CALL, EventKind.TEXT]
    assert (parsed.text(), parsed.tool_calls()) == ("search{}Hi", "")


@pytest.mark.parametrize(
    "part", ["custom_tool_call_input", "mcp_call_arguments", "code_interpreter_call_code"]
)
def test_what_a_response_writes_for_other_tools_is_text(part: str) -> None:
    parsed = read(RESPONSES, {"type": f"response.{part}.delta", "output_index": 0, "delta": "1+1"})
    assert (list(parsed.kinds), parsed.text(), parsed.tool_calls()) == ([EventKind.TOOL_CALL], "1+1", "")


def test_a_chat_may_call_a_function_under_the_older_name() -> None:
    parts = [{"name": "look", "arguments": ""}, {"arguments": '{"a":'}, {"arguments": "1}"}]
    chunks: list[dict[str, object]] = [
        {"type": "", "choices": [{"delta": {"function_call": part}}]} for part in parts
    ]
    parsed = read(CHAT, *chunks)
    assert list(parsed.kinds) == [EventKind.TOOL_CALL] * 3
    assert json.loads(parsed.tool_calls()) == [{"id": "", "name": "look", "arguments": '{"a":1}'}]


def test_answers_that_are_not_streamed() -> None:
    response = {
        "object": "response",
        "status": "completed",
        "error": None,
        "output": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
            {"type": "message", "content": [{"type": "refusal", "refusal": ", no"}]},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    parsed = parse_document(json.dumps(response).encode(), RESPONSES)
    assert (parsed.text(), parsed.finish_reason, parsed.output_tokens) == ("hmHi, no", "completed", 2)
    message = {
        "type": "message",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}],
        "stop_reason": "max_tokens",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 2, "output_tokens": 2},
    }
    parsed = parse_document(json.dumps(message).encode(), MESSAGES)
    assert (parsed.text(), parsed.finish_reason, parsed.prompt_tokens) == ("hmHi", "max_tokens", 5)


@pytest.mark.parametrize(
    ("call", "key"),
    [("custom_tool_call", "input"), ("mcp_call", "arguments"), ("code_interpreter_call", "code")],
)
def test_a_whole_response_has_what_it_writes_for_other_tools(call: str, key: str) -> None:
    """An answer of such calls alone was empty, and so a request that failed."""
    response = {"object": "response", "status": "completed", "output": [{"type": call, key: "1+1"}]}
    parsed = parse_document(json.dumps(response).encode(), RESPONSES)
    assert (parsed.text(), parsed.tool_calls()) == ("1+1", "")


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_a_whole_message_has_the_calls_of_the_servers_own_tools(kind: str) -> None:
    tool = {"type": kind, "id": "s1", "name": "search", "input": {"query": "a"}}
    message = {"type": "message", "content": [tool], "stop_reason": "end_turn"}
    parsed = parse_document(json.dumps(message).encode(), MESSAGES)
    assert (parsed.text(), parsed.tool_calls()) == ('search{"query": "a"}', "")


def test_the_prompt_of_a_message_counts_what_was_written_to_the_cache() -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 5}
    parsed = read(MESSAGES, {"type": "message_start", "message": {"usage": usage}})
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (10, 2, UNKNOWN)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"input_tokens": 7, "cache_read_input_tokens": 4}, {"input_tokens": 0}),
        (
            {"input_tokens": 7, "cache_read_input_tokens": 4},
            {"input_tokens": 0, "cache_read_input_tokens": 0},
        ),
        ({"input_tokens": 0}, {"input_tokens": 7, "cache_read_input_tokens": 4}),
        (
            {"input_tokens": 11},
            {"input_tokens": 0, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 7},
        ),
    ],
)
def test_a_usage_block_of_zeros_is_no_count_of_the_prompt(start: object, end: object) -> None:
    began = {"type": "message_start", "message": {"usage": start}}
    parsed = read(MESSAGES, began, {"type": "message_delta", "delta": {}, "usage": end})
    assert (parsed.prompt_tokens, parsed.cached_tokens) == (11, 4)
    parsed = read(MESSAGES, {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 0}})
    assert parsed.prompt_tokens == UNKNOWN


_KEYS = (
    "type response item delta error message usage content content_block object status output index name id "
    "output_index incomplete_details reason stop_reason input_tokens output_tokens input_tokens_details text "
    "cached_tokens call_id arguments input thinking partial_json timings cache_n choices"
).split()
_TYPES = (
    "response.output_text.delta response.function_call_arguments.delta response.output_item.added "
    "response.completed response.failed error message message_start message_delta content_block_start "
    "content_block_delta function_call tool_use thinking text_delta thinking_delta input_json_delta response"
).split()
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 20),
        st.floats(),
        st.text(max_size=4),
        st.sampled_from(_TYPES),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
_documents = st.builds(
    lambda kind, rest: {"type": kind, **rest},
    st.sampled_from(_TYPES),
    st.dictionaries(st.sampled_from([key for key in _KEYS if key != "type"]), _values, max_size=6),
)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@given(documents=st.lists(_documents, max_size=4))
def test_nothing_that_a_server_writes_breaks_the_reading(
    api: Api, documents: list[dict[str, object]]
) -> None:
    parsed = read(api, *documents)
    assert len(parsed.kinds) == len(documents)
    assert all(UNKNOWN <= count < 10**7 for count in (parsed.prompt_tokens, parsed.output_tokens))
    for document in documents:
        parse_document(json.dumps(document).encode(), api).tool_calls()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'data: {"model":"llama","choices":[]}\n\ndata: {"model":"llama"}\n\ndata: [DONE]\n\n', ("llama",)),
        (b'data: {"id":"1","model":"llama","choices":[]}\n\ndata: {"model":"qwen"}\n\n', ("llama", "qwen")),
        (b'data: {"model":"llama"}\n\ndata: {"model": "llama"}\n\n', ("llama",)),
        (b"".join(b'data: {"model":"%s","choices":[{"text":"hi"}]}\n\n' % name for name in b"a a b".split()),
         ("a", "b")),
        (b'data: {"model": ""}\n\ndata: {"model": "gpt-4o"}\n\n', ("gpt-4o",)),
        (b'event: message_start\ndata: {"type":"message_start","message":{"model":"haiku"}}\n\n', ("haiku",)),
        (b'data: {"type":"message_start","message":{"model":"haiku"}}\n\ndata: {"type":"content_block_start",'
         b'"content_block":{"type":"tool_use","name":"buy","input":{"model":"T"}}}\n\n', ("haiku",)),
        (b'data: {"type":"response.created","response":{"model":"a"}}\n\n'
         b'data: {"type":"response.completed","response":{"model":"b"}}\n\n', ("a", "b")),
        (b'data: {"model":"a"}\n\ndata: {"model":"b"\n\ndata: ["model"]\n\n', ("a",)),
        (b'{"choices":[{"text":"is \\"model\\": \\"no\\" key"}],"model":"org\\/b"}', ("org/b",)),
        (b'{"tools":[{"properties":{"model":{"type":"string"}}}],"model":null}', ()),
        (b'{"model":"\\x"}', ()),
        (b"", ()),
    ],
)  # fmt: skip
def test_the_models_that_an_answer_names(body: bytes, names: tuple[str, ...]) -> None:
    parsed = parse_answer(body, b"application/json" if body[:1] == b"{" else b"text/event-stream", ended=True)
    assert tuple(parsed.models) == names
