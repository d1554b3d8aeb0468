"""vLLM, checked with captures of the real server; its fork; and the plain server, which has its series."""

from dataclasses import replace

from harness.mockserver.dialect import Dialect, Errors, Kind, Path, Structure
from harness.mockserver.dialects.common import MAX_MODEL_LEN, NO_ROUTE, OPENAI_FORMATS, TOKEN_COUNT
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

TRUTH = Dialect(
    name="truth",
    responses=ResponsesStyle(not_kept=404),
    messages=MessagesStyle(start_counts_all=False, counts_written=True),
    embeddings=VectorStyle(shortens="yes"),
    rerank=RankStyle(),
    transcriptions=True,
    card={"max_model_len": MAX_MODEL_LEN},
    version={"version": "{version}", "kv_tokens": "{kv_tokens}"},
    tokenizer_extra=TOKEN_COUNT,
    reset_answer={"success": True},
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    labels='model_name="{model}",engine="0"',
    loading="503",
)

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
    version={"version": "{version}"},
    info={"vllm_config": {"cache_config": {"kv_cache_size_tokens": "{kv_tokens}"}}},
    owned_by="vllm",
    structure=Structure(OPENAI_FORMATS, VLLM_FIELDS),
    tokenizer_extra=TOKEN_COUNT,
    reset_answer={"success": True},
    unused_counters=frozenset({"draft_tokens", "accepted_tokens"}),  # without speculation there are none
    labels='model_name="{model}",engine="0"',
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
    info={"aphrodite_config": {"cache_config": {"kv_cache_size_tokens": "{kv_tokens}"}}},
    embeddings=None,
    rerank=None,
)
