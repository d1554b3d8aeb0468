"""How adapters reach an engine and its requests."""

import dataclasses
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import harness.engines.shims
from harness.engines.provide import adapters as provided
from harness.engines.provide.install import EngineEnv
from harness.engines.provide.weights import Weights
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.start.command import build_command, configured
from harness.spec.backend_refs import load_backend
from harness.spec.scenario import Request

SHIM = f"{harness.engines.shims.__path__[0]}/random_adapters.py"
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


def body(name, adapter, adapters=2):
    chat = Chat(({"role": "user", "content": "a"},), 4, adapter=adapter, adapters=adapters)
    return json.loads(render_body(load_backend(name), "bench", chat, Request()))


def test_vllm_names_an_adapter_as_a_model():
    assert body("vllm", "adapter-2")["model"] == "adapter-2"
    assert body("vllm", "")["model"] == "bench"


def test_llamacpp_says_all_scales_in_every_request():
    assert body("llamacpp", "adapter-2")["lora"] == [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 1.0}]
    assert body("llamacpp", "")["lora"] == [{"id": 0, "scale": 0.0}, {"id": 1, "scale": 0.0}]
    assert "lora" not in body("llamacpp", "", adapters=0)


def test_questions_outside_the_load_say_all_scales_too():
    definition = configured(load_backend("llamacpp"), None, {"lora_adapters": 1})
    chat = Chat(({"role": "user", "content": "a"},), 4)
    assert json.loads(render_body(definition, "bench", chat, Request()))["lora"] == [{"id": 0, "scale": 0.0}]


@pytest.mark.parametrize("name", ["vllm", "llamacpp"])
def test_the_variant_without_adapters_takes_part_without_any(name):
    definition = load_backend(name).variants["base-model"]
    assert definition.lora is False


def made(folder, run, seed=1):
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(CONFIG))
    target = folder / f"made-{seed}"
    target.mkdir()
    asked = json.dumps({"count": 2, "rank": 4, "seed": seed})
    run([SHIM, str(model), str(target), asked])
    return target


def as_program(words):
    subprocess.run([sys.executable, *words], check=True, capture_output=True)


def here(words):
    """The program once more: a process of its own would load numpy again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        runpy.run_path(words[0], run_name="__main__")


def tensors(folder):
    raw = (folder / "adapter_model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8 : 8 + size])
    head.pop("__metadata__")
    data = raw[8 + size :]
    return {
        name: np.frombuffer(data[slice(*one["data_offsets"])], np.float32).reshape(one["shape"])
        for name, one in head.items()
    }


def test_adapters_are_of_the_models_shape_and_come_from_the_seed(tmp_path):
    first = made(tmp_path, as_program)
    found = tensors(first / "adapter-1")
    assert len(found) == 2 * 2 * 2
    assert found["base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"].shape == (8, 4)
    assert found["base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight"].shape == (4, 4)
    assert all(values.any() for values in found.values())
    other = tensors(first / "adapter-2")
    assert not any(np.array_equal(found[name], other[name]) for name in found)
    again = tmp_path / "again"
    again.mkdir()
    same = tensors(made(again, here) / "adapter-1")
    assert all(np.array_equal(found[name], same[name]) for name in found)
    assert json.loads((first / "adapter-1" / "adapter_config.json").read_text())["lora_alpha"] == 8


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vllm", ["--lora-modules", "adapter-1=/one", "adapter-2=/two"]),
        ("llamacpp", ["--lora-init-without-apply", "--lora", "/one", "--lora", "/two"]),
    ],
)
def test_a_command_ends_with_the_adapters(name, words):
    definition = configured(load_backend(name), None, {"lora_adapters": 2})
    env = EngineEnv(Path("/env/bin/python"), {}, "1", "")
    weights = Weights("/model", "bf16", "bf16", "0", None, "")
    adapters = {"adapter-1": Path("/one"), "adapter-2": Path("/two")}
    room = Path("/s")
    command = build_command(definition, env=env, weights=weights, port=1, scratch=room, adapters=adapters)
    assert list(command.argv[-len(words) :]) == words
    assert (
        "--lora-modules" not in build_command(definition, env=env, weights=weights, port=1, scratch=room).argv
    )


def test_adapters_are_drawn_again_for_other_weights_in_the_same_place(tmp_path, monkeypatch):
    """Those of the model that lay there before have another shape."""
    drawn = []
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(provided, "run_or_raise", lambda command, *_, **_options: drawn.append(command[4]))
    definition = configured(load_backend("vllm"), None, {"lora_adapters": 1})
    small = Weights("/model", "bf16", "bf16", "1", None, "")
    for weights in (small, small, dataclasses.replace(small, sha256="2"), small):
        provided.drawn_adapters(definition, weights, None, print)
    assert len(drawn) == len(set(drawn)) == 2
