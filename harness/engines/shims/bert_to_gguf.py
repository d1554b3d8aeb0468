"""BERT model of vectors or of scores to a GGUF file in 16 bits: `bert_to_gguf.py FOLDER TARGET`."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np

_SPECIAL = {"[PAD]": "pad", "[UNK]": "unk", "[SEP]": "sep", "[CLS]": "bos", "[MASK]": "mask"}
_EMBEDDINGS = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}
_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_CLASSIFIER = {"pooler.dense": "cls", "classifier": "cls.output"}
_NUMBERS = {"F32": np.float32, "F16": np.float16}


def main(folder: Path, target: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    layers = config["num_hidden_layers"]
    writer = gguf.GGUFWriter(target / f"{folder.name}-f16.gguf", "bert")
    writer.add_name(folder.name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(layers)
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    ranks = config.get("architectures") == ["BertForSequenceClassification"]
    writer.add_pooling_type(gguf.PoolingType.RANK if ranks else _pooling(folder))
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    _add_tokenizer(writer, words_of((folder / "vocab.txt").read_text(encoding="utf-8")))

    names = _EMBEDDINGS | (_CLASSIFIER if ranks else {})
    for layer in range(layers):
        names |= {f"encoder.layer.{layer}.{ours}": f"blk.{layer}.{theirs}" for ours, theirs in _LAYER.items()}
    written = set()
    for name, tensor in _tensors(folder / "model.safetensors"):
        module, _, part = name.removeprefix("bert.").rpartition(".")
        if module in names:
            in_32 = tensor.ndim != 2 or (module in _EMBEDDINGS and module != "embeddings.word_embeddings")
            writer.add_tensor(f"{names[module]}.{part}", tensor.astype(np.float32 if in_32 else np.float16))
            written.add(module)
    if missing := names.keys() - written:
        sys.exit(f"the weights lack {min(missing)}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{len(written)} modules written")


def _pooling(folder: Path) -> gguf.PoolingType:
    """Reads the pooling as sentence-transformers declares it."""
    try:
        declared = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        sys.exit("the folder does not say how vectors are pooled: 1_Pooling/config.json is missing")
    if declared.get("pooling_mode_cls_token"):
        return gguf.PoolingType.CLS
    if declared.get("pooling_mode_mean_tokens"):
        return gguf.PoolingType.MEAN
    sys.exit("vectors are pooled neither by the mean nor from the first token")


def words_of(vocabulary: str) -> list[str]:
    """One per line feed alone: U+2028 and the like are words, and the lines' numbers are the tokens."""
    return vocabulary.removesuffix("\n").split("\n")


def _add_tokenizer(writer: gguf.GGUFWriter, words: list[str]) -> None:
    """llama.cpp marks the start of a word where BERT marks its continuation."""
    writer.add_tokenizer_model("bert")
    writer.add_token_list([word.encode() for word in map(_word, words)])
    writer.add_token_types([_kind(word) for word in words])
    writer.add_token_type_count(2)
    places = {word: index for index, word in enumerate(words)}
    for word, role in _SPECIAL.items():
        getattr(writer, f"add_{role}_token_id")(places[word])
    writer.add_eos_token_id(places["[SEP]"])
    writer.add_uint32("tokenizer.ggml.cls_token_id", places["[CLS]"])
    writer.add_add_bos_token(True)  # without these two a query and its document are one text
    writer.add_add_eos_token(True)
    writer.add_add_sep_token(False)


def _word(word: str) -> str:
    if word.startswith("[") and word.endswith("]"):
        return word
    return word[2:] if word.startswith("##") else "\u2581" + word


def _kind(word: str) -> gguf.TokenType:
    if word in _SPECIAL:
        return gguf.TokenType.CONTROL
    return gguf.TokenType.UNUSED if word.startswith("[unused") else gguf.TokenType.NORMAL


def _tensors(file: Path) -> Iterator[tuple[str, "np.ndarray[Any, Any]"]]:
    """A safetensors file: the length of its JSON header, the header, the numbers."""
    data = np.memmap(file, dtype=np.uint8, mode="r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] in _NUMBERS:  # whole numbers are positions, which GGUF does not hold
            numbers = data[start + begin : start + end].view(_NUMBERS[entry["dtype"]])
            yield name, numbers.reshape(entry["shape"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
