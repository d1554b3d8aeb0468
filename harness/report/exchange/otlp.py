"""Requests as OpenTelemetry spans in the JSON encoding of OTLP, attributes by its GenAI conventions.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from harness.model.grouping import grouped

# By API, the operation as the conventions call it; an API that they do not know keeps its own name.
_OPERATIONS = {"completions": "text_completion", "responses": "chat", "messages": "chat"}
_BATCH = 512  # spans of one message: collectors refuse large ones
_CLIENT, _OK, _ERROR = 3, 1, 2  # SPAN_KIND_CLIENT, STATUS_CODE_OK, STATUS_CODE_ERROR
# Of outcomes that are no errors; that a user hung up, as the scenario says, is neither success nor failure.
_STATUSES: Mapping[str, dict[str, Any]] = {"ok": {"code": _OK}, "abandoned": {}}

# What a span says of its request: attribute, column. Texts of prompts and answers are left out.
_ATTRIBUTES = {
    "gen_ai.usage.input_tokens": "prompt_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "http.response.status_code": "http_status",
    "bench.seq": "seq",
    "bench.phase": "phase",
    "bench.outcome": "outcome",
    "bench.attempts": "attempts",
    "bench.cached_tokens": "cached_tokens",
}
_OF_CELL = {
    "service.version": "engine_version",
    "bench.run": "run",
    "bench.cell": "cell",
    "bench.backend": "backend",
    "bench.simulated": "simulated",
    "bench.load.kind": "load_kind",
    "bench.load.value": "load_value",
}
_MOMENTS = {"response headers": "headers_ns", "first text": "first_text_ns", "last text": "last_text_ns"}

QUERY = """select r.* exclude (tpot_ms), c.label, c.backend, c.engine_version, c.simulated, c.load_kind,
    c.load_value, c.started_unix_ns, c.api from requests r join cells c using (run, cell)
    where r.sent_ns is not null and r.end_ns is not null"""


def messages(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """ExportTraceServiceRequest documents, from the rows of QUERY."""
    named = tuple(names)
    spans = (dict(zip(named, row, strict=True)) for row in rows)
    while batch := list(islice(spans, _BATCH)):
        by_cell = grouped(((row["run"], row["cell"]), row) for row in batch)
        yield {"resourceSpans": [_cell(of_cell) for of_cell in by_cell.values()]}


def _cell(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    about = {"service.name": rows[0]["label"]} | _present(rows[0], _OF_CELL)
    scope = {"scope": {"name": "bench"}, "spans": [_span(row) for row in rows]}
    return {"resource": {"attributes": _attributes(about)}, "scopeSpans": [scope]}


def _span(row: Mapping[str, Any]) -> dict[str, Any]:
    """Takes its ids from the request, so that a second export replaces the first."""
    began = row["started_unix_ns"]
    digest = hashlib.sha256(f"{row['run']}/{row['cell']}/{row['seq']}".encode()).hexdigest()
    api = row["api"] or "chat"  # null: of another tool's file, which does not say
    operation = _OPERATIONS.get(api, api)
    error = {"code": _ERROR, "message": row["error"] or row["outcome"]}
    return {
        "traceId": digest[:32],
        "spanId": digest[32:48],
        "name": operation,
        "kind": _CLIENT,
        "startTimeUnixNano": str(began + row["sent_ns"]),
        "endTimeUnixNano": str(began + row["end_ns"]),
        "attributes": _attributes({"gen_ai.operation.name": operation} | _present(row, _ATTRIBUTES)),
        "events": [
            {"name": name, "timeUnixNano": str(began + row[column])}
            for name, column in _MOMENTS.items()
            if row[column] is not None
        ],
        "status": _STATUSES.get(row["outcome"], error),
    }


def _present(row: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    return {name: row[column] for name, column in named.items() if row[column] is not None}


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
