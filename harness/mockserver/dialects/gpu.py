"""Servers that need a GPU: read from their sources and documentation, as backends/*.toml say."""

from harness.mockserver.dialect import Dialect, Errors, Reset, Structure, Tokenizer
from harness.mockserver.dialects.common import (
    CHAT_FIELDS,
    FLAT_ERROR,
    MAX_MODEL_LEN,
    NO_ROUTE,
    OPENAI_FORMATS,
    series,
)
from harness.mockserver.event_style import MessagesStyle, ResponsesStyle
from harness.mockserver.habits import Habits
from harness.mockserver.shape import Shape
from harness.mockserver.values import RankStyle, VectorStyle

SGLANG = Dialect(
    name="sglang",
    responses=ResponsesStyle(numbered="before", last_by_status=True, takes_from_limit=2, forces_length=False),
    messages=MessagesStyle(start_counts_all=False, delta_counts_input=False),
    embeddings=VectorStyle(),
    rerank=RankStyle(key="score", bare=True),
    shape=Shape(chunk={}, whole={}, finish_choice={"matched_stop": None}),
    errors=Errors(FLAT_ERROR, no_route=NO_ROUTE),
    health=None,
    version_path="/server_info",
    version={
        "version": "{version}",
        "schedule_policy": "fcfs",
        "grammar_backend": "xgrammar",
        "page_size": 1,
        "max_total_num_tokens": "{kv_tokens}",
    },
    owned_by="sglang",
    structure=Structure(OPENAI_FORMATS, {("regex",): "regex", ("ebnf",): "grammar"}),
    tokenizer=Tokenizer("/tokenize", "prompt", extra={"count": "{count}", "max_model_len": MAX_MODEL_LEN}),
    reset=Reset("/flush_cache", ("POST", "GET"), busy=400),
    metrics_path="/metrics",
    series=series(
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
    series=series(
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

LMDEPLOY = Dialect(
    name="lmdeploy",
    habits=Habits(tokens_per_event=2),
    shape=Shape(role="every", finish="text", chunk={}, whole={}),
    errors=Errors(FLAT_ERROR, no_route=NO_ROUTE, unknown_model=404),
    health=None,
    owned_by="lmdeploy",
    structure=Structure({**OPENAI_FORMATS, "regex_schema": ("regex", ("regex_schema",))}),
    tokenizer=Tokenizer("/v1/encode", "input", "input_ids", {"length": "{count}"}),
    metrics_path="/metrics",
    series=series(
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
    errors=Errors(FLAT_ERROR, no_route=NO_ROUTE),
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
    series=series(
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
