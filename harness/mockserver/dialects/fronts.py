"""Fronts and services before an engine, most of them vLLM: read from their sources and documentation."""

from dataclasses import replace
from typing import Any

from harness.mockserver.dialect import Dialect, Structure
from harness.mockserver.dialects.common import CHAT_FIELDS, OPENAI_FORMATS
from harness.mockserver.dialects.local import LLAMACPP
from harness.mockserver.dialects.vllm import VLLM
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape

_LENGTH_FIELDS = CHAT_FIELDS | {"ignore_eos", "min_tokens"}

# They answer chats and completions alone.
_ALONE: dict[str, Any] = dict.fromkeys(("responses", "messages", "embeddings", "rerank"))
_BEHIND = replace(VLLM, salt_field="", **_ALONE)

TRITON_VLLM = replace(
    _BEHIND,
    name="triton-vllm",
    habits=Habits(role="early"),
    shape=Shape(cached_tokens=False),
    owned_by="Triton Inference Server",
    structure=Structure(refuses_other_formats=False),
    labels='model="{model}",version="1"',
    known_fields=_LENGTH_FIELDS,
)

DYNAMO = replace(
    _BEHIND,
    name="dynamo",
    shape=Shape(role="text"),
    labels='model="{model}"',
    structure=Structure(
        OPENAI_FORMATS,
        {("guided_regex",): "regex", ("guided_choice",): "choice", ("guided_grammar",): "grammar"},
    ),
    known_fields=_LENGTH_FIELDS
    | frozenset(
        "top_k min_p repetition_penalty chat_template_kwargs guided_json guided_regex guided_choice "
        "guided_grammar cache_salt".split()
    ),
)

NIM = replace(_BEHIND, name="nim", loading="503")

# vLLM 0.8.5 behind BentoML: the names of that time for constraints.
OPENLLM = replace(
    _BEHIND,
    name="openllm",
    loading="503",
    structure=Structure(fields={("guided_json",): "json_schema", ("guided_regex",): "regex"}),
)

RAY_VLLM = replace(_BEHIND, name="ray-vllm")
LLM_D = replace(_BEHIND, name="llm-d", salt_field="cache_salt")
GPUSTACK = replace(_BEHIND, name="gpustack")
XINFERENCE = replace(_BEHIND, name="xinference")

LOCALAI = replace(
    LLAMACPP,
    name="localai",
    completions_usage="asked",
    habits=Habits(),  # a Go server in front of llama.cpp, with connections of its own
    shape=Shape(role="text"),
    version={"version": "{version}"},
    reset_answer={},
    **_ALONE,
)

TEXTGEN = Dialect(
    name="textgen",
    habits=Habits(usage="finish", no_done=True),
    shape=Shape(cached_tokens=False),
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    length_field=("ban_eos_token",),
)

MII = Dialect(name="mii", habits=Habits(usage="never"), structure=Structure(refuses_other_formats=False))
