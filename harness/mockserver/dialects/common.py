"""Says what several engines' dialects share."""

from harness.mockserver.dialect import Kind, Path, Quantity, Series

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


def series(prefix: str, **kinds: dict[str, Quantity]) -> tuple[Series, ...]:
    """`counter={name: quantity}` and so on."""
    return tuple(
        Series(prefix + name, kind, quantity)  # type: ignore[arg-type]  # the keywords are the kinds
        for kind, names in kinds.items()
        for name, quantity in names.items()
    )
