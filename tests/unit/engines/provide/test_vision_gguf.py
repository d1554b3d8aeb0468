"""A vision in a file of its own: what is written into it, and how an engine gets it."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from harness.engines.provide.install import EngineEnv
from harness.engines.provide.weights import Weights
from harness.engines.shims.vision_to_gguf import (
    CONTROL,
    added_tokens,
    text_keys,
    vision_keys,
    vision_tensors,
    with_rows,
)
from harness.engines.start.command import build_command, configured
from harness.engines.start.launch_choice import resolve_launch, track_of
from harness.errors import SpecError
from harness.host import paths
from harness.spec.backend_refs import load_backend, parse_backend, parse_backend_list
from harness.spec.files import read_toml
from harness.spec.models import choose_model

MARKS = [{"id": 4, "content": "<image>"}, {"id": 3, "content": "<fake>"}, {"id": 0, "content": "<s>"}]
CONFIG = {
    "scale_factor": 2,
    "text_config": {"hidden_size": 576},
    "vision_config": {
        "hidden_size": 192,
        "intermediate_size": 384,
        "image_size": 128,
        "layer_norm_eps": 1e-6,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "patch_size": 16,
    },
}
IMAGES = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": {"longest_edge": 256}}


def test_tokens_of_images_follow_those_of_the_text():
    assert added_tokens({"added_tokens": MARKS}, 3) == ["<fake>", "<image>"]
    assert added_tokens({"added_tokens": MARKS}, 5) == []


def test_a_vocabulary_with_a_gap_is_refused():
    with pytest.raises(SystemExit, match="do not follow"):
        added_tokens({"added_tokens": MARKS}, 2)


def test_the_text_half_knows_them_as_tokens_that_no_text_makes():
    keys = text_keys((["<s>", "a", "b"], [3, 1, 1]), ["<fake>", "<image>"], "{{ text }}<image>")
    assert keys["tokenizer.ggml.tokens"] == ["<s>", "a", "b", "<fake>", "<image>"]
    assert keys["tokenizer.ggml.token_type"] == [3, 1, 1, CONTROL, CONTROL]
    assert keys["tokenizer.chat_template"] == "{{ text }}{{ part['text'] }}"
    assert keys["llama.vocab_size"] == 5


def test_each_has_a_row_of_zeros_in_the_embedding_and_nowhere_else():
    rows = np.full((3, 20), 7, np.uint8)
    assert with_rows("token_embd.weight", rows, 2).tolist() == [*[[7] * 20] * 3, *[[0] * 20] * 2]
    assert with_rows("blk.0.attn_q.weight", rows, 2) is rows


def test_the_vision_is_described_as_the_folder_describes_it():
    keys = vision_keys(CONFIG, IMAGES)
    assert keys["clip.projector_type"] == "idefics3"
    assert keys["clip.vision.image_size"] == 128
    assert keys["clip.vision.preproc_image_size"] == 256
    assert keys["clip.vision.projection_dim"] == 576
    assert keys["clip.vision.projector.scale_factor"] == 2
    assert keys["clip.vision.attention.layer_norm_epsilon"] == 1e-6


def test_its_numbers_are_those_of_the_folder(tmp_path):
    numbers = {"model.vision_model.a": [1.5, -0.25], "model.connector.b": [3.0], "model.text_model.c": [9.0]}
    header, data = {}, b""
    for name, values in numbers.items():
        bits = (np.array(values, np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
        places = [len(data), len(data) + len(bits)]
        header[name] = {"dtype": "BF16", "shape": [len(values)], "data_offsets": places}
        data += bits
    head = json.dumps(header).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(head).to_bytes(8, "little") + head + data)
    found = {name: values.tolist() for name, values in vision_tensors(file)}
    assert found == {"model.vision_model.a": [1.5, -0.25], "model.connector.b": [3.0]}


def test_an_engine_gets_the_second_file_after_the_first():
    definition = configured(load_backend("llamacpp"), None, {})
    env = EngineEnv(Path("/env/bin/python"), {}, "1", "")
    weights = Weights("/m/text.gguf", "t", "q", "0", None, "", vision="/m/mmproj.gguf")

    def argv(weights):
        return build_command(definition, env=env, weights=weights, port=1, scratch=Path("/s")).argv

    assert argv(weights)[2:6] == ("--model", "/m/text.gguf", "--mmproj", "/m/mmproj.gguf")
    assert "--mmproj" not in argv(dataclasses.replace(weights, vision=None))


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
def test_each_engine_takes_the_vision_in_its_own_form(name):
    (ref,) = parse_backend_list(name)
    chosen = choose_model(None, images=True)
    track = chosen[1].tracks[track_of(ref, resolve_launch(ref, "process"), *chosen)]
    assert track.vision_apart is (name == "llamacpp")


def test_both_forms_have_one_shape():
    _, model = choose_model("smollm2-random-vision")
    one, other = model.tracks.values()
    assert one.random_vision == other.random_vision


def test_no_other_argument_may_name_it():
    table = read_toml(paths.definitions("backends")["llamacpp"])
    table["engine"]["args"].append("{vision}")
    with pytest.raises(SpecError, match=r"engine\.args: unknown placeholder '\{vision\}'"):
        parse_backend(table, "llamacpp")


def test_an_engine_without_arguments_for_it_is_one_error():
    (ref,) = parse_backend_list("llama-cpp-python")
    with pytest.raises(SpecError, match="backend 'llama-cpp-python' takes none") as caught:
        track_of(ref, resolve_launch(ref, "process"), *choose_model(None, images=True))
    assert "vision_args" in caught.value.hint
