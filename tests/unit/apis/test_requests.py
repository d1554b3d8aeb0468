"""How each API says a request, and the turns of a conversation."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.apis import API_NAMES, APIS, BLANK, KEPT, Api, Message
from harness.apis import TOOL as CALLED
from harness.engines.speak.dialect import Chat, render_body, unsupported_fields
from harness.errors import SpecError
from harness.load.job import Promised, Sessions
from harness.load.turns import TurnBodies
from harness.records.layout import Outcome
from harness.spec.backend_refs import load_backend, parse_backend, parse_backend_list
from harness.spec.scenario import Request, load_scenario
from harness.spec.scenario.definition import parse_scenario
from tests.factories.answers import CHUNKED, chunked, head, play
from tests.factories.api_streams import vllm_responses

TEXT_APIS = [name for name in API_NAMES if APIS[name].gives == "text"]
OF_LLAMACPP = [name for name in load_backend("llamacpp").dialect.api_names if name in TEXT_APIS]
TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}


def body(entry: str, **asked: object) -> dict[str, object]:
    (ref,) = parse_backend_list(entry)
    chat = Chat(TALK, 7, **asked)  # type: ignore[arg-type]
    made: dict[str, object] = json.loads(render_body(ref.definition, "m", chat, Request()))
    return made


def test_messages_can_ask_for_the_system_to_be_kept() -> None:
    (ref,), (chat,) = parse_backend_list("vllm@messages"), parse_backend_list("vllm")
    asked = Request(cache_control=True)
    made = json.loads(render_body(ref.definition, "m", Chat(TALK, 7), asked))
    (block,) = made["system"]
    assert block == {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    alone = json.loads(render_body(ref.definition, "m", Chat(TALK[1:], 7), asked))
    assert "system" not in alone
    assert "cache_control" not in unsupported_fields(ref.definition, asked)
    assert "cache_control" in unsupported_fields(chat.definition, asked)


def test_a_grammar_holds_every_answer() -> None:
    (ref,), (without,) = parse_backend_list("llamacpp"), parse_backend_list("llamacpp@messages")
    asked = Request(grammar='root ::= "a"', exact_output=False)
    made = json.loads(render_body(ref.definition, "m", Chat(TALK, 7), asked))
    assert made["grammar"] == asked.grammar
    assert "structured.grammar" in unsupported_fields(without.definition, asked)


def test_a_thinking_budget_is_sent_where_there_is_a_field_for_it() -> None:
    (ref,), (without,) = parse_backend_list("llamacpp"), parse_backend_list("sglang")
    asked = Request(thinking="on", thinking_budget=8)
    made = json.loads(render_body(ref.definition, "m", Chat(TALK, 7), asked))
    assert made["thinking_budget_tokens"] == 8
    assert "thinking_budget" not in unsupported_fields(ref.definition, asked)
    assert "thinking_budget" in unsupported_fields(without.definition, asked)


def test_every_api_has_its_own_fields() -> None:
    chat, completions = body("vllm"), body("vllm@completions")
    responses, messages = body("vllm@responses"), body("vllm@messages")
    assert chat["messages"] == TALK
    assert completions["prompt"] == "Be brief.\n\nHello"
    assert "chat_template_kwargs" not in completions
    assert (responses["instructions"], responses["input"]) == ("Be brief.", TALK[1:])
    assert (responses["max_output_tokens"], responses["store"]) == (7, False)
    assert "max_tokens" not in responses
    assert (messages["system"], messages["messages"]) == ("Be brief.", TALK[1:])
    assert all(made["stream"] is True for made in (chat, completions, responses, messages))
    usage_asked = ["stream_options" in made for made in (chat, completions, responses, messages)]
    assert usage_asked == [True, True, False, False]


def test_a_prompt_of_one_message_is_sent_as_it_stands() -> None:
    assert APIS["completions"].body([{"role": "user", "content": "a b"}], 1) == {
        "prompt": "a b",
        "max_tokens": 1,
    }


def test_a_limit_that_an_engine_lowers_is_raised_before() -> None:
    assert body("sglang@responses")["max_output_tokens"] == 9
    assert body("sglang@messages")["max_tokens"] == 7


def test_exact_lengths_that_an_api_cannot_have_are_said() -> None:
    for name in ("vllm", "llamacpp", "sglang"):
        (ref,) = parse_backend_list(f"{name}@messages")
        assert "exact_output" in unsupported_fields(ref.definition, Request())
    assert "ignore_eos" not in body("vllm@messages")
    assert body("vllm@responses")["ignore_eos"] is True


def test_tools_in_each_apis_form() -> None:
    function = TOOL["function"]
    asked = {"tools": [TOOL], "tool_choice": "required"}
    assert body("vllm", **asked)["tools"] == [TOOL]
    assert "tools" not in body("vllm@completions", **asked)
    assert body("vllm@responses", **asked)["tools"] == [{"type": "function", **function}]  # type: ignore[dict-item]
    made = body("vllm@messages", **asked)
    assert made["tools"] == [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
    assert made["tool_choice"] == {"type": "any"}


PICTURE, PICTURED = "data:image/png;base64,AA==", "https://h/a.png"


@pytest.mark.parametrize(
    ("api", "url", "form"),
    [
        ("chat", PICTURE, {"type": "image_url", "image_url": {"url": PICTURE}}),
        ("responses", PICTURE, {"type": "input_image", "image_url": PICTURE}),
        (
            "messages",
            PICTURE,
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        ),
        ("messages", PICTURED, {"type": "image", "source": {"type": "url", "url": PICTURED}}),
    ],
)
def test_images_in_each_apis_form(api: str, url: str, form: object) -> None:
    assert APIS[api].image(url) == form


def test_labels_name_the_api_like_a_variant() -> None:
    refs = parse_backend_list("vllm,vllm@eager@responses,llamacpp@messages", ("chat", "completions"))
    assert [ref.label for ref in refs] == [
        "vllm", "vllm@completions", "vllm@eager@responses", "llamacpp@messages",
    ]  # fmt: skip
    assert [(ref.variant, ref.api) for ref in refs][2:] == [("eager", "responses"), (None, "messages")]
    assert [ref.label for ref in parse_backend_list("openai@messages=http://a:1")] == ["openai@messages"]


def test_a_variant_keeps_its_fields_in_every_api() -> None:
    for api in OF_LLAMACPP:
        (ref,) = parse_backend_list("llamacpp@no-prefix-cache", (api,))
        assert ref.definition.dialect.extra["cache_prompt"] is False


def test_an_api_without_adapters_is_reported() -> None:
    """llama.cpp takes no field through messages but those of that API: a scale would be ignored."""
    (chat,), (messages,) = (parse_backend_list("llamacpp", (api,)) for api in ("chat", "messages"))
    notes = [unsupported_fields(ref.definition, Request(), adapters=2) for ref in (chat, messages)]
    assert ["lora" in missing for missing in notes] == [False, True]


def test_habits_of_chat_chunks_do_not_hold_for_other_apis() -> None:
    chat = load_backend("llamacpp").dialect.habits
    habits = {api: parse_backend_list("llamacpp", (api,))[0].definition.dialect.habits for api in OF_LLAMACPP}
    assert habits["chat"] == chat
    for made in habits.values():
        assert (made.keeps_connection, made.cached_tokens, made.finish_reason) == (False, True, True)
        assert made.done is True
    assert [made.usage for made in habits.values()] == ["last", "finish", None, None]
    assert [made.first_chunk for made in habits.values()] == ["role", None, None, None]


def test_an_api_that_a_backend_lacks_is_one_error() -> None:
    with pytest.raises(SpecError, match="backend 'ollama' has no Messages API") as caught:
        parse_backend_list("ollama", ("messages",))
    assert caught.value.hint == "it has: chat"


def test_a_definition_may_not_name_unknown_apis_or_placeholders() -> None:
    table = {"backend": {"name": "x", "title": "x", "licence": "x", "homepage": "x", "weights": "none"},
             "server": {"ready_path": "/", "startup_timeout_s": 1}}  # fmt: skip
    with pytest.raises(SpecError, match="unknown API 'responces'") as caught:
        parse_backend({**table, "dialect": {"apis": {"responces": {}}}}, "x.toml")
    assert "did you mean 'responses'?" in str(caught.value.hint)
    with pytest.raises(SpecError, match="unknown placeholder"):
        parse_backend({**table, "dialect": {"apis": {"responses": {"seed": {"s": "{sed}"}}}}}, "x.toml")


def test_a_scenario_may_name_the_api() -> None:
    table = {
        "scenario": {"name": "x", "purpose": "x"},
        "prompts": {"generator": "fixed-length", "input_tokens": 8, "output_tokens": 8},
        "load": {"concurrency": [1], "requests": 4},
        "request": {"api": "responses"},
    }
    assert parse_scenario(table, "x.toml").request.api == "responses"
    with pytest.raises(SpecError, match="not one of 'chat'"):
        parse_scenario({**table, "request": {"api": "rest"}}, "x.toml")


ANSWER_IN: dict[str, Callable[[Any], str]] = {  # by API, where the body of a later turn has the answer before
    "chat": lambda d: d["messages"][1]["content"],
    "completions": lambda d: d["prompt"].removeprefix(f"{ASKED}\n\n").removesuffix("\n\nB"),
    "responses": lambda d: d["input"][1]["content"][0]["text"],
    "messages": lambda d: d["messages"][1]["content"][0]["text"],
}
ASKED = r"if (c == '\u0000')" + "\0"  # real text may have an escape, or the character itself


def with_turns(api: Api, said: str, calls: str, tool_content: str | None) -> object:
    """The document that the server gets in a second turn, by way of the marks."""
    messages: list[Message] = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": BLANK}]
    if tool_content is not None:
        messages.append({"role": "tool", "tool_call_id": BLANK, "content": tool_content})
    else:
        messages.append({"role": "user", "content": "B"})
    made = json.dumps(api.body(messages, 5), separators=(",", ":"), ensure_ascii=False).encode()
    for text, mark in api.marks:
        assert text in made or mark == CALLED or mark.endswith(KEPT)
        made = made.replace(text, mark)
    answer, tool = api.turn(said, calls)
    return json.loads(made.replace(b"\x00", answer).replace(b"\x01", tool))


@pytest.mark.parametrize("api", [APIS[name] for name in TEXT_APIS], ids=TEXT_APIS)
def test_a_later_turn_carries_the_answer_before_it(api: Api) -> None:
    said = 'so "it" is\n\\ é'
    document = with_turns(api, said, "", None)
    assert api.name in ANSWER_IN, "add to ANSWER_IN where a body has the answer before"
    assert ANSWER_IN[api.name](document) == said


@pytest.mark.parametrize("api", [APIS[name] for name in TEXT_APIS], ids=TEXT_APIS)
def test_half_of_a_surrogate_pair_is_sent_back_as_an_escape(api: Api) -> None:
    """UTF-8 has none: it would end the load worker."""
    calls = json.dumps([{"id": "\ud800", "name": "\ud800", "arguments": '{"a":"\ud800"}'}] * 2)
    parts = *api.turn("\ud800", calls), api.other_results(calls)
    assert b"\\ud800" in b"".join(parts)


def test_an_answer_in_the_input_of_responses_has_all_required_keys() -> None:
    document = with_turns(APIS["responses"], "so", "", None)
    assert isinstance(document, dict)
    answer = document["input"][1]
    assert answer.keys() == {"type", "id", "status", "role", "content"}
    assert answer["content"] == [{"type": "output_text", "text": "so", "annotations": []}]


def test_no_two_messages_of_a_response_have_one_id() -> None:
    """OpenAI refuses an input with an id that comes twice. Answers may be equal."""
    api = APIS["responses"]
    shown = [{"role": role, "content": "so"} for role in ("user", "assistant") * 2]
    blank = [{"role": "user", "content": "B"}, {"role": "assistant", "content": BLANK}]
    later = api.encode(api.body([*shown, *blank, *blank, {"role": "user", "content": "C"}], 5))
    for text, mark in api.marks:
        later = later.replace(text, mark)
    turns = TurnBodies([b"{}", b"{}", later], Sessions(np.zeros(3, np.int32), np.zeros(3, np.int64)), api)
    answer = play([head(CHUNKED), chunked([vllm_responses(["so"])])], api=api)
    turns.keep(0, answer)
    turns.keep(1, answer)
    ids = [item["id"] for item in json.loads(turns[2])["input"] if item["role"] == "assistant"]
    assert len(ids) == len(set(ids)) == 4
    assert turns[2] == turns[2]


@pytest.mark.parametrize("said", ["", " \n"])
def test_messages_hold_no_blank_text(said: str) -> None:
    """Anthropic refuses a chat with one."""
    for calls, result, kinds in (("", None, ["text"]), (CALLS, "found", ["tool_use"])):
        document = with_turns(APIS["messages"], said, calls, result)
        assert isinstance(document, dict)
        answer = document["messages"][1]["content"]
        assert [block["type"] for block in answer] == kinds
        assert answer[0].get("text", "…") == "…"


CALLS = json.dumps([{"id": "c1", "name": "look", "arguments": '{"a":1}'}])


def test_a_tool_result_follows_its_call() -> None:
    responses = with_turns(APIS["responses"], "", CALLS, "found")
    assert isinstance(responses, dict)
    assert responses["input"][1:] == [
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]
    messages = with_turns(APIS["messages"], "", CALLS, "found")
    assert isinstance(messages, dict)
    assert messages["messages"][1:] == [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]},
    ]
    chat = with_turns(APIS["chat"], "", CALLS, "found")
    assert isinstance(chat, dict)
    function = {"name": "look", "arguments": '{"a":1}'}
    assert chat["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]


_DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.mark.parametrize(
    "arguments", ["", '{"a":', "[1]", '{"a":NaN}', '{"a":-Infinity}', '{"a":1e999}', _DEEP],
    ids=["none", "cut", "list", "nan", "infinity", "huge", "deep"],
)  # fmt: skip
def test_arguments_that_no_server_takes_are_lost_and_the_call_is_not(arguments: str) -> None:
    calls = json.dumps([{"id": "c1", "name": "look", "arguments": arguments}])
    document = with_turns(APIS["messages"], "so", calls, "found")
    assert isinstance(document, dict)
    assert document["messages"][1]["content"] == [
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]
    chat = with_turns(APIS["chat"], "so", calls, "found")
    assert isinstance(chat, dict)
    assert chat["messages"][1]["tool_calls"][0]["function"] == {"name": "look", "arguments": "{}"}
    responses = with_turns(APIS["responses"], "so", calls, "found")
    assert isinstance(responses, dict)
    assert responses["input"][2] == {
        "type": "function_call",
        "call_id": "c1",
        "name": "look",
        "arguments": "{}",
    }


def test_a_result_that_no_call_asked_for_is_the_users_message() -> None:
    responses = with_turns(APIS["responses"], "text", "", "found")
    assert isinstance(responses, dict)
    assert responses["input"][-1] == {"role": "user", "content": "found"}
    messages = with_turns(APIS["messages"], "text", "", "found")
    assert isinstance(messages, dict)
    assert messages["messages"][-1] == {"role": "user", "content": [{"type": "text", "text": "found"}]}


def test_a_kept_turn_names_the_answer_before_it_and_carries_no_other() -> None:
    (ref,) = parse_backend_list("vllm@responses")
    asked = Request(kept_turns=True)
    first = json.loads(render_body(ref.definition, "m", Chat(TALK, 7), asked))
    assert first["store"] is True
    assert "previous_response_id" not in first
    later = render_body(ref.definition, "m", Chat([{"role": "user", "content": "B"}], 7, later=True), asked)
    for text, mark in APIS["responses"].marks:
        later = later.replace(text, mark)
    sessions = Sessions(np.array([4, 4], np.int32), np.zeros(2, np.int64))
    turns = TurnBodies([b"{}", later], sessions, APIS["responses"])
    answer = play([head(CHUNKED), chunked([vllm_responses(["so"])])], api=APIS["responses"])
    turns.keep(0, answer)
    sent = json.loads(turns[1])
    assert sent["previous_response_id"] == "resp_1"
    assert sent["input"] == [{"role": "user", "content": "B"}]
    assert sent["ignore_eos"] is True


def test_a_kept_turn_has_a_result_for_each_call_of_the_answer_before_it() -> None:
    """The server keeps all calls, and OpenAI refuses a turn that leaves one without a result."""
    (ref,) = parse_backend_list("vllm@responses")
    result = {"role": "tool", "tool_call_id": BLANK, "content": "found"}
    later = render_body(ref.definition, "m", Chat([result], 7, later=True), Request(kept_turns=True))
    for text, mark in APIS["responses"].marks:
        later = later.replace(text, mark)
    sessions = Sessions(np.array([4, 4], np.int32), np.zeros(2, np.int64))
    turns = TurnBodies([b"{}", later], sessions, APIS["responses"])
    calls = json.dumps([{"id": name, "name": "look", "arguments": "{}"} for name in ("c1", "c2", "c3")])
    answer = play([head(CHUNKED), chunked([vllm_responses(["so"])])], api=APIS["responses"])
    turns.keep(0, replace(answer, tool_calls=calls))
    assert json.loads(turns[1])["input"] == [
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {"type": "function_call_output", "call_id": "c3", "output": ""},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
    ]


def test_an_answer_that_no_later_turn_can_name_is_a_failure() -> None:
    wire = [head(CHUNKED), chunked([vllm_responses(["so"]).replace(b"resp_1", b"")])]
    settled = play(wire, api=APIS["responses"], promised=Promised(answer_id=True))
    assert settled.outcome is Outcome.MALFORMED
    assert settled.error == "an answer without the id by which the next turn would name it"
    assert play(wire, api=APIS["responses"]).outcome is Outcome.OK


def test_turns_are_kept_where_prompts_have_turns() -> None:
    with pytest.raises(SpecError, match="its prompts have no turns"):
        load_scenario("fixed-length", {"request.kept_turns": True})
    assert load_scenario("shared-prefix", {"request.kept_turns": True}).request.kept_turns
    keeping = {name for name in ("vllm", "llamacpp", "sglang", "openai") if
               parse_backend_list(f"{name}@responses")[0].definition.dialect.keeps_turns}  # fmt: skip
    assert keeping == {"vllm", "sglang", "openai"}


def test_what_definitions_declare() -> None:
    for name in ("openai", "truth"):
        declared = load_backend(name).dialect.api_names
        assert declared == API_NAMES, f"backends/{name}.toml stands for any server"
    for name in ("vllm", "llamacpp", "sglang"):
        of_texts = ("chat", "completions", "responses", "messages")
        assert load_backend(name).dialect.api_names == (*of_texts, "embeddings", "rerank")
    assert load_backend("faster-whisper").dialect.api_names == ("transcriptions",)
    assert load_backend("ollama").dialect.api_names == ("chat",)
