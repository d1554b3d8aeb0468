"""LoRA adapters of a Llama's queries and values: `random_adapters.py MODEL FOLDER ASKED`, ASKED as JSON.

MODEL is a folder of the hub's form or a GGUF file, and the adapters get its form. Both hold the same float32
numbers, drawn from the seed, one stream for each tensor. Runs inside an engine's environment.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SPREAD = 0.05  # of both factors: answers differ from the base model's
ALPHA_OF_RANK = 2


class Shape:
    def __init__(self, layers: int, width: int, heads: int, kv_heads: int, head: int) -> None:
        self.layers, self.width, self.heads, self.kv_heads, self.head = layers, width, heads, kv_heads, head

    def factors(self, seed: int, rank: int) -> Iterator[tuple[int, str, np.ndarray, np.ndarray]]:
        """Layer, projection, A (rank × width) and B (output × rank)."""
        outputs = (("q_proj", self.heads * self.head), ("v_proj", self.kv_heads * self.head))
        for layer in range(self.layers):
            for index, (name, output) in enumerate(outputs):
                chance = np.random.default_rng([seed, layer, index])
                down = chance.standard_normal((rank, self.width), np.float32) * np.float32(SPREAD)
                up = chance.standard_normal((output, rank), np.float32) * np.float32(SPREAD)
                yield layer, name, down, up


def of_folder(folder: Path) -> Shape:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "llama":
        sys.exit(f"the model is a {config['model_type']}, not a llama")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    head = config.get("head_dim") or width // heads
    return Shape(config["num_hidden_layers"], width, heads, config.get("num_key_value_heads") or heads, head)


def of_gguf(file: Path) -> Shape:
    import gguf

    fields = gguf.GGUFReader(file).fields
    kind = fields["general.architecture"].contents()
    if kind != "llama":
        sys.exit(f"the model is a {kind}, not a llama")

    def number(name: str) -> int:
        return int(fields[f"llama.{name}"].contents())

    heads, width = number("attention.head_count"), number("embedding_length")
    return Shape(number("block_count"), width, heads, number("attention.head_count_kv"), width // heads)


def write_folder(folder: Path, shape: Shape, seed: int, rank: int) -> None:
    folder.mkdir()
    tensors: dict[str, np.ndarray] = {}
    for layer, name, down, up in shape.factors(seed, rank):
        stem = f"base_model.model.model.layers.{layer}.self_attn.{name}"
        tensors |= {f"{stem}.lora_A.weight": down, f"{stem}.lora_B.weight": up}
    places, at = {}, 0
    for name, values in tensors.items():
        places[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    head = json.dumps({"__metadata__": {"format": "pt"}, **places}).encode()
    with (folder / "adapter_model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for values in tensors.values():
            file.write(values.tobytes())
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "",
        "r": rank,
        "lora_alpha": ALPHA_OF_RANK * rank,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def write_gguf(file: Path, shape: Shape, seed: int, rank: int) -> None:
    import gguf

    writer = gguf.GGUFWriter(file, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(ALPHA_OF_RANK * rank))
    for layer, name, down, up in shape.factors(seed, rank):
        if name == "q_proj":  # GGUF interleaves the two halves of each head that are rotated together
            pairs = up.reshape(shape.heads, 2, shape.head // 2, rank)
            up = np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(up.shape))
        stem = f"blk.{layer}.{'attn_q' if name == 'q_proj' else 'attn_v'}.weight"
        writer.add_tensor(f"{stem}.lora_a", down)
        writer.add_tensor(f"{stem}.lora_b", up)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(model: Path, folder: Path, sizes: dict[str, int]) -> None:
    shape = of_folder(model) if model.is_dir() else of_gguf(model)
    for number in range(1, sizes["count"] + 1):
        seed = sizes["seed"] * 1000 + number
        if model.is_dir():
            write_folder(folder / f"adapter-{number}", shape, seed, sizes["rank"])
        else:
            write_gguf(folder / f"adapter-{number}.gguf", shape, seed, sizes["rank"])
    print(f"{sizes['count']} random adapters of rank {sizes['rank']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
