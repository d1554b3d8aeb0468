"""Reads OpenTelemetry spans of GenAI: model calls inside spans of agents and tools, as OTLP JSON or plain.

A trace is a session. A span with calls inside it is a thread of its own: an agent, or a tool that is one. A
call with one call inside is that call, as its client and its server recorded it.
After any other span, such as a tool's, the next call in the same span has waited for a tool.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.workload.traces.dates import seconds_of
from harness.workload.traces.rows import BadRow, an_object, number
from harness.workload.traces.sessions import (
    MAIN,
    MOST_LEVELS,
    SUBAGENT,
    Begins,
    Call,
    Item,
    Thread,
    checked,
    lay_out,
)

KEYS = ({"resourceSpans"}, {"spans"}, {"traceId", "spanId"}, {"trace_id", "span_id"})
NO_PARENT = "spans whose parent is not in the file: they stand at the top of their session"
NO_CACHE = "calls without cached tokens: an agent's prompt is taken to begin with its one before, if longer"
SUMMED = "spans with the tokens of several calls inside them: only these calls are replayed"
WITHIN = "calls inside another call, whose tokens are not their sum: left out"
_CALLS = ("chat", "generate_content", "text_completion")
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cached_tokens")
_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR")


@dataclass(eq=False, slots=True)
class _Span:
    parent: str
    start_s: float
    end_s: float
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
    """Yields the spans of OTLP's resourceSpans, of a list of spans, or the one that a line is."""
    if not isinstance(value, dict):
        yield value
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
    """The value of the first of the names that an object has; None without any, or for a non-object."""
    if isinstance(value, dict):
        return next((value[name] for name in names if value.get(name) is not None), None)
    return None


def _read(value: object) -> tuple[str, str, _Span]:
    """Ids of the trace and the span, and the fields of it that are used. Raises BadRow."""
    span = an_object(value)
    trace, name = _get(span, "traceId", "trace_id"), _get(span, "spanId", "span_id")
    if not (isinstance(trace, str) and trace and isinstance(name, str) and name):
        raise BadRow("a span without its trace and its own id")
    start_s = _time(_get(span, "startTimeUnixNano", "start_time_unix_nano", "start_time"))
    end_s = _time(_get(span, "endTimeUnixNano", "end_time_unix_nano", "end_time"))
    if end_s < start_s:
        raise BadRow("a negative time")
    attributes = _attributes(span.get("attributes"))
    operation = attributes.get("gen_ai.operation.name")
    read = _Span(str(_get(span, "parentSpanId", "parent_span_id", "parent_id") or ""), start_s, end_s)
    if operation in _CALLS or (operation is None and _get(attributes, *_INPUT) is not None):
        if _get(_get(span, "status"), "code", "status_code") in _FAILED:
            raise BadRow("a call that failed when it was recorded")
        row = checked(
            start_s, number(_get(attributes, *_INPUT)), number(_get(attributes, *_OUTPUT)), end_s - start_s
        )
        cached = _get(attributes, *_CACHED)
        counted = -1.0 if cached is None else number(cached)  # recorders write -1 for what they do not know
        read.cached = None if counted < 0 else int(checked(0.0, counted + 1, 1).input_tokens) - 1
        read.call = Call(start_s, end_s, int(row.input_tokens), int(row.output_tokens))
    return trace, name, read


def _time(value: object) -> float:
    """Seconds since 1970 of a number of nanoseconds, as number or text, or of a date. Raises BadRow."""
    if isinstance(value, str) and not value.isdigit():
        return seconds_of(value)
    return number(value) / 1e9


def _attributes(value: object) -> Mapping[str, Any]:
    """Attributes by name, from an object or from OTLP's list of keys and typed values."""
    if isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for entry in _listed(value):
        key, typed = _get(entry, "key"), _get(entry, "value")
        if isinstance(key, str) and isinstance(typed, dict) and len(typed) == 1:
            found[key] = next(iter(typed.values()))
    return found


def _session(spans: dict[str, _Span], skipped: "Counter[str]", remarks: "Counter[str]") -> Iterator[Thread]:
    top: list[_Span] = []
    for span in spans.values():
        parent = spans.get(span.parent)
        remarks[NO_PARENT] += bool(span.parent) and parent is None
        (top if parent is None else parent.children).append(span)
    order = _downward(top)
    if lost := sum(item.call is not None for item in spans.values()) - sum(
        item.call is not None for item in order
    ):
        skipped["calls in spans that are inside each other"] += lost
    for span in reversed(order):  # inner spans first
        _mark_tool_results(span.children)
        inner = _thread(span.children, span.start_s)
        within = [] if span.call is None or inner is None else lay_out(inner)
        if span.call is not None and len(within) > 1:
            if span.call.input_tokens >= sum(call.input_tokens for call in within):
                remarks[SUMMED] += 1
                span.call = None
            else:
                remarks[WITHIN] += len(within)
        span.item = span.call or inner
    _mark_tool_results(top)
    if (thread := _thread(top, None)) is not None:
        cached = {id(item.call): item.cached for item in order if item.call is not None}
        _set_beginnings(thread, MAIN, cached, remarks)
        yield thread


def _downward(top: Sequence[_Span]) -> list[_Span]:
    """These spans and all inside them, each after the span that it is in."""
    order = list(top)
    for span in order:  # the list grows during the loop
        order.extend(span.children)
    return order


def _mark_tool_results(spans: Sequence[_Span]) -> None:
    """Marks calls that bring a tool's result: the sibling that ended last before them is not a call."""
    ended = sorted(spans, key=lambda candidate: candidate.end_s)
    index = -1
    for span in sorted(spans, key=lambda candidate: candidate.start_s):
        while index + 1 < len(ended) and ended[index + 1].end_s <= span.start_s:
            index += 1
        if span.call is not None:
            span.call.tool = index >= 0 and ended[index].call is None


def _thread(spans: Sequence[_Span], start_s: float | None) -> Thread | None:
    """Builds a thread from the calls and threads of spans; None if there are none.

    A single thread is returned itself, and threads nested too deep are flattened.
    """
    items = [span.item for span in spans if span.item is not None]
    if not items:
        return None
    if len(items) == 1 and isinstance(items[0], Thread):
        return items[0]
    if any(isinstance(item, Thread) and item.levels >= MOST_LEVELS for item in items):
        items = [part for item in items for part in (item.items if isinstance(item, Thread) else [item])]
    return Thread.of(items, start_s)


def _set_beginnings(
    thread: Thread, kind: str, cached: Mapping[int, int | None], remarks: "Counter[str]"
) -> None:
    """Sets how each prompt of an agent begins: like the one before it.

    Agents below one with calls are subagents.
    """
    calls = sorted((item for item in thread.items if isinstance(item, Call)), key=lambda span: span.start_s)
    for before, call in zip([None, *calls], calls, strict=False):
        call.kind, call.tool = kind, call.tool or kind == SUBAGENT
        known = cached[id(call)]
        remarks[NO_CACHE] += before is not None and known is None
        if before is None:
            continue
        grown = before.input_tokens if call.input_tokens >= before.input_tokens else 0
        tokens = min(grown if known is None else known, before.input_tokens, call.input_tokens)
        call.begins = Begins(before, tokens) if tokens else None
    for item in thread.items:
        if isinstance(item, Thread):
            _set_beginnings(item, SUBAGENT if calls else kind, cached, remarks)
