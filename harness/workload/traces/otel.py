"""OpenTelemetry's spans of GenAI: calls of a model inside spans of agents and tools, as OTLP JSON or plain spans.

A trace is a session. A span with calls below it is a thread of its own: an agent, or a tool that is one. Any other
span of a tool says that the time until the next call is the tool's.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.workload.traces.dates import seconds_of
from harness.workload.traces.rows import BadRow, number
from harness.workload.traces.sessions import MAIN, SUBAGENT, Begins, Call, Item, Thread, checked

KEYS = ({"resourceSpans"}, {"spans"}, {"traceId", "spanId"}, {"trace_id", "span_id"})
NO_PARENT = "spans whose parent is not in the file: they stand at the top of their session"
NO_CACHE = "calls without cached tokens: an agent's prompt is taken to begin with its one before, if longer"
_CALLS = ("chat", "generate_content", "text_completion")
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens")
_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")
_TOOL = "execute_tool"


@dataclass(eq=False, slots=True)
class _Span:
    parent: str
    start_s: float
    end_s: float
    operation: str
    call: Call | None = None
    cached: int | None = None
    children: "list[_Span]" = field(default_factory=list)
    item: "Item | None" = None


def threads(
    documents: Iterator[tuple[int, Any]], skipped: "Counter[str]", remarks: "Counter[str]"
) -> Iterator[Thread]:
    traces: dict[str, dict[str, _Span]] = {}
    for _, value in documents:
        for span in _spans(value):
            try:
                if isinstance(span, BadRow):
                    raise span
                trace, name, read = _read(span)
            except BadRow as bad:
                skipped[str(bad)] += 1
                continue
            spans = traces.setdefault(trace, {})
            if name in spans:
                skipped["a span_id that an earlier span has"] += 1
            else:
                spans[name] = read
    for trace in list(traces):
        yield from _session(traces.pop(trace), skipped, remarks)


def _spans(value: object) -> Iterator[Any]:
    """Of OTLP's resourceSpans, of a list of spans, or the one that a line is."""
    if not isinstance(value, dict):
        yield value if isinstance(value, BadRow) else BadRow("not a JSON object")
    elif "resourceSpans" in value:
        for resource in _listed(value["resourceSpans"]):
            for scope in _listed(_get(resource, "scopeSpans")):
                yield from _listed(_get(scope, "spans"))
    elif "spans" in value:
        yield from _listed(value["spans"])
    else:
        yield value


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _get(value: object, *names: str) -> Any:
    """The first of the names that an object has."""
    if isinstance(value, dict):
        return next((value[name] for name in names if value.get(name) is not None), None)
    return None


def _read(span: object) -> tuple[str, str, _Span]:
    """Trace, id and what is needed of a span. Raises BadRow."""
    if not isinstance(span, dict):
        raise BadRow("not a JSON object")
    trace, name = _get(span, "traceId", "trace_id"), _get(span, "spanId", "span_id")
    if not (isinstance(trace, str) and trace and isinstance(name, str) and name):
        raise BadRow("a span without its trace and its own id")
    start_s = _time(_get(span, "startTimeUnixNano", "start_time_unix_nano", "start_time"))
    end_s = _time(_get(span, "endTimeUnixNano", "end_time_unix_nano", "end_time"))
    if end_s < start_s:
        raise BadRow("a negative time")
    attributes = _attributes(span.get("attributes"))
    operation = attributes.get("gen_ai.operation.name")
    read = _Span(
        str(_get(span, "parentSpanId", "parent_span_id", "parent_id") or ""),
        start_s,
        end_s,
        operation if isinstance(operation, str) else "",
    )
    if operation in _CALLS or (operation is None and _get(attributes, *_INPUT) is not None):
        if _get(_get(span, "status"), "code", "status_code") in _FAILED:
            raise BadRow("a call that failed when it was recorded")
        row = checked(
            start_s,
            number(_get(attributes, *_INPUT)),
            number(_get(attributes, *_OUTPUT)),
            end_s - start_s,
        )
        cached = _get(attributes, *_CACHED)
        read.cached = None if cached is None else int(checked(0.0, number(cached) + 1, 1).input_tokens) - 1
        read.call = Call(start_s, end_s, int(row.input_tokens), int(row.output_tokens))
    return trace, name, read


def _time(value: object) -> float:
    """Nanoseconds since 1970, as a number or a text of digits; or a date."""
    if isinstance(value, str) and not value.isdigit():
        return seconds_of(value)
    return number(value) / 1e9


def _attributes(value: object) -> Mapping[str, Any]:
    """An object, or OTLP's list of keys and values by type."""
    if isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for entry in _listed(value):
        key, typed = _get(entry, "key"), _get(entry, "value")
        if isinstance(key, str) and isinstance(typed, dict) and len(typed) == 1:
            found[key] = next(iter(typed.values()))
    return found


def _session(
    spans: dict[str, _Span], skipped: "Counter[str]", remarks: "Counter[str]"
) -> Iterator[Thread]:
    top: list[_Span] = []
    for span in spans.values():
        parent = spans.get(span.parent)
        remarks[NO_PARENT] += bool(span.parent) and parent is None
        (top if parent is None else parent.children).append(span)
    order = _downward(top)
    lost = sum(span.call is not None for span in spans.values()) - sum(one.call is not None for one in order)
    if lost:
        skipped["spans that are each other's parents"] += lost
    for span in reversed(order):  # what is below comes first
        span.item = span.call or _thread(span)
    items = [span.item for span in top if span.item is not None]
    if items:
        thread = Thread.of(items)
        _tell_kinds(thread, order)
        _begin(thread, {id(one.call): one.cached for one in order if one.call is not None}, remarks)
        yield thread


def _downward(top: Sequence[_Span]) -> list[_Span]:
    """All spans below, none before the one that it is in."""
    order = list(top)
    for span in order:  # it grows meanwhile
        order.extend(span.children)
    return order


def _thread(span: _Span) -> Thread | None:
    items = [child.item for child in span.children if child.item is not None]
    return Thread(items, span.start_s, max(span.end_s, *(item.end_s for item in items))) if items else None
