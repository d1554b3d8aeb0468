"""The engines' dialects, by name."""

from harness.mockserver.dialects.fronts import (
    DYNAMO,
    GPUSTACK,
    LLM_D,
    LOCALAI,
    MII,
    NIM,
    OPENLLM,
    RAY_VLLM,
    TEXTGEN,
    TRITON_VLLM,
    XINFERENCE,
)
from harness.mockserver.dialects.gpu import LMDEPLOY, SGLANG, TENSORRT_LLM, TGI
from harness.mockserver.dialects.local import LLAMACPP, MLX_LM, OLLAMA, TRANSFORMERS
from harness.mockserver.dialects.small import (
    FASTER_WHISPER,
    HOSTED,
    KOBOLDCPP,
    LIBRARY,
    LLAMA_CPP_PYTHON,
    LMSTUDIO,
    MISTRALRS,
    MLC_LLM,
    MODULAR_MAX,
    OMLX,
    OVMS,
    TABBYAPI,
)
from harness.mockserver.dialects.vllm import APHRODITE, TRUTH, VLLM

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
        TRITON_VLLM,
        DYNAMO,
        NIM,
        OPENLLM,
        LLM_D,
        GPUSTACK,
        XINFERENCE,
        LOCALAI,
        TEXTGEN,
        MII,
        LMSTUDIO,
        MLC_LLM,
        TABBYAPI,
        KOBOLDCPP,
        OVMS,
        OMLX,
        HOSTED,
        LIBRARY,
        FASTER_WHISPER,
        RAY_VLLM,
        MISTRALRS,
        MODULAR_MAX,
        LLAMA_CPP_PYTHON,
    )
}
