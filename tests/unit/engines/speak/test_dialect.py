import dataclasses
import json
import re

import pytest

from harness.engines.speak.dialect import Chat, can_say, render_body, set_otherwise, unsupported_fields
from harness.errors import SpecError
from harness.host import paths
from harness.spec.backend_refs import load_backend, parse_backend, parse_backend_list
from harness.spec.dialect import with_api
from harness.spec.scenario import Request
from harness.workload.prompts.request import Constraint

CHAT = [{"role": "user", "content": "Größe?"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


def body(definition, request=None, **more):
    return json.loads(render_body(definition, "m", Chat(CHAT, 7, **more), request or Request()))


def engine(**dialect):
    header = {"name": "x", "title": "X", "licence": "MIT", "homepage": "", "weights": "none"}
    server = {"ready_path": "/", "startup_timeout_s": 1}
    return parse_backend({"backend": header, "server": server, "dialect": dialect}, "x.toml")


def test_vllm_is_asked_with_every_sampling_field_and_an_exact_length():
    assert body(load_backend("vllm"), Request(temperature=0.5, top_p=0.9)) == {
        "model": "m",
        "messages": CHAT,
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "seed": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_each_engine_gets_its_own_field_names():
    """They leave out tokens below 5% of the likeliest by default; llama-cpp-python penalises repetition."""
    for name in ("llamacpp", "llamafile", "llama-cpp-python"):
        llamacpp = body(load_backend(name))
        assert (llamacpp["top_k"], llamacpp["min_p"], llamacpp["repeat_penalty"]) == (0, 0.0, 1.0)
        assert "repetition_penalty" not in llamacpp


@pytest.mark.parametrize(
    ("name", "neutral"),
    [
        ("dynamo", {"top_k": -1, "repetition_penalty": 1.0}),
        ("koboldcpp", {"top_k": 0}),  # 100 by default
        ("localai", {"top_k": 0, "repeat_penalty": 1.0}),  # 40
        (
            "mistralrs",
            {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
        ),  # the next as the model's file says
        ("modular-max", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),
        ("ovms", {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}),  # or 40
    ],
)
def test_no_default_of_an_engine_or_of_a_model_leaves_likely_tokens_out(name, neutral):
    assert neutral.items() <= body(load_backend(name), Request(temperature=0.7)).items()


def test_what_no_request_can_say_is_said_at_the_start():
    """Ollama takes 40 of top_k from its defaults, vLLM behind Dynamo what the model's file says."""
    steps = [step.body for step in load_backend("ollama").server.prepare if step.path == "/api/create"]
    assert [step["parameters"] for step in steps] == [{"top_k": 0, "repeat_penalty": 1.0}] * 2
    args = load_backend("dynamo").engine.args
    assert args[args.index("--generation-config") + 1] == "vllm"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("dynamo", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("localai", {"reasoning_effort": "none"}),
        ("modular-max", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("ovms", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("tensorrt-llm", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_an_engine_that_can_be_kept_from_thinking_is(name, field):
    assert field.items() <= body(load_backend(name)).items()


@pytest.mark.parametrize("shape", ["json_schema", "json_object", "regex", "choice", "grammar"])
def test_a_front_is_asked_for_each_shape_that_it_hands_on(shape):
    assert can_say(load_backend("dynamo").dialect, Constraint(shape, ["a"]))


def test_mistral_rs_is_asked_for_any_json_object():
    asked = body(load_backend("mistralrs"), constraint=Constraint("json_object"))
    assert asked["response_format"] == {"type": "json_object"}


def test_exact_output_only_where_wanted_and_possible():
    vllm, generic = load_backend("vllm"), load_backend("openai")
    assert "ignore_eos" not in body(vllm, Request(exact_output=False))
    assert "ignore_eos" not in body(generic)
    assert vllm.dialect.exact_output
    assert not generic.dialect.exact_output


def test_usage_is_not_asked_of_an_engine_that_does_not_know_it():
    generic = load_backend("openai")
    silent = dataclasses.replace(generic, dialect=dataclasses.replace(generic.dialect, stream_usage=False))
    assert "stream_options" in body(generic)
    assert "stream_options" not in body(silent)


def test_the_bytes_are_compact_utf8_and_always_the_same():
    made = render_body(load_backend("vllm"), "m", Chat(CHAT, 7), Request())
    assert made == render_body(load_backend("vllm"), "m", Chat(CHAT, 7), Request())
    assert "Größe?".encode() in made
    assert b": " not in made


def test_a_constraint_takes_the_shape_the_engine_reads():
    vllm, llamacpp = load_backend("vllm"), load_backend("llamacpp")
    schema = body(vllm, constraint=Constraint("json_schema", SCHEMA))["response_format"]
    assert schema == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    assert body(vllm, constraint=Constraint("regex", "a+"))["structured_outputs"] == {"regex": "a+"}
    choice = Constraint("choice", ("yes", 'say "no"'))
    assert body(vllm, constraint=choice)["structured_outputs"] == {"choice": ["yes", 'say "no"']}
    assert body(llamacpp, constraint=choice)["grammar"] == r'root ::= "yes" | "say \"no\""'
    assert body(vllm, constraint=Constraint("json_object"))["response_format"] == {"type": "json_object"}


def test_what_an_engine_cannot_say_is_left_out_and_named():
    llamacpp, regex = load_backend("llamacpp"), Constraint("regex", "a+")
    assert not can_say(llamacpp.dialect, regex)
    assert body(llamacpp, constraint=regex) == body(llamacpp, Request(exact_output=False))
    assert list(unsupported_fields(llamacpp, Request(), [None, regex, Constraint("grammar", "g")])) == [
        "structured.regex"
    ]
    generic = engine(tools={}, seed={})
    assert body(generic, tools=[TOOL]) == body(generic)
    asked = Request(temperature=1.0, thinking="on")
    missing = list(unsupported_fields(generic, asked, tools=True))
    assert missing == ["exact_output", "tools", "seed", "thinking"]


def test_choices_as_a_regular_expression_match_themselves_alone():
    choices = ("a.b", "c d|e", "(f)")
    spoken = body(
        engine(structured={"choice": {"regex": "{choices_regex}"}}), constraint=Constraint("choice", choices)
    )
    assert all(re.fullmatch(spoken["regex"], choice) for choice in choices)
    assert not re.fullmatch(spoken["regex"], "axb")
    assert r"c d\|e" in spoken["regex"]


def test_a_schema_may_be_wanted_as_text():
    text = engine(structured={"json_schema": {"format": {"type": "json", "schema": "{schema_text}"}}})
    spoken = body(text, constraint=Constraint("json_schema", SCHEMA))
    assert json.loads(spoken["format"]["schema"]) == SCHEMA


def test_the_seed_is_sent_only_where_something_is_drawn():
    vllm = load_backend("vllm")
    assert "seed" not in body(vllm, Request(temperature=0.0))
    assert body(vllm, Request(temperature=0.7, seed=5))["seed"] == 5


def test_thinking_is_fixed_where_the_request_can():
    for name in ("vllm", "transformers"):
        spoken = load_backend(name)
        for state in ("on", "off"):
            sent = body(spoken, Request(thinking=state, exact_output=False))
            assert sent["chat_template_kwargs"] == {"enable_thinking": state == "on"}
        assert unsupported_fields(spoken, Request(thinking="on", exact_output=False)) == {}


def test_messages_of_sglang_are_asked_not_to_think_in_the_words_of_that_api():
    """It drops `chat_template_kwargs` there, and refuses `adaptive` where it was started without a parser."""
    (ref,) = parse_backend_list("sglang@messages")
    quiet = body(ref.definition)
    assert quiet["thinking"] == {"type": "disabled"}
    assert "chat_template_kwargs" not in quiet
    assert set(unsupported_fields(ref.definition, Request(thinking="on", exact_output=False))) == {"thinking"}


def test_a_neutral_value_that_an_engine_refuses_is_not_sent():
    (claude,) = parse_backend_list("openai@messages=http://h:1")
    for picky in (engine(refuses_neutral=["top_p"]), load_backend("hosted"), claude.definition):
        assert "top_p" not in body(picky, Request(top_p=1.0))
        assert body(picky, Request(top_p=0.9))["top_p"] == 0.9


def test_a_salt_keeps_prefixes_apart_where_declared():
    assert body(load_backend("vllm"), salt="s1")["cache_salt"] == "s1"
    assert body(load_backend("llamacpp"), salt="s1") == body(load_backend("llamacpp"))


def test_tools_are_passed_on():
    spoken = body(load_backend("vllm"), tools=[TOOL], tool_choice="required")
    assert (spoken["tools"], spoken["tool_choice"]) == ([TOOL], "required")


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"structured": {"regex": {"r": "{schema}"}}}, "dialect.structured.regex"),
        ({"extra": {"deep": [{"x": "{salt}"}]}}, "dialect.extra"),
        ({"seed": {"s": "{sead}"}}, "dialect.seed"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error_of_the_file(table, place):
    with pytest.raises(SpecError) as error:
        engine(**table)
    assert place in str(error.value)


def test_an_answer_with_a_shape_ends_where_the_shape_does():
    assert "ignore_eos" not in body(load_backend("vllm"), constraint=Constraint("regex", "a+"))


def test_fields_of_the_scenario_are_laid_over_what_the_definition_always_sends():
    fields = {"top_k": 20, "chat_template_kwargs": {"preserve": True}, "stop": ["END"]}
    sent = body(load_backend("vllm"), Request(temperature=0.5, fields=fields))
    assert (sent["top_k"], sent["stop"]) == (20, ["END"])
    assert sent["repetition_penalty"] == 1.0
    assert sent["chat_template_kwargs"] == {"enable_thinking": False, "preserve": True}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"top_k": 20, "temperature": 0.7}, "temperature"),
        ({"max_completion_tokens": 5}, "max_completion_tokens"),
        ({"messages": []}, "messages"),
        ({"ignore_eos": False}, "ignore_eos"),
        ({"stream_options": {"include_usage": False}}, "stream_options.include_usage"),
        ({"stream_options": None}, "stream_options"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "chat_template_kwargs.enable_thinking"),
        ({"cache_salt": "mine"}, "cache_salt"),
        ({"tools": []}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"json_schema": {"name": "x"}}}, "response_format.json_schema.name"),
        ({"structured_outputs": {"regex": "x"}}, "structured_outputs.regex"),
        ({"thinking_token_budget": 9}, "thinking_token_budget"),
        ({"top_k": 20, "stream_options": {"continuous_usage_stats": True}}, None),
    ],
)
def test_a_field_that_another_setting_gives_is_named(fields, path):
    found = set_otherwise(load_backend("vllm"), Request(fields=fields))
    assert found is None if path is None else found.startswith(path)


def test_a_length_that_is_not_forced_leaves_its_fields_to_the_scenario():
    fields = {"ignore_eos": True}
    assert set_otherwise(load_backend("vllm"), Request(exact_output=False, fields=fields)) is None


@pytest.mark.parametrize("name", sorted(set(paths.definitions("backends")) - {"models"}))
def test_every_api_of_every_engine_takes_fields_of_the_scenario(name):
    definition = load_backend(name)
    for api in definition.dialect.api_names:
        spoken = dataclasses.replace(definition, dialect=with_api(definition.dialect, api))
        assert set_otherwise(spoken, Request(fields={"priority": 1})) is None
        assert set_otherwise(spoken, Request(fields={"model": "x"})) == "model"
