"""Random weights of a Llama's shape: `random_weights.py TOKENIZER.gguf FOLDER gguf|hf SHAPE`, SHAPE as JSON.

Both forms hold the same bf16 numbers, drawn from the seed, one stream for each tensor. The vocabulary is that
of the GGUF file, whose own weights are not read. Runs inside an engine's environment.
"""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np

SPREAD = 0.02  # standard deviation, as Llamas are initialised


class Shape:
    def __init__(self, shape: dict[str, int], vocabulary: int) -> None:
        self.seed, self.layers, self.width = shape["seed"], shape["layers"], shape["width"]
        self.heads, self.kv_heads = shape["heads"], shape["kv_heads"]
        self.feed_forward, self.context, self.vocabulary = shape["feed_forward"], shape["context"], vocabulary
        self.head = self.width // self.heads

    def tensors(self) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        """Name in the hub's form, name in GGUF, shape. Embeddings are the output's weights too."""
        width, kv = self.width, self.kv_heads * self.head
        yield "model.embed_tokens.weight", "token_embd.weight", (self.vocabulary, width)
        for n in range(self.layers):
            hub, own = f"model.layers.{n}", f"blk.{n}"
            yield f"{hub}.input_layernorm.weight", f"{own}.attn_norm.weight", (width,)
            yield f"{hub}.self_attn.q_proj.weight", f"{own}.attn_q.weight", (width, width)
            yield f"{hub}.self_attn.k_proj.weight", f"{own}.attn_k.weight", (kv, width)
            yield f"{hub}.self_attn.v_proj.weight", f"{own}.attn_v.weight", (kv, width)
            yield f"{hub}.self_attn.o_proj.weight", f"{own}.attn_output.weight", (width, width)
            yield f"{hub}.post_attention_layernorm.weight", f"{own}.ffn_norm.weight", (width,)
            yield f"{hub}.mlp.gate_proj.weight", f"{own}.ffn_gate.weight", (self.feed_forward, width)
            yield f"{hub}.mlp.up_proj.weight", f"{own}.ffn_up.weight", (self.feed_forward, width)
            yield f"{hub}.mlp.down_proj.weight", f"{own}.ffn_down.weight", (width, self.feed_forward)
        yield "model.norm.weight", "output_norm.weight", (width,)

    def values(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """bf16 numbers as they lie in memory; drawn by all cores, a few tensors ahead."""
        tensors = list(self.tensors())
        with ThreadPoolExecutor() as pool:
            for start in range(0, len(tensors), 16):
                some = range(start, min(start + 16, len(tensors)))
                drawn = pool.map(lambda n: _bf16(self.seed, n, tensors[n][2]), some)
                for n, values in zip(some, drawn, strict=True):
                    yield tensors[n][0], tensors[n][1], values


def _bf16(seed: int, number: int, shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) == 1:
        values = np.ones(shape, np.float32)
    else:
        values = np.random.default_rng([seed, number]).standard_normal(shape, np.float32)
        values *= np.float32(SPREAD)
    bits = values.view(np.uint32)
    bits += 0x8000  # to the nearest
    bits >>= 16
    return bits.astype(np.uint16)


def write_gguf(shape: Shape, reader: gguf.GGUFReader, target: Path) -> None:
    writer = gguf.GGUFWriter(target, "llama", use_temp_file=False)
    writer.add_name(target.stem)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(shape.head)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    for field in reader.fields.values():
        if field.name.startswith("tokenizer."):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    for _, name, bits in shape.values():
        if bits.ndim == 1:  # norms are F32 in every GGUF
            writer.add_tensor(name, np.ones(bits.shape, np.float32))
            continue
        heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads}.get(name.split(".")[-2])
        if heads:  # GGUF interleaves the two halves of each head that are rotated together
            pairs = bits.reshape(heads, 2, shape.head // 2, shape.width)
            bits = np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(bits.shape))
        writer.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_hf(shape: Shape, tokenizer: Path, folder: Path) -> None:
    from transformers import AutoTokenizer

    places, at = {}, 0
    for name, _, size in shape.tensors():
        end = at + 2 * int(np.prod(size))
        places[name] = {"dtype": "BF16", "shape": list(size), "data_offsets": [at, end]}
        at = end
    head = json.dumps({"__metadata__": {"format": "pt"}, **places}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for _, _, bits in shape.values():
            file.write(bits.tobytes())
    known = AutoTokenizer.from_pretrained(str(tokenizer.parent), gguf_file=tokenizer.name)
    known.save_pretrained(folder)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "intermediate_size": shape.feed_forward,
        "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": known.bos_token_id,
        "eos_token_id": known.eos_token_id,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def main(tokenizer: Path, folder: Path, form: str, sizes: dict[str, int]) -> None:
    reader = gguf.GGUFReader(tokenizer)
    shape = Shape(sizes, len(reader.fields["tokenizer.ggml.tokens"].contents()))
    if form == "gguf":
        write_gguf(shape, reader, folder / "random.gguf")
    else:
        write_hf(shape, tokenizer, folder)
    count = sum(int(np.prod(size)) for _, _, size in shape.tensors())
    print(f"{count / 1e6:,.1f} million random weights")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
