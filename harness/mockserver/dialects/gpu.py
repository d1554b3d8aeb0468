"""Servers that need a GPU: read from their sources and documentation, as backends/*.toml say."""

from harness.mockserver.dialect import Dialect, Errors, Structure
from harness.mockserver.dialects.common import CHAT_FIELDS, FLAT_ERROR, NO_ROUTE, OPENAI_FORMATS, TOKEN_COUNT
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
    version={
        "version": "{version}",
        "schedule_policy": "fcfs",
        "grammar_backend": "xgrammar",
        "page_size": 1,
        "max_total_num_tokens": "{kv_tokens}",
    },
    owned_by="sglang",
    structure=Structure(OPENAI_FORMATS, {("regex",): "regex", ("ebnf",): "grammar"}),
    tokenizer_extra=TOKEN_COUNT,
    reset_busy=400,
    cache_block_tokens=1,
    out_of_memory="torch.OutOfMemoryError: CUDA out of memory. Try to reduce --mem-fraction-static",
)

TGI = Dialect(
    name="tgi",
    shape=Shape(role="every", finish="text", cached_tokens=False),
    errors=Errors({"error": "{message}", "error_type": "validation"}, invalid=422),
    health=None,
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
    labels="",
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
    tokenizer_extra={"length": "{count}"},
    cache_block_tokens=64,
    out_of_memory="RuntimeError: No enough gpu memory for runtime.",
)

TENSORRT_LLM = Dialect(
    name="tensorrt-llm",
    habits=Habits(tokens_per_event=2),
    errors=Errors(FLAT_ERROR, no_route=NO_ROUTE),
    health=None,
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
    cache_block_tokens=32,
    salt_field="cache_salt",
    known_fields=CHAT_FIELDS
    | frozenset(
        "top_k top_p_min min_p repetition_penalty stop_token_ids include_stop_str_in_output ignore_eos "
        "min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens "
        "add_generation_prompt add_special_tokens chat_template_kwargs cache_salt".split()
    ),
)
