"""Size of a KV cache in tokens: for engines that take no bytes, and as a running engine reports it."""

import math
from collections.abc import Mapping
from pathlib import Path

from harness.model.numbers import GIB
from harness.spec.backend import Backend, Value
from harness.untrusted import read_document

BLOCK = 128  # tokens: the largest block of an engine on a CPU, vLLM's; whole blocks make their caches equal
_BYTES = {"float32": 4, "float": 4}  # per number; others have 2


def kv_tokens(model: Path, values: Mapping[str, Value]) -> int | None:
    """Tokens that `kv_cache_gib` of [engine.values] holds, in whole blocks, with a cache of the type `dtype`.

    None where the folder does not say what a token takes: no config.json, or attention of another kind.
    """
    numbers = token_numbers(model)
    if numbers is None:
        return None
    per_token = numbers * _BYTES.get(str(values.get("dtype")), 2)
    return int(float(values["kv_cache_gib"]) * GIB / per_token) // BLOCK * BLOCK


def token_numbers(model: Path) -> int | None:
    """How many keys and values a token has, over all layers; None where the folder does not say."""
    try:
        config = read_document((model / "config.json").read_bytes())
    except (OSError, ValueError):
        return None
    sizes = _sizes(config) if isinstance(config, Mapping) else None
    return 2 * math.prod(sizes) if sizes else None


def reported_tokens(definition: Backend, info: Mapping[str, object]) -> int | None:
    """Returns what the KV cache of a running engine holds, by the facts it tells of itself.

    None: it does not say.
    """
    keys = definition.server.kv_tokens
    numbers = [int(value) for key in keys if isinstance(value := info.get(key), int | float) and value > 0]
    return math.prod(numbers) if keys and len(numbers) == len(keys) else None


def _sizes(config: Mapping[str, object]) -> tuple[int, int, int] | None:
    """Layers, heads of keys and values, and numbers per head."""

    def number(name: str) -> int | None:
        value = config.get(name)
        return value if isinstance(value, int) and value > 0 else None

    layers, heads = number("num_hidden_layers"), number("num_attention_heads")
    width = number("hidden_size")
    if layers is None or heads is None or width is None or "kv_lora_rank" in config:
        return None
    return layers, number("num_key_value_heads") or heads, number("head_dim") or width // heads
