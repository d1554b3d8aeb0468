"""The scripted server's answers with named events, in each engine's habits, as the load room reads them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness.apis import API_NAMES, APIS
from harness.host import paths
from harness.load.sse import parse_document, parse_events
from harness.mockserver.ask import BadAskError, parse_ask
from harness.mockserver.dialects import DIALECTS
from harness.mockserver.event_answers import answer_to
from harness.mockserver.habits import Habits
from harness.mockserver.script import NS_PER_MS, Script, Write, text
from harness.records.layout import EventKind
from harness.spec.backend_refs import load_backend

TOKENS, PROMPT, CACHED = 40, 9, 4
ENGINES = ("vllm", "llamacpp", "sglang", "truth")
BODIES = {
    "chat": {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": TOKENS},
    "completions": {"prompt": "hello there", "max_tokens": TOKENS},
    "responses": {"input": [{"role": "user", "content": "hello there"}], "max_output_tokens": TOKENS},
    "messages": {"messages": [{"role": "user", "content": "hello there"}], "max_tokens": TOKENS},
}

TEXT_APIS = [name for name in API_NAMES if APIS[name].gives == "text"]


def asked(engine: str, api: str, **fields: Any) -> Any:
    dialect = DIALECTS[engine]
    style = {"responses": dialect.responses, "messages": dialect.messages}.get(api)
    body = json.dumps(BODIES[api] | {"stream_options": {"include_usage": True}} | fields).encode()
    return parse_ask(body, dialect, chat=api != "completions", chars_per_token=4, style=style)


def answer(
    engine: str, api: str, *, stream: bool = True, reason: str = "length", reasoning: int = 0
) -> Iterator[Write]:
    dialect = DIALECTS[engine]
    dues = iter([(100 + 10 * index) * NS_PER_MS for index in range(TOKENS)])
    return answer_to(
        ask=asked(engine, api, stream=stream),
        script=Script(TOKENS, reason, prompt_tokens=PROMPT, cached_tokens=CACHED, dues_ns=dues),
        habits=Habits(reasoning_tokens=reasoning),
        answer_id="id-0",
        created=1,
        model="simulated",
        shape=dialect.shape,
        completions_usage=dialect.completions_usage,
    ).body()


@pytest.mark.parametrize("api", TEXT_APIS)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_stream_says_what_was_scripted(engine: str, api: str) -> None:
    body = b"".join(write.data for write in answer(engine, api))
    parsed = parse_events(body, APIS[api], ended=True)
    assert parsed.text() == text("ascii", 0, TOKENS)
    assert parsed.kinds.count(EventKind.TEXT) == TOKENS
    assert (parsed.prompt_tokens, parsed.cached_tokens, parsed.output_tokens) == (PROMPT, CACHED, TOKENS)
    assert (parsed.done, parsed.error, parsed.malformed) == (True, "", "")
    cut = {
        "responses": "completed" if engine == "llamacpp" else "max_output_tokens",
        "messages": "max_tokens",
    }
    assert parsed.finish_reason == cut.get(api, "length")
    assert (b"[DONE]" in body) == (api in ("chat", "completions"))


@pytest.mark.parametrize("api", ["responses", "messages"])
@pytest.mark.parametrize("engine", ENGINES)
def test_reasoning_comes_first_and_apart(engine: str, api: str) -> None:
    body = b"".join(write.data for write in answer(engine, api, reasoning=3))
    parsed = parse_events(body, APIS[api], ended=True)
    generated = [kind for kind in parsed.kinds if kind in (EventKind.TEXT, EventKind.REASONING)]
    assert generated == [EventKind.REASONING] * 3 + [EventKind.TEXT] * (TOKENS - 3)
    assert parsed.text() == text("ascii", 0, TOKENS)


@pytest.mark.parametrize("api", TEXT_APIS)
@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_that_is_not_streamed(engine: str, api: str) -> None:
    (write,) = answer(engine, api, stream=False, reason="stop")
    parsed = parse_document(write.data, APIS[api])
    assert parsed.text() == text("ascii", 0, TOKENS)
    assert (parsed.prompt_tokens, parsed.output_tokens) == (PROMPT, TOKENS)
    assert parsed.finish_reason == {"responses": "completed", "messages": "end_turn"}.get(api, "stop")


def documents(engine: str, api: str) -> list[dict[str, Any]]:
    body = b"".join(write.data for write in answer(engine, api))
    data = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in data]


def test_events_of_a_response_are_numbered_without_a_gap() -> None:
    for engine in ("vllm", "sglang"):
        numbers = [document["sequence_number"] for document in documents(engine, "responses")]
        assert numbers == list(range(len(numbers)))
    assert not any("sequence_number" in document for document in documents("llamacpp", "responses"))


def test_created_leaves_before_the_prefill_but_for_llama_cpp() -> None:
    for engine, early in (("vllm", True), ("sglang", True), ("llamacpp", False)):
        first = next(answer(engine, "responses"))
        assert b"response.created" in first.data
        assert (first.due_ns == 0, first.events == 0) == (early, early)


def test_the_last_event_of_a_response_that_was_cut() -> None:
    last = {engine: documents(engine, "responses")[-1] for engine in ("vllm", "sglang", "llamacpp")}
    assert [last[engine]["type"] for engine in last] == [
        "response.completed", "response.incomplete", "response.completed",
    ]  # fmt: skip
    assert [last[engine]["response"]["status"] for engine in last] == [
        "incomplete",
        "incomplete",
        "completed",
    ]
    assert "timings" in last["llamacpp"]


def test_the_two_counts_of_a_messages_input() -> None:
    by_engine = {engine: documents(engine, "messages") for engine in ("vllm", "llamacpp")}
    starts = {engine: events[0]["message"]["usage"] for engine, events in by_engine.items()}
    ends = {engine: events[-2]["usage"] for engine, events in by_engine.items()}
    assert (starts["vllm"]["input_tokens"], ends["vllm"]["input_tokens"]) == (PROMPT, PROMPT - CACHED)
    assert starts["llamacpp"]["input_tokens"] == PROMPT - CACHED
    assert ends["llamacpp"] == {"output_tokens": TOKENS}


def test_usage_of_a_completion() -> None:
    *_, finish, usage = documents("vllm", "completions")
    assert usage["choices"] == []
    assert "usage" not in finish
    last = documents("llamacpp", "completions")[-1]
    assert last["choices"][0]["finish_reason"] == "length"
    assert {"usage", "timings"} <= last.keys()


def test_what_requests_mean() -> None:
    assert asked("sglang", "responses").max_tokens == TOKENS - 2
    assert asked("vllm", "responses", ignore_eos=True).ignore_eos
    assert not asked("sglang", "responses", ignore_eos=True).ignore_eos
    assert not any(asked(engine, "messages", ignore_eos=True).ignore_eos for engine in ENGINES)
    alone, with_system = asked("vllm", "messages"), asked("vllm", "messages", system="Be brief.")
    assert len(with_system.prompt) > len(alone.prompt)
    assert asked("vllm", "responses", input="hello there").prompt == asked("vllm", "chat").prompt
    with pytest.raises(BadAskError):
        asked("vllm", "responses", input=None)


def test_shapes_are_read_where_each_api_has_them() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    style = {"type": "json_schema", "schema": schema}
    expected = asked(
        "vllm", "chat", response_format={"type": "json_schema", "json_schema": {"schema": schema}}
    )
    assert expected.words
    assert asked("vllm", "responses", text={"format": {**style, "name": "x"}}).words == expected.words
    assert asked("vllm", "messages", output_config={"format": style}).words == expected.words


def test_simulators_have_the_apis_that_definitions_declare() -> None:
    for name in set(paths.definitions("backends")) - {"models", "openai"}:
        definition = load_backend(name)
        simulator = definition.backend.simulator or name
        dialect = DIALECTS[simulator]
        answered = {api for api in API_NAMES[2:] if getattr(dialect, api)}
        declared = set(definition.dialect.apis) - {"completions"}
        assert declared <= answered, name
        assert simulator != name or declared == answered, name
