"""A GGUF file with noise on its weights: the known truth of a study of accuracy.

    PYTHON tests/bench/damage_weights.py FILE.gguf OUT.gguf NOISE [SEED]

PYTHON: of an engine's environment, which has the package gguf. NOISE: deviation of what is added to each
weight of the attention and the feed-forward layers, as a share of the deviation of its tensor; 0 changes
nothing but rounding. Equal arguments make equal bytes.
"""

import shutil
import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize, quantize

PLAIN = {GGMLQuantizationType.F32: np.float32, GGMLQuantizationType.F16: np.float16}
LAYERS = ("attn_", "ffn_")


def damage(source: str, target: str, noise: float, seed: int) -> int:
    """Tensors that were changed."""
    shutil.copyfile(source, target)
    random, changed = np.random.default_rng(seed), 0
    for tensor in GGUFReader(target, "r+").tensors:
        if not any(part in tensor.name for part in LAYERS) or len(tensor.shape) < 2:
            continue
        weights = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        weights += noise * weights.std() * random.standard_normal(weights.shape, np.float32)
        kind = tensor.tensor_type
        tensor.data[:] = weights.astype(PLAIN[kind]) if kind in PLAIN else quantize(weights, kind)
        changed += 1
    return changed


if __name__ == "__main__":
    given, made, share, *rest = sys.argv[1:]
    print(f"{damage(given, made, float(share), int(rest[0]) if rest else 0)} tensors changed")
