"""Idefics3 on a Llama's text as two GGUF files: `vision_to_gguf.py FOLDER TEXT.gguf TARGET`.

FOLDER is the model in the hub's form, TEXT.gguf its text half without the tokens of images. TARGET gets that
half with these tokens, and `mmproj.gguf`: the vision, with the folder's numbers. Runs inside an engine's
environment.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CONTROL = 3  # how llama.cpp marks a token that only a template writes
BY_TOKEN = ("token_embd.weight", "output.weight")  # tensors with a row for each token


def added_tokens(tokenizer: dict[str, Any], known: int) -> list[str]:
    """Tokens of a tokenizer.json beyond the first `known`, in the order of their numbers."""
    added = sorted(
        (entry["id"], entry["content"]) for entry in tokenizer["added_tokens"] if entry["id"] >= known
    )
    if [number for number, _ in added] != list(range(known, known + len(added))):
        sys.exit("the tokens of images do not follow those of the text")
    return [content for _, content in added]


def text_keys(vocabulary: tuple[list[str], list[int]], added: list[str], template: str) -> dict[str, Any]:
    """Metadata of the text half that the tokens of images change. `vocabulary`: tokens and their types.

    llama.cpp puts the tokens of an image where the template writes that part's text.
    """
    tokens, types = vocabulary
    return {
        "tokenizer.ggml.tokens": [*tokens, *added],
        "tokenizer.ggml.token_type": [*types, *[CONTROL] * len(added)],
        "tokenizer.chat_template": template.replace("<image>", "{{ part['text'] }}"),
        "llama.vocab_size": len(tokens) + len(added),
    }


def with_rows(name: str, data: "np.ndarray[Any, Any]", count: int) -> "np.ndarray[Any, Any]":
    """The bytes of a tensor with `count` more rows of zeros, where it has a row for each token.

    Zero bytes are zeros in every quantisation.
    """
    if name not in BY_TOKEN:
        return data
    return np.concatenate([data, np.zeros((count, *data.shape[1:]), data.dtype)])


def vision_keys(config: dict[str, Any], images: dict[str, Any]) -> dict[str, Any]:
    """Metadata of the vision. `images`: the settings of the folder's image processor."""
    vision = config["vision_config"]
    return {
        "clip.has_vision_encoder": True,
        "clip.projector_type": "idefics3",
        "clip.use_gelu": True,  # by tanh, as in an Idefics3
        "clip.vision.image_size": vision["image_size"],
        "clip.vision.patch_size": vision["patch_size"],
        "clip.vision.preproc_image_size": images["size"]["longest_edge"],
        "clip.vision.embedding_length": vision["hidden_size"],
        "clip.vision.feed_forward_length": vision["intermediate_size"],
        "clip.vision.block_count": vision["num_hidden_layers"],
        "clip.vision.attention.head_count": vision["num_attention_heads"],
        "clip.vision.attention.layer_norm_epsilon": vision["layer_norm_eps"],
        "clip.vision.projection_dim": config["text_config"]["hidden_size"],
        "clip.vision.projector.scale_factor": config["scale_factor"],
        "clip.vision.image_mean": images["image_mean"],
        "clip.vision.image_std": images["image_std"],
    }


def vision_tensors(file: Path) -> Iterator[tuple[str, "np.ndarray[Any, Any]"]]:
    """Tensors in bf16 of a safetensors file that are not of the text, as float32: the same numbers."""
    data = np.memmap(file, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if name.startswith(("model.vision_model.", "model.connector.")):
            begin, end = entry["data_offsets"]
            bits = np.frombuffer(data[start + begin : start + end].tobytes(), "<u2").astype(np.uint32)
            yield name, (bits << 16).view(np.float32).reshape(entry["shape"])


def write_text(source: Path, folder: Path, target: Path) -> None:
    import gguf

    reader = gguf.GGUFReader(source)
    keys = gguf.Keys.Tokenizer
    vocabulary = tuple(reader.fields[key].contents() for key in (keys.LIST, keys.TOKEN_TYPE))
    added = added_tokens(_json(folder / "tokenizer.json"), len(vocabulary[0]))
    template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    changed = text_keys(vocabulary, added, template)
    writer = gguf.GGUFWriter(target, reader.fields[gguf.Keys.General.ARCHITECTURE].contents())
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", gguf.Keys.General.ARCHITECTURE)):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            value = changed[field.name] if field.name in changed else field.contents()
            writer.add_key_value(field.name, value, kind, sub_type=inner)
    for tensor in reader.tensors:
        rows = with_rows(tensor.name, tensor.data, len(added))
        writer.add_tensor(tensor.name, rows, raw_dtype=tensor.tensor_type)
    _finish(writer)
    print(f"{len(added)} tokens of images")


def write_vision(folder: Path, target: Path) -> None:
    import gguf

    config, settings = _json(folder / "config.json"), _json(folder / "processor_config.json")
    writer = gguf.GGUFWriter(target, "clip")
    writer.add_type(gguf.GGUFType.MMPROJ)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in vision_keys(config, settings["image_processor"]).items():
        add.get(type(value), writer.add_array)(key, value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, config["vision_config"]["num_hidden_layers"])
    for name, numbers in vision_tensors(folder / "model.safetensors"):
        own = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if own is None:
            sys.exit(f"no name in GGUF for {name}")
        writer.add_tensor(own, numbers)
    _finish(writer)


def _json(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: Path, text: Path, target: Path) -> None:
    write_text(text, folder, target / text.name)
    write_vision(folder, target / "mmproj.gguf")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
