"""The engines' dialects, by name."""

from harness.truth.dialects.gpu import LMDEPLOY, SGLANG, TENSORRT_LLM, TGI
from harness.truth.dialects.local import LLAMACPP, MLX_LM, OLLAMA, TRANSFORMERS
from harness.truth.dialects.vllm import APHRODITE, TRUTH, VLLM

__all__ = ["DIALECTS", "TRUTH"]

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        TRUTH,
        VLLM,
        SGLANG,
        TGI,
        LLAMACPP,
        OLLAMA,
        LMDEPLOY,
        TENSORRT_LLM,
        APHRODITE,
        TRANSFORMERS,
        MLX_LM,
    )
}
