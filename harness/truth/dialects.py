"""The engines' dialects. What stands here of llama.cpp and vLLM is held against captures of the real servers;
the rest is read from sources and documentation, as backends/*.toml say.
"""

from dataclasses import replace

from harness.truth.dialect import Dialect, Errors, Kind, Path, Quantity, Reset, Series, Structure, Tokenizer
from harness.truth.habits import Habits
from harness.truth.shape import Shape

Formats = dict[str, tuple[Kind, Path] | None]

OPENAI_FORMATS: Formats = {
    "text": None,
    "json_object": ("json_object", ("schema",)),
    "json_schema": ("json_schema", ("json_schema", "schema")),
}
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
CHAT_FIELDS = frozenset(
    "model messages prompt max_tokens max_completion_tokens temperature top_p n seed stop stream "
    "stream_options presence_penalty frequency_penalty logit_bias logprobs top_logprobs response_format "
    "tools tool_choice user".split()
)
FLAT_ERROR = {"object": "error", "message": "{message}", "type": "{type}", "param": None, "code": "{code}"}


def _series(prefix: str, **kinds: dict[str, Quantity]) -> tuple[Series, ...]:
    """`counter={name: quantity}` and so on."""
    return tuple(
        Series(prefix + name, kind, quantity)  # type: ignore[arg-type]  # the keywords are the kinds
        for kind, names in kinds.items()
        for name, quantity in names.items()
    )


TRUTH = Dialect(
    name="truth",
    version_path="/version",
    version={"version": "{version}"},
    tokenizer=Tokenizer("/tokenize", "prompt"),
    reset=Reset("/reset_prefix_cache", answer={"success": True}),
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    metrics_path="/metrics",
    labels='model_name="{model}",engine="0"',
    series=_series(
        "vllm:",
        gauge=VLLM_GAUGES,
        counter={
            "prompt_tokens_total": "prompt",
            "generation_tokens_total": "generated",
            "prefix_cache_queries_total": "prompt",
            "prefix_cache_hits_total": "cached",
        },
    ),
    loading="503",
)

_VLLM_COUNTERS: dict[str, Quantity] = {
    "prompt_tokens_total": "prompt",
    "generation_tokens_total": "generated",
    "prefix_cache_queries_total": "prompt",
    "prefix_cache_hits_total": "cached",
    "num_preemptions_total": "zero",
    "request_success_total": "finished",
}
_VLLM_HISTOGRAMS: dict[str, Quantity] = {
    "time_to_first_token_seconds": "ttft",
    "inter_token_latency_seconds": "itl",
    "request_time_per_output_token_seconds": "tpot",
    "e2e_request_latency_seconds": "e2e",
    "request_queue_time_seconds": "queue",
    "request_prompt_tokens": "input_lengths",
    "request_generation_tokens": "output_lengths",
}
VLLM = Dialect(
    name="vllm",
    habits=Habits(reasoning_field="reasoning"),
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
    errors=Errors(unknown_model=404),
    health=None,
    version_path="/version",
    version={"version": "{version}"},
    owned_by="vllm",
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    tokenizer=Tokenizer("/tokenize", "prompt"),
    reset=Reset("/reset_prefix_cache", answer={"success": True}),
    metrics_path="/metrics",
    labels='model_name="{model}",engine="0"',
    series=_series("vllm:", gauge=VLLM_GAUGES, counter=_VLLM_COUNTERS, histogram=_VLLM_HISTOGRAMS),
    salt_field="cache_salt",
)

APHRODITE = replace(
    VLLM,
    name="aphrodite",
    owned_by="aphrodite-engine",
    series=_series("aphrodite:", gauge=VLLM_GAUGES, counter=_VLLM_COUNTERS, histogram=_VLLM_HISTOGRAMS),
)

SGLANG = Dialect(
    name="sglang",
    shape=Shape(chunk={}, finish_choice={"matched_stop": None}),
    errors=Errors(FLAT_ERROR),
    health=None,
    version_path="/server_info",
    version={
        "version": "{version}",
        "schedule_policy": "fcfs",
        "grammar_backend": "xgrammar",
        "page_size": 1,
    },
    owned_by="sglang",
    structure=Structure(OPENAI_FORMATS, {("regex",): "regex", ("ebnf",): "grammar"}),
    tokenizer=Tokenizer("/tokenize", "prompt"),
    reset=Reset("/flush_cache", ("POST", "GET"), busy=400),
    metrics_path="/metrics",
    series=_series(
        "sglang:",
        gauge={
            "num_running_reqs": "running",
            "num_queue_reqs": "waiting",
            "token_usage": "kv_use",
            "cache_hit_rate": "hit_rate",
        },
        counter={
            "prompt_tokens_total": "prompt",
            "generation_tokens_total": "generated",
            "cached_tokens_total": "cached",
            "num_requests_total": "finished",
            "num_retracted_requests_total": "zero",
        },
        histogram={
            "time_to_first_token_seconds": "ttft",
            "inter_token_latency_seconds": "itl",
            "request_time_per_output_token_seconds": "tpot",
            "e2e_request_latency_seconds": "e2e",
            "queue_time_seconds": "queue",
        },
    ),
    cache_block_tokens=1,
    out_of_memory="torch.OutOfMemoryError: CUDA out of memory. Try to reduce --mem-fraction-static",
)

TGI = Dialect(
    name="tgi",
    shape=Shape(role="every", finish="text", cached_tokens=False),
    errors=Errors({"error": "{message}", "error_type": "validation"}, invalid=422),
    health=None,
    version_path="/info",
    version={
        "version": "{version}",
        "docker_label": "simulated",
        "sha": "simulated",
        "model_id": "{model}",
        "max_concurrent_requests": 4096,
    },
    structure=Structure(
        {
            "json": ("json_schema", ("value",)),
            "json_object": ("json_schema", ("value",)),
            "json_schema": ("json_schema", ("value", "schema")),
            "regex": ("regex", ("value",)),
        }
    ),
    tokenizer=Tokenizer("/tokenize", "inputs", ""),
    metrics_path="/metrics",
    labels="",
    series=_series(
        "tgi_",
        gauge={"batch_current_size": "running", "queue_size": "waiting"},
        counter={"request_count": "finished", "request_success": "finished"},
        histogram={
            "request_input_length": "input_lengths",
            "request_generated_tokens": "output_lengths",
            "request_mean_time_per_token_duration": "tpot",
            "request_duration": "e2e",
            "request_queue_duration": "queue",
        },
    ),
    forces_length=False,
    refused_values={"top_p": (1, 1.0)},
    out_of_memory="RuntimeError: Not enough memory to handle 2048 prefill tokens.",
)

LLAMACPP = Dialect(
    name="llamacpp",
    shape=Shape(role_content=None, choice={}, usage_chunk={}, timings=True),
    errors=Errors({"error": {"code": "{code}", "message": "{message}", "type": "invalid_request_error"}}),
    loading="503",
    version_path="/props",
    version={
        "build_info": "{version}",
        "total_slots": 8,
        "default_generation_settings": {"n_ctx": 2048},
        "model_alias": "{model}",
    },
    owned_by="llamacpp",
    structure=Structure(OPENAI_FORMATS, {("json_schema",): "json_schema", ("grammar",): "grammar"}),
    tokenizer=Tokenizer("/tokenize", "content"),
    reset=Reset("/slots/", answer={"id_slot": 0, "n_erased": 0}),
    metrics_path="/metrics",
    labels="",
    series=_series(
        "llamacpp:",
        counter={
            "prompt_tokens_total": "uncached",
            "prompt_tokens_cached_total": "cached",
            "tokens_predicted_total": "generated",
            "spec_decode_num_draft_tokens_total": "zero",
            "spec_decode_num_accepted_tokens_total": "zero",
        },
        gauge={"requests_processing": "running", "requests_deferred": "waiting"},
    ),
    cache_block_tokens=1,
    uncached_field="cache_prompt",
    out_of_memory="ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory",
)

OLLAMA = Dialect(
    name="ollama",
    habits=Habits(reasoning_field="reasoning"),
    shape=Shape(role="text", choice={}, cached_tokens=False),
    errors=Errors(
        {"error": {"message": "{message}", "type": "invalid_request_error", "param": None, "code": None}},
        unknown_model=404,
    ),
    loading="up",
    health_path="/",
    health=None,
    version_path="/api/version",
    version={"version": "{version}"},
    owned_by="library",
    structure=Structure(OPENAI_FORMATS),
    cache_block_tokens=1,
    forces_length=False,
    pulls_models=True,
    out_of_memory="Error: model requires more system memory (6.1 GiB) than is available (2.0 GiB)",
)

LMDEPLOY = Dialect(
    name="lmdeploy",
    habits=Habits(tokens_per_event=2),
    shape=Shape(role="every", finish="text", chunk={}),
    errors=Errors(FLAT_ERROR, unknown_model=404),
    health=None,
    owned_by="lmdeploy",
    structure=Structure({**OPENAI_FORMATS, "regex_schema": ("regex", ("regex_schema",))}),
    tokenizer=Tokenizer("/v1/encode", "input", "input_ids"),
    metrics_path="/metrics",
    series=_series(
        "lmdeploy:",
        gauge={
            "num_requests_running": "running",
            "num_requests_waiting": "waiting",
            "gpu_cache_usage_perc": "kv_use",
            "prefix_cache_hit_rate": "hit_rate",
        },
        counter={
            "prompt_tokens_total": "prompt",
            "cached_tokens_total": "cached",
            "generation_tokens_total": "generated",
            "spec_decode_num_draft_tokens_total": "zero",
            "spec_decode_num_accepted_tokens_total": "zero",
        },
        histogram={
            "time_to_first_token_seconds": "ttft",
            "iter_token_latency": "itl",
            "time_per_output_token_seconds": "tpot",
            "e2e_request_latency_seconds": "e2e",
            "request_queue_time_seconds": "queue",
        },
    ),
    cache_block_tokens=64,
    out_of_memory="RuntimeError: No enough gpu memory for runtime.",
)

TENSORRT_LLM = Dialect(
    name="tensorrt-llm",
    habits=Habits(tokens_per_event=2),
    errors=Errors(FLAT_ERROR),
    health=None,
    version_path="/version",
    version={"version": "{version}"},
    owned_by="tensorrt_llm",
    structure=Structure(
        {
            "text": None,
            "json": ("json_schema", ("schema",)),
            "json_schema": ("json_schema", ("json_schema",)),
            "json_object": ("json_object", ("schema",)),
            "regex": ("regex", ("regex",)),
            "ebnf": ("grammar", ("ebnf",)),
        }
    ),
    metrics_path="/prometheus/metrics",
    series=_series(
        "trtllm_",
        gauge={
            "num_requests_running": "running",
            "num_requests_waiting": "waiting",
            "kv_cache_utilization": "kv_use",
            "kv_cache_hit_rate": "hit_rate",
        },
        counter={
            "prompt_tokens_total": "prompt",
            "prompt_cached_tokens_total": "cached",
            "generation_tokens_total": "generated",
            "spec_decode_num_draft_tokens_total": "zero",
            "spec_decode_num_accepted_tokens_total": "zero",
        },
        histogram={
            "time_to_first_token_seconds": "ttft",
            "time_per_output_token_seconds": "tpot",
            "e2e_request_latency_seconds": "e2e",
            "request_queue_time_seconds": "queue",
        },
    ),
    json_metrics_path="/metrics",
    cache_block_tokens=32,
    salt_field="cache_salt",
    known_fields=CHAT_FIELDS
    | frozenset(
        "top_k top_p_min min_p repetition_penalty stop_token_ids include_stop_str_in_output ignore_eos "
        "min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens "
        "add_generation_prompt add_special_tokens cache_salt".split()
    ),
)

TRANSFORMERS = Dialect(
    name="transformers",
    habits=Habits(role="early", usage="finish"),
    shape=Shape(cached_tokens=False),
    errors=Errors({"detail": "{message}"}, invalid=422),
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
    known_fields=CHAT_FIELDS
    | frozenset("generation_config chat_template_kwargs reasoning_effort modalities metadata store".split()),
)

MLX_LM = Dialect(
    name="mlx-lm",
    habits=Habits(keepalive_ms=10.0, reasoning_field="reasoning"),
    shape=Shape(role="every", choice={}),
    errors=Errors({"error": "{message}"}, unknown_model=404),
    own_name="default_model",
    structure=Structure(refuses_other_formats=False),
    cache_block_tokens=1,
    forces_length=False,
)

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
