"""A classifier drawn from a seed: the same each time, on a body that is left as it is."""

import json
from pathlib import Path

import numpy as np
import pytest

from harness.engines.provide.random_head import with_random_head
from harness.engines.provide.weights import Weights
from harness.errors import SetupError
from harness.spec.models import RandomHead, choose_model

WIDTH = 4
TYPES = "embeddings.token_type_embeddings.weight"
TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def body(folder: Path, **tensors: "np.ndarray") -> Weights:
    folder.mkdir()
    header: dict[str, object] = {}
    data = b""
    for name, values in tensors.items():
        places = [len(data), len(data) + values.nbytes]
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": places}
        data += values.tobytes()
    head = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": WIDTH}))
    for name in TOKENIZER:
        (folder / name).write_text("{}")
    return Weights(str(folder), "f32", "float32", "abc", None, "as it lies there", "test")


def read(folder: Path) -> dict[str, "np.ndarray"]:
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__")
    return {
        name: np.frombuffer(data[slice(*(start + at for at in said["data_offsets"]))], "<f4").reshape(
            said["shape"]
        )
        for name, said in header.items()
    }


@pytest.mark.usefixtures("cache")
def test_a_seed_draws_the_same_classifier(tmp_path: Path) -> None:
    types = np.arange(8, dtype=np.float32).reshape(2, WIDTH)
    pooler = np.ones((WIDTH, WIDTH), np.float32)
    source = body(tmp_path / "body", **{TYPES: types, "pooler.dense.weight": pooler})
    made = {seed: with_random_head(source, RandomHead("x", seed), f"m{seed}", print)[0] for seed in (1, 2)}
    one, two = read(made[1]), read(made[2])
    again, how = with_random_head(source, RandomHead("x", 1), "again", print)
    assert (read(again)["classifier.weight"] == one["classifier.weight"]).all()
    assert (one["classifier.weight"] != two["classifier.weight"]).any()
    assert one["classifier.weight"].shape == (1, WIDTH)
    assert (one["bert.pooler.dense.weight"] == pooler).all()
    assert (one[f"bert.{TYPES}"] == types[0]).all()  # query and document alike
    assert json.loads((made[1] / "config.json").read_text())["architectures"] == [
        "BertForSequenceClassification"
    ]
    assert "scores are nonsense" in how


def test_what_is_no_bert_is_one_error(cache: Path, tmp_path: Path) -> None:
    source = body(tmp_path / "body", other=np.ones(2, np.float32))
    with pytest.raises(SetupError, match="not a BERT model"):
        with_random_head(source, RandomHead("x"), "m", print)
    assert not list((cache / "models").glob("m-*/*"))


def test_the_model_of_rerank_says_that_it_is_random() -> None:
    name, model = choose_model(None, "scores")
    assert name == "minilm-random-reranker"
    assert "Random weights" in model.title
    assert all("random weights" in track.quantisation for track in model.tracks.values())
