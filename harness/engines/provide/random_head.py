"""A reranker where none can be had: a classifier drawn from a seed on a BERT model of vectors."""

import json
import shutil
from pathlib import Path

import numpy as np

from harness.engines.provide.shared_folders import Say, filled, folder_of
from harness.engines.provide.weights import Weights
from harness.errors import SetupError
from harness.spec.models import RandomHead

_SPREAD = 0.3  # standard deviation: so wide that the scores of short texts differ
_TYPES = "embeddings.token_type_embeddings.weight"
_TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def with_random_head(body: Weights, head: RandomHead, model_name: str, say: Say) -> tuple[Path, str]:
    """A folder, and in words how it came about.

    Query and document have one token type: llama.cpp knows no other, and would answer other scores.
    """
    source = Path(body.model)
    made_of = [body.sha256, head.seed, Path(__file__).read_text(encoding="utf-8")]
    folder = folder_of("models", model_name, made_of)

    def make(target: Path) -> None:
        say(f"{model_name}: drawing its classifier")
        try:
            _write(source, target / model_name, head.seed)
        except (OSError, ValueError, KeyError) as error:
            raise SetupError(f"not a BERT model: {error}", where=str(source)) from error

    filled(folder, f"weights of {model_name}", make, say)
    how = f"{body.how}; a classifier drawn from seed {head.seed}: scores are nonsense, timing is real"
    return folder / model_name, how


def _write(source: Path, target: Path, seed: int) -> None:
    target.mkdir()
    for name in _TOKENIZER:
        shutil.copy(source / name, target / name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    labels = {"id2label": {"0": "score"}, "label2id": {"score": 0}}
    config |= {"architectures": ["BertForSequenceClassification"], "dtype": "float32", **labels}
    (target / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")

    tensors = _tensors(source / "model.safetensors")
    tensors[_TYPES] = np.broadcast_to(tensors[_TYPES][0], tensors[_TYPES].shape)
    drawn = np.random.default_rng(seed).standard_normal((1, config["hidden_size"]), np.float32)
    classifier = {"weight": drawn * np.float32(_SPREAD), "bias": np.zeros(1, np.float32)}
    named = {f"bert.{name}": values for name, values in tensors.items()}
    named |= {f"classifier.{part}": values for part, values in classifier.items()}
    _store(target / "model.safetensors", named)


def _tensors(file: Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a safetensors file, those in 32 bits; whole numbers are positions, which
    engines count.
    """
    data = np.memmap(file, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = data[start + begin : start + end].view("<f4").reshape(entry["shape"])
    return tensors


def _store(file: Path, tensors: dict[str, np.ndarray]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, values in tensors.items():
        end = at + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, end]}
        at = end
    head = json.dumps(header).encode()
    with file.open("wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        for values in tensors.values():
            out.write(values.tobytes())
