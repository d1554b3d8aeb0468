"""A JSON document of an answer in terms that are the same for every API, and readers of its values."""

import json
from array import array
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from harness.records.event_kind import UNKNOWN, EventKind

_MOST_TOKENS = 10_000_000  # no model holds so many: a larger count is wrong
_SUCCESS = ("", "0", "200", "ok", "success")
_OF_ERRORS = frozenset(("message", "detail", "errors"))
_OF_EVENTS = frozenset(("choices", "type", "object"))
# Kimi, DeepSeek and Mistral count what came from the cache next to the other counts.
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens")


class Payload(msgspec.Struct, frozen=True):  # replacing a field of a NamedTuple takes six times as long
    kind: EventKind
    text: str = ""  # of this kind; that of tool calls is in `calls`
    finish_reason: str = ""
    prompt_tokens: int = UNKNOWN
    cached_tokens: int = UNKNOWN
    output_tokens: int = UNKNOWN
    reasoning_tokens: int = UNKNOWN  # of the output tokens
    error: str = ""
    malformed: str = ""
    calls: tuple["CallPart", ...] = ()
    ends: bool = False  # the stream is complete with this event
    values: tuple[
        "array[float]", ...
    ] = ()  # of an embeddings API one vector each, of a rerank API the scores
    answer_id: str = ""  # by which a later request may name this answer
    reasoning: str = ""  # ahead of the content in `text`, where one event holds both
    repeats: bool = False  # the whole answer once more: news only where nothing of it came before
    model: str = ""


class CallPart(NamedTuple):
    """What one event says of one tool call; "" where it says nothing."""

    place: int
    id: str
    name: str
    arguments: str
    whole: bool = False  # all arguments at once, which parts may have brought before
    early: bool = False  # all arguments at once, which parts may bring again


Document = Mapping[str, Any]
Reader = Callable[[Document], Payload]


def read_json(data: bytes, read: Reader, *, is_error: bool = False, bare_list: str = "") -> Payload:
    """`read` sees objects in the shapes that all APIs share, errors excepted; a bare list under its key."""
    try:
        document = _parse(data)
    except (ValueError, RecursionError) as error:
        if is_error:
            return error_payload(data.decode("utf-8", "replace"))
        return Payload(EventKind.OTHER, malformed=f"not JSON: {error}")
    if bare_list and isinstance(document, list):
        document = {bare_list: document}
    if not isinstance(document, dict):
        if is_error:
            return error_payload(str(document))
        return Payload(EventKind.OTHER, malformed="JSON that is not an object")
    named = is_error or document.get("error") or "error" in (document.get("object"), document.get("type"))
    if named or _is_bare_error(document):
        return error_payload(error_message(document))
    payload, model = read(document), _model(document)
    return replace(payload, model=model) if model else payload


def _is_bare_error(document: Document) -> bool:
    """Whether it is a code with a message, a detail or a list of errors, as gateways write an error, and no
    event of an API.
    """
    if not _OF_ERRORS.isdisjoint(document) and _OF_EVENTS.isdisjoint(document):
        code, message = document.get("code", document.get("error_code")), document.get("message")
        if isinstance(code, int | str) and isinstance(message, str):
            return str(code).lower() not in _SUCCESS and message.lower() not in _SUCCESS
        return bool(document.get("errors") or error_message(document.get("detail")))
    return False


def error_payload(message: str) -> Payload:
    return Payload(EventKind.ERROR, error=message or "error without a message")


def _parse(data: bytes) -> Any:
    """Parses as json.loads does, and most documents in a fifth of its time."""
    try:
        return msgspec.json.decode(data)
    except ValueError:  # what json takes beyond the standard, and its words for the rest
        return json.loads(data.decode())


def error_message(document: Any, levels: int = 8) -> str:
    """The human sentence in the error shapes of OpenAI, FastAPI, TGI, llama.cpp, gateways; "" where none."""
    if isinstance(document, str):
        return document
    if isinstance(document, dict) and levels:
        for key in ("error", "errors", "message", "detail", "msg"):
            if message := error_message(document.get(key), levels - 1):
                return message
    if isinstance(document, list) and levels:
        return "; ".join(filter(None, (error_message(entry, levels - 1) for entry in document)))
    return ""


def _model(document: Document) -> str:
    """The name of the model, in the event itself or in what `messages` and `responses` put into one."""
    name = document.get("model")
    for key in ("message", "response"):
        name = name or mapping(document.get(key)).get("model")
    return string(name)


def with_content(empty: Payload, text: list[str], reasoning: list[str], calls: list[CallPart]) -> Payload:
    """Returns `empty`, the payload of an event without generated text, with what was generated."""
    answer, thought = "".join(text), "".join(reasoning)
    kind = empty.kind
    if answer or thought:
        kind = EventKind.TEXT if answer else EventKind.REASONING
    elif any(call.name or call.arguments for call in calls):
        kind = EventKind.TOOL_CALL
    ahead = thought if answer else ""
    return replace(empty, kind=kind, text=answer or thought, calls=tuple(calls), reasoning=ahead)


def without_content(payload: Payload) -> Payload:
    usage = payload.prompt_tokens, payload.cached_tokens, payload.output_tokens, payload.reasoning_tokens
    return replace(payload, kind=usage_kind(usage), text="", reasoning="", calls=())


def string(value: object) -> str:
    """Content is a string, or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text", part.get("refusal")) for part in value if isinstance(part, dict))
        return "".join(map(string, parts))
    return ""


def mapping(value: object) -> dict[str, Any]:
    """Empty where the server sent anything but an object."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[dict[str, Any]]:
    """The objects of a list; empty where the server sent anything but a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def by_place(entries: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """Returns the entries in the order of `index`.

    ValueError or TypeError where that is not 0, 1, 2 and so on, each once.
    """
    entries = sorted(entries, key=lambda entry: int(entry["index"]) if "index" in entry else -1)
    if [entry.get("index") for entry in entries] != list(range(len(entries))):
        raise ValueError(f"the places of the {what} are not 0, 1, 2 and so on, each once")
    return entries


def place(value: object, otherwise: int = 0) -> int:
    """The number of the part, of several parallel ones, that an event is about."""
    return value if isinstance(value, int) else otherwise


def arguments(value: object) -> str:
    """Returns the arguments of a tool call. Engines that answer whole calls may send the object itself."""
    return json.dumps(value) if isinstance(value, dict) else string(value)


def count(value: object) -> int:
    """Tokens; UNKNOWN where the server sent no plausible number."""
    if isinstance(value, float) and value.is_integer():  # 11.0, as servers with one type of number write
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
        return value
    return UNKNOWN


Usage = tuple[int, int, int, int]  # prompt, cached, output and reasoning tokens; UNKNOWN: not reported
UNCOUNTED: Usage = (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def usage_kind(usage: Usage) -> EventKind:
    """Returns the kind of an event without generated text."""
    return EventKind.OTHER if max(usage) == UNKNOWN else EventKind.USAGE


def usage_of(document: Document) -> dict[str, Any]:
    """OpenAI's `usage` of an event, in a response, or where Groq and Kimi put it; {} where none."""
    if isinstance(usage := document.get("usage"), dict):
        return usage
    for holder in (document.get("response"), document.get("x_groq"), *items(document.get("choices"))):
        if isinstance(holder, dict) and isinstance(usage := holder.get("usage"), dict):
            return usage
    return {}


def reported_usage(usage: Document, prompt: str, output: str, otherwise: Usage) -> Usage:
    """OpenAI's `usage` with these names of its counts; where one is absent, that of `otherwise`."""
    of_prompt, of_output = (mapping(usage.get(f"{name}_details")) for name in (prompt, output))
    thought = of_output.get("reasoning_tokens", usage.get("reasoning_tokens"))  # SGLang: next to the others
    cached_tokens = (of_prompt.get("cached_tokens"), *map(usage.get, _CACHED))
    cached = next((tokens for tokens in map(count, cached_tokens) if tokens != UNKNOWN), UNKNOWN)
    counts = count(usage.get(prompt)), cached, count(usage.get(output))
    first, cached, last = (
        other if counted == UNKNOWN else counted for counted, other in zip(counts, otherwise[:3], strict=True)
    )
    thoughts = count(thought)
    known = thoughts > 0 and UNKNOWN not in (first, last)
    if known and count(usage.get("total_tokens")) == first + last + thoughts:  # xAI counts them apart
        last += thoughts
    return first, cached, last, thoughts


def whole_prompt(usage: Document) -> int:
    """Tokens of the prompts, where there is no output: some servers count the total alone."""
    counts = (count(usage.get(name)) for name in ("prompt_tokens", "total_tokens", "input_tokens"))
    return next((tokens for tokens in counts if tokens > 0), UNKNOWN)


def first_call(tool_calls: str) -> tuple[str, dict[str, str]]:
    """Chooses, of the calls that an answer holds, the one that the chat goes on with, and the id to
    answer it by.

    Arguments that were cut, or are not one object of JSON, are lost: SGLang, llama.cpp and Messages refuse a
    chat with them.
    """
    call: dict[str, str] = json.loads(tool_calls)[0]
    try:
        whole = isinstance(msgspec.json.decode(call["arguments"]), dict)
    except (ValueError, RecursionError):
        whole = False
    return call["id"] or "call_0", call if whole else {**call, "arguments": "{}"}


def timed_usage(document: Document) -> Usage:
    """Prompt, cached and output tokens by llama.cpp's `timings`."""
    timings = document.get("timings")
    if not isinstance(timings, dict):
        return UNCOUNTED
    cached, output, fresh = (count(timings.get(key)) for key in ("cache_n", "predicted_n", "prompt_n"))
    return (UNKNOWN if UNKNOWN in (cached, fresh) else cached + fresh), cached, output, UNKNOWN
