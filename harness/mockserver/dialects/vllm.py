"""vLLM, checked with captures of the real server; its fork; and the plain server, which has its series."""

from dataclasses import replace

from harness.mockserver.dialect import Dialect, Errors, Kind, Path, Quantity, Reset, Structure, Tokenizer
from harness.mockserver.dialects.common import MAX_MODEL_LEN, NO_ROUTE, OPENAI_FORMATS, series
from harness.mockserver.event_style import MessagesStyle, ResponsesStyle
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape
from harness.mockserver.values import RankStyle, VectorStyle

VLLM_FIELDS: dict[Path, Kind] = {
    ("structured_outputs", "json"): "json_schema",
    ("structured_outputs", "regex"): "regex",
    ("structured_outputs", "choice"): "choice",
    ("structured_outputs", "grammar"): "grammar",
    ("structured_outputs", "json_object"): "json_object",
}

VLLM_GAUGES: dict[str, Quantity] = {
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "kv_cache_usage_perc": "kv_use",
}

TRUTH = Dialect(
    name="truth",
    responses=ResponsesStyle(not_kept=404),
    messages=MessagesStyle(start_counts_all=False, counts_written=True),
    embeddings=VectorStyle(shortens="yes"),
    rerank=RankStyle(),
    card={"max_model_len": MAX_MODEL_LEN},
    version_path="/version",
    version={"version": "{version}", "kv_tokens": "{kv_tokens}"},
    tokenizer=Tokenizer("/tokenize", "prompt", extra={"count": "{count}", "max_model_len": MAX_MODEL_LEN}),
    reset=Reset("/reset_prefix_cache", answer={"success": True}),
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    metrics_path="/metrics",
    labels='model_name="{model}",engine="0"',
    series=series(
        "vllm:",
        gauge=VLLM_GAUGES,
        counter={
            "prompt_tokens_total": "prompt",
            "generation_tokens_total": "generated",
            "prefix_cache_queries_total": "prompt",
            "prefix_cache_hits_total": "device_cached",
            "external_prefix_cache_hits_total": "host_cached",
            "mm_cache_queries_total": "image_queries",
            "mm_cache_hits_total": "image_hits",
        },
    ),
    loading="503",
)

VLLM_COUNTERS: dict[str, Quantity] = {
    "prompt_tokens_total": "prompt",
    "generation_tokens_total": "generated",
    "prefix_cache_queries_total": "prompt",
    "prefix_cache_hits_total": "device_cached",
    "external_prefix_cache_hits_total": "host_cached",
    "mm_cache_queries_total": "image_queries",
    "mm_cache_hits_total": "image_hits",
    "num_preemptions_total": "zero",
    "request_success_total": "finished",
}

_VLLM_HISTOGRAMS: dict[str, Quantity] = {
    "time_to_first_token_seconds": "ttft",
    "inter_token_latency_seconds": "itl",
    "request_time_per_output_token_seconds": "tpot",
    "e2e_request_latency_seconds": "e2e",
    "request_queue_time_seconds": "queue",
    "nixl_xfer_time_seconds": "transfer",
    "request_prompt_tokens": "input_lengths",
    "request_generation_tokens": "output_lengths",
}

VLLM = Dialect(
    name="vllm",
    habits=Habits(reasoning_field="reasoning", counts_reasoning=True),
    shape=Shape(
        finish="text",
        chunk={},
        role_chunk={"prompt_token_ids": None, "prompt_text": None},
        usage_chunk={"system_fingerprint": "simulated"},
        text_choice={"token_ids": None},
        finish_choice={"stop_reason": None},
        message=dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning")),
        whole_choice=dict.fromkeys(("stop_reason", "token_ids", "routed_experts")),
        whole={
            "system_fingerprint": "simulated",
            **dict.fromkeys(
                "service_tier prompt_logprobs prompt_token_ids prompt_text kv_transfer_params "
                "ec_transfer_params metrics".split()
            ),
        },
        details={"created_cache_tokens": 0},
        whole_details={"created_cache_tokens": 0, "multimodal_tokens": None},
        whole_usage={"completion_tokens_details": None},
    ),
    errors=Errors(
        {"error": {"message": "{message}", "type": "{type}", "param": "{field}", "code": "{code}"}},
        no_route=NO_ROUTE,
        unknown_model=404,
    ),
    card={"max_model_len": MAX_MODEL_LEN},
    health=None,
    version_path="/version",
    version={"version": "{version}"},
    info_path="/server_info",
    info={"vllm_config": {"cache_config": {"kv_cache_size_tokens": "{kv_tokens}"}}},
    owned_by="vllm",
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    tokenizer=Tokenizer("/tokenize", "prompt", extra={"count": "{count}", "max_model_len": MAX_MODEL_LEN}),
    reset=Reset("/reset_prefix_cache", answer={"success": True}),
    metrics_path="/metrics",
    labels='model_name="{model}",engine="0"',
    series=series("vllm:", gauge=VLLM_GAUGES, counter=VLLM_COUNTERS, histogram=_VLLM_HISTOGRAMS),
    salt_field="cache_salt",
    responses=ResponsesStyle(not_kept=404),
    messages=MessagesStyle(),
    embeddings=VectorStyle(),
    rerank=RankStyle(bounded=True),
)

APHRODITE = replace(
    VLLM,
    name="aphrodite",
    owned_by="aphrodite-engine",
    responses=None,
    messages=None,
    embeddings=None,
    rerank=None,
    series=series("aphrodite:", gauge=VLLM_GAUGES, counter=VLLM_COUNTERS, histogram=_VLLM_HISTOGRAMS),
)
