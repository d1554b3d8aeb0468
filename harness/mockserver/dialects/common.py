"""Parts that the dialects of several engines share."""

from harness.mockserver.dialect import Kind, Path

Formats = dict[str, tuple[Kind, Path] | None]

OPENAI_FORMATS: Formats = {
    "text": None,
    "json_object": ("json_object", ("schema",)),
    "json_schema": ("json_schema", ("json_schema", "schema")),
}

CHAT_FIELDS = frozenset(
    "model messages prompt max_tokens max_completion_tokens temperature top_p n seed stop stream "
    "stream_options presence_penalty frequency_penalty logit_bias logprobs top_logprobs response_format "
    "tools tool_choice user".split()
)

MAX_MODEL_LEN = 131_072
NO_ROUTE = {"detail": "Not Found"}  # FastAPI's
FLAT_ERROR = {"object": "error", "message": "{message}", "type": "{type}", "param": None, "code": "{code}"}

# Of an answer with tokens, next to their ids.
TOKEN_COUNT = {"count": "{count}", "max_model_len": MAX_MODEL_LEN}
