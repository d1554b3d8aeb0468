"""What one JSON document of an answer says: an OpenAI chat or completions chunk, or a whole answer."""

import json
from typing import Any, NamedTuple

import msgspec

from harness.records.layout import UNKNOWN, EventKind

_MOST_TOKENS = 10_000_000  # no model holds so many: a larger count is none


class Payload(NamedTuple):
    kind: EventKind
    text: str = ""  # reasoning and content; that of tool calls is in `calls`
    finish_reason: str = ""
    prompt_tokens: int = UNKNOWN
    cached_tokens: int = UNKNOWN
    output_tokens: int = UNKNOWN
    error: str = ""
    malformed: str = ""
    calls: tuple["CallPart", ...] = ()


class CallPart(NamedTuple):
    """What one event says of one tool call; "" where it says nothing."""

    place: int
    id: str
    name: str
    arguments: str


def read_json(data: bytes, *, is_error: bool = False) -> Payload:
    try:
        document = _read(data)
    except (ValueError, RecursionError) as error:
        if is_error:
            return Payload(EventKind.ERROR, error=data.decode("utf-8", "replace"))
        return Payload(EventKind.OTHER, malformed=f"not JSON: {error}")
    if not isinstance(document, dict):
        if is_error:
            return Payload(EventKind.ERROR, error=str(document))
        return Payload(EventKind.OTHER, malformed="JSON that is not an object")
    if is_error or document.get("error") or document.get("object") == "error":
        return Payload(EventKind.ERROR, error=error_message(document) or "error without a message")
    return _read_answer(document)


def _read(data: bytes) -> Any:
    """As json.loads does, and most documents in a fifth of its time."""
    try:
        return msgspec.json.decode(data)
    except ValueError:  # what json takes beyond the standard, and its words for the rest
        return json.loads(data.decode())


def error_message(document: Any, levels: int = 8) -> str:
    """The human sentence in the error shapes of OpenAI, FastAPI, TGI and llama.cpp; "" where none."""
    if isinstance(document, str):
        return document
    if isinstance(document, dict) and levels:
        for key in ("error", "message", "detail", "msg"):
            if message := error_message(document.get(key), levels - 1):
                return message
    if isinstance(document, list) and levels:
        return "; ".join(filter(None, (error_message(one, levels - 1) for one in document)))
    return ""


def _read_answer(document: dict[str, object]) -> Payload:
    texts: list[str] = []
    reasoning: list[str] = []
    calls: list[CallPart] = []
    finish_reason = ""
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        if isinstance(reason := choice.get("finish_reason"), str):
            finish_reason = reason
        delta = choice.get("delta", choice.get("message"))
        if not isinstance(delta, dict):
            delta = choice
        thought = delta.get("reasoning")  # some engines send the same text under both names
        reasoning.append(_string(thought) or _string(delta.get("reasoning_content")))
        texts.append(_string(delta.get("content")) or _string(delta.get("text")))
        calls += _tool_calls(delta.get("tool_calls"))
    prompt, cached, output = _usage(document)
    if any(texts):
        kind = EventKind.TEXT
    elif any(reasoning):
        kind = EventKind.REASONING
    elif any(call.name or call.arguments for call in calls):
        kind = EventKind.TOOL_CALL
    elif max(prompt, cached, output) != UNKNOWN:
        kind = EventKind.USAGE
    else:
        kind = EventKind.OTHER
    return Payload(
        kind, "".join(reasoning + texts), finish_reason, prompt, cached, output, calls=tuple(calls)
    )


def _string(value: object) -> str:
    """Content is a string, or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_string(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _tool_calls(calls: object) -> list[CallPart]:
    parts = []
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        index, arguments = call.get("index"), function.get("arguments")
        if isinstance(arguments, dict):  # engines that answer whole calls may send the object itself
            arguments = json.dumps(arguments)
        parts.append(
            CallPart(
                index if isinstance(index, int) else position,
                _string(call.get("id")),
                _string(function.get("name")),
                _string(arguments),
            )
        )
    return parts


def _usage(document: dict[str, object]) -> tuple[int, int, int]:
    """Prompt, cached and output tokens: from `usage`, where absent from llama.cpp's `timings`."""
    usage, timings = document.get("usage"), document.get("timings")
    prompt = cached = output = UNKNOWN
    if isinstance(timings, dict):
        cached, output, fresh = (_count(timings.get(key)) for key in ("cache_n", "predicted_n", "prompt_n"))
        if UNKNOWN not in (cached, fresh):
            prompt = cached + fresh
    if isinstance(usage, dict):
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict) and (reported := _count(details.get("cached_tokens"))) != UNKNOWN:
            cached = reported
        if (reported := _count(usage.get("prompt_tokens"))) != UNKNOWN:
            prompt = reported
        if (reported := _count(usage.get("completion_tokens"))) != UNKNOWN:
            output = reported
    return prompt, cached, output


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
        return value
    return UNKNOWN
