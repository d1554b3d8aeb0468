"""A chat request in the words of an engine."""

import json
from collections.abc import Sequence
from typing import Any

from harness.spec.backend import Backend
from harness.spec.scenario import Request

Message = dict[str, str]


def exact_output_possible(definition: Backend) -> bool:
    return bool(definition.dialect.exact_output)


def render_body(
    definition: Backend, served_name: str, messages: Sequence[Message], max_tokens: int, request: Request
) -> bytes:
    """A streaming request. Sampling is always explicit: defaults differ by engine and by model file."""
    dialect = definition.dialect
    body: dict[str, Any] = {
        "model": served_name,
        "messages": list(messages),
        "max_tokens": max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stream": True,
    }
    if dialect.stream_usage:
        body["stream_options"] = {"include_usage": True}
    if request.exact_output:
        body |= dialect.exact_output
    body |= dialect.extra
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
