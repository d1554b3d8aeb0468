"""Weights drawn from a seed: the same file each time, served like any other, and called what they are."""

import shutil

import pytest

from harness.engines.provide.install import install_engine
from harness.engines.provide.models import ensure_weights
from harness.spec.backend_refs import load_backend
from harness.spec.models import choose_model

pytestmark = pytest.mark.engine


def test_a_seed_draws_the_same_file_each_time():
    name, model = choose_model("random-llama-tiny")
    env = install_engine(load_backend("llamacpp"), print)
    first = ensure_weights(name, model, "gguf-random", env, print)
    shutil.rmtree(first.model.rpartition("/")[0])
    again = ensure_weights(name, model, "gguf-random", env, print)
    assert again.model == first.model
    assert again.sha256 == first.sha256
    assert "text is nonsense" in again.how


def test_they_are_served_and_marked(start, ask):
    with start("llamacpp", named_model=choose_model("random-llama-tiny")) as engine:
        answer = ask(engine, "Answer in one word.", "What is the capital of France?")
        facts = engine.facts["weights"]
    assert answer["usage"]["completion_tokens"] == 8
    assert facts["quantisation"] == "BF16 (random weights)"
