"""Fronts and services before an engine, most of them vLLM: read from their sources and documentation."""

from dataclasses import replace

from harness.mockserver.dialect import Dialect, Reset, Structure
from harness.mockserver.dialects.common import CHAT_FIELDS, series
from harness.mockserver.dialects.local import LLAMACPP
from harness.mockserver.dialects.vllm import VLLM, VLLM_COUNTERS, VLLM_GAUGES
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape

_LENGTH_FIELDS = CHAT_FIELDS | {"ignore_eos", "min_tokens"}

# vLLM, without what it answers besides completions.
_BEHIND = replace(
    VLLM,
    version_path="",
    tokenizer=None,
    reset=None,
    metrics_path="",
    series=(),
    salt_field="",
    responses=None,
    messages=None,
    embeddings=None,
    rerank=None,
)

TRITON_VLLM = replace(
    _BEHIND,
    name="triton-vllm",
    habits=Habits(role="early"),
    shape=Shape(cached_tokens=False),
    health_path="/health/ready",
    owned_by="Triton Inference Server",
    structure=Structure(refuses_other_formats=False),
    metrics_path="/metrics",
    labels='model="{model}",version="1"',
    series=series(
        "vllm:",
        gauge={
            "num_requests_running": "running",
            "num_requests_waiting": "waiting",
            "gpu_cache_usage_perc": "kv_use",
        },
        counter={
            "prompt_tokens_total": "prompt",
            "generation_tokens_total": "generated",
            "num_preemptions_total": "zero",
        },
        histogram={
            "time_to_first_token_seconds": "ttft",
            "time_per_output_token_seconds": "tpot",
            "e2e_request_latency_seconds": "e2e",
            "request_queue_time_seconds": "queue",
        },
    ),
    known_fields=_LENGTH_FIELDS,
)

DYNAMO = replace(
    _BEHIND,
    name="dynamo",
    shape=Shape(role="text"),
    metrics_path="/metrics",
    labels='model="{model}"',
    series=series(
        "dynamo_frontend_",
        gauge={"inflight_requests": "running", "queued_requests": "waiting"},
        histogram={"time_to_first_token_seconds": "ttft", "inter_token_latency_seconds": "itl"},
    ),
    known_fields=_LENGTH_FIELDS,
)

NIM = replace(
    _BEHIND,
    name="nim",
    health_path="/v1/health/ready",
    loading="503",
    metrics_path="/v1/metrics",
    series=series("vllm:", gauge=VLLM_GAUGES, counter=VLLM_COUNTERS),
)

# vLLM 0.8.5 behind BentoML: the names of that time for constraints.
OPENLLM = replace(
    _BEHIND,
    name="openllm",
    health_path="/readyz",
    loading="503",
    structure=Structure(fields={("guided_json",): "json_schema", ("guided_regex",): "regex"}),
)

RAY_VLLM = replace(_BEHIND, name="ray-vllm", health_path="/-/healthz")
LLM_D = replace(_BEHIND, name="llm-d", salt_field="cache_salt")
GPUSTACK = replace(_BEHIND, name="gpustack")
XINFERENCE = replace(_BEHIND, name="xinference", health_path="/status")

LOCALAI = replace(
    LLAMACPP,
    name="localai",
    completions_usage="asked",
    responses=None,
    messages=None,
    embeddings=None,
    rerank=None,
    habits=Habits(),  # a Go server in front of llama.cpp, with connections of its own
    shape=Shape(role="text"),
    health_path="/readyz",
    version_path="/version",
    version={"version": "{version}"},
    tokenizer=None,
    reset=Reset("/backend/shutdown", answer={}),
    metrics_path="",
    series=(),
)

TEXTGEN = Dialect(
    name="textgen",
    habits=Habits(usage="finish", no_done=True),
    shape=Shape(cached_tokens=False),
    health_path="/v1/models",
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    length_field=("ban_eos_token",),
)

MII = Dialect(
    name="mii",
    habits=Habits(usage="never"),
    structure=Structure(refuses_other_formats=False),
)
