"""The scripted server in an engine's dialect, checked with answers of the real one.

tests/engines/capture.py refreshes tests/captures; the engines' own tests see that they still answer so.
"""

import json

import pytest

from harness.mockserver import running
from harness.spec.backend_refs import load_backend
from tests.engines.capture import ENGINES, SCHEMA, capture, shape, stored, stream_shape

# Exchanges in which the real server breaks down itself: nothing to stand in for.
BROKEN = {"transformers": {"no-messages"}}


@pytest.fixture(scope="module", params=ENGINES)
def pair(request):
    """Answers of the simulator and of the engine, by exchange."""
    name = request.param
    with running(dialect=name, ttft_ms=2, gap_ms=1, model_name="bench") as server:
        simulated = capture(server.url, "bench", load_backend(name))
    real = stored(name)["answers"]
    assert simulated.keys() == real.keys(), "python -m tests.engines.capture"
    kept = real.keys() - BROKEN.get(name, set())
    return {exchange: simulated[exchange] for exchange in kept}, {key: real[key] for key in kept}


def test_every_exchange_ends_with_the_same_status(pair):
    simulated, real = pair
    assert {name: answer["status"] for name, answer in simulated.items()} == {
        name: answer["status"] for name, answer in real.items()
    }


@pytest.mark.parametrize("exchange", ["chat", "unknown-field", "removed-field"])
def test_a_whole_answer_has_the_same_keys(pair, exchange):
    simulated, real = pair
    assert shape(simulated[exchange]["json"]) == shape(real[exchange]["json"])


def test_a_stream_has_the_same_chunks_in_the_same_order(pair):
    simulated, real = pair
    assert stream_shape(simulated["stream"]["chunks"]) == stream_shape(real["stream"]["chunks"])
    assert simulated["stream"]["done"] == real["stream"]["done"]
    for answers in pair:
        assert answers["stream"]["chunks"][-1]["usage"]["completion_tokens"] == 6


def test_errors_have_the_same_keys(pair):
    simulated, real = pair
    for exchange in ("no-messages", "wrong-format", "unknown-model", "no-route"):
        if exchange in real and real[exchange]["status"] != 200:
            assert shape(simulated[exchange]) == shape(real[exchange]), exchange


def test_a_schema_is_kept_to_and_a_removed_field_is_not(pair):
    """A small model may fill an object with blanks until its tokens are spent: it need not end."""
    simulated, real = pair

    def text(answers, exchange):
        return answers[exchange]["json"]["choices"][0]["message"]["content"]

    constrained = text(real, "schema").lstrip().startswith("{")
    assert text(simulated, "schema").startswith("{") == constrained
    if constrained:
        assert set(json.loads(text(simulated, "schema"))) == set(SCHEMA["required"])
    for answers in pair:
        if answers["removed-field"]["status"] == 200:
            assert not text(answers, "removed-field").startswith("{")


def test_the_simulator_tells_nothing_that_the_engine_does_not_tell(pair):
    simulated, real = pair
    for exchange in {"models", "version", "tokenize", "health", "reset"} & real.keys():
        assert part_of(shape(simulated[exchange]), shape(real[exchange])), exchange
    if "metrics" in real:
        assert simulated["metrics"]["series"].items() <= real["metrics"]["series"].items()


def part_of(some, all_of):
    if isinstance(some, dict) and isinstance(all_of, dict):
        return all(key in all_of and part_of(value, all_of[key]) for key, value in some.items())
    if isinstance(some, list) and isinstance(all_of, list):
        return not some or not all_of or part_of(some[0], all_of[0])
    return some == all_of
