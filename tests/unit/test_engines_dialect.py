import dataclasses
import json

from harness.engines.dialect import exact_output_possible, render_body
from harness.spec.backend import load_backend
from harness.spec.scenario import Request

CHAT = [{"role": "user", "content": "Größe?"}]


def body(definition, request=None):
    return json.loads(render_body(definition, "m", CHAT, 7, request or Request()))


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
    }


def test_each_engine_gets_its_own_field_names():
    llamacpp = body(load_backend("llamacpp"))
    assert llamacpp["repeat_penalty"] == 1.0
    assert "repetition_penalty" not in llamacpp


def test_exact_output_only_where_wanted_and_possible():
    vllm, generic = load_backend("vllm"), load_backend("openai")
    assert "ignore_eos" not in body(vllm, Request(exact_output=False))
    assert "ignore_eos" not in body(generic)
    assert exact_output_possible(vllm)
    assert not exact_output_possible(generic)


def test_usage_is_not_asked_of_an_engine_that_does_not_know_it():
    generic = load_backend("openai")
    silent = dataclasses.replace(generic, dialect=dataclasses.replace(generic.dialect, stream_usage=False))
    assert "stream_options" in body(generic)
    assert "stream_options" not in body(silent)


def test_the_bytes_are_compact_utf8_and_always_the_same():
    made = render_body(load_backend("vllm"), "m", CHAT, 7, Request())
    assert made == render_body(load_backend("vllm"), "m", CHAT, 7, Request())
    assert "Größe?".encode() in made
    assert b": " not in made
