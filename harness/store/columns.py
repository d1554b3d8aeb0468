"""Records to Parquet and back. On disk UNKNOWN is null and codes are their names.

requests.parquet: one row per request, REQUEST_DTYPE plus text, finish_reason, error and tool_calls.
events.parquet: one row per SSE event and kind of text in it, EVENT_DTYPE, grouped by request in arrival
order.
"""

from enum import IntEnum
from typing import Any, TypedDict

import numpy as np
from msgspec import json
from numpy.typing import NDArray

from harness.records.layout import (
    EVENT_DTYPE,
    REQUEST_DTYPE,
    UNKNOWN,
    EventKind,
    Outcome,
    Phase,
    Records,
    response_start,
)
from harness.store import parquet
from harness.store.confined import Confined

_CODES: dict[str, type[IntEnum]] = {"phase": Phase, "outcome": Outcome, "kind": EventKind}
_ADDED = (
    *("start_ns", "attempts", "first_tokens", "retransmits", "out_of_order", "replica"),
    *("first_reasoning_ns", "first_answer_ns", "reasoning_tokens"),
)  # with 0.2
_TEXTS = ("text", "finish_reason", "error")


class _Call(TypedDict):
    """A tool call in `tool_calls`."""

    id: str
    name: str
    arguments: str


def _sql_types(dtype: np.dtype[np.void]) -> dict[str, str]:
    return {
        name: "varchar" if name in _CODES else parquet.sql_type(dtype[name]) for name in dtype.names or ()
    }


# Every column of the two files, with its SQL type.
REQUEST_COLUMNS = _sql_types(REQUEST_DTYPE) | dict.fromkeys((*_TEXTS, "tool_calls"), "varchar")
EVENT_COLUMNS = _sql_types(EVENT_DTYPE)

_LONGEST_NS = 30 * 86_400 * 1_000_000_000  # a month; figures make arrays that are as long as the cell
_SPARSE_SEQ = 1000  # requests of a workload for each one that was due; arrays are as long as the workload
_FREE_SEQ = 1_000_000

# Events are written this many at a time, so that a long cell never stands in memory whole.
EVENTS_PER_ROW_GROUP = 1_000_000


def write_records(records: Records, files: Confined, folder: str) -> None:
    """Raises StorageError if the folder cannot be written."""
    requests = _columns(records.requests)
    tool_calls = records.tool_calls or [""] * len(records.requests)
    for name, values in zip(
        (*_TEXTS, "tool_calls"),
        (records.texts, records.finish_reasons, records.errors, tool_calls),
        strict=True,
    ):
        requests[name] = parquet.texts(values)
    parquet.write(files, f"{folder}/requests.parquet", [requests])
    groups = range(0, max(1, len(records.events)), EVENTS_PER_ROW_GROUP)
    parquet.write(
        files,
        f"{folder}/events.parquet",
        (_columns(records.events[start : start + EVENTS_PER_ROW_GROUP]) for start in groups),
    )


def read_records(files: Confined, folder: str, *, closed_loop: bool) -> Records:
    """Raises FileNotFoundError for a cell that was never finished, ValueError for a damaged one."""
    with parquet.reading(files, f"{folder}/requests.parquet") as requests:
        rows = _array(requests, REQUEST_DTYPE)
        if "start_ns" not in requests.names:  # written before 0.2
            rows["start_ns"] = response_start(rows, closed_loop=closed_loop)
        names = (*_TEXTS, "tool_calls") if "tool_calls" in requests.names else _TEXTS
        texts, finish_reasons, errors, *more = requests.texts(names)
        tool_calls = more[0] if more else ()
    for calls in filter(None, tool_calls):
        json.decode(calls, type=list[_Call])
    _check_range(rows)
    _check_seq(rows["seq"])
    with parquet.reading(files, f"{folder}/events.parquet") as stored:
        events = _array(stored, EVENT_DTYPE)
        _check_range(events)
        if not np.isin(events["seq"], rows["seq"]).all():
            raise ValueError("events of a request that is not there")
        return Records(
            requests=rows,
            events=events,
            texts=texts,
            finish_reasons=finish_reasons,
            errors=errors,
            tool_calls=tool_calls,
        )


def _check_range(rows: NDArray[np.void]) -> None:
    """Raises ValueError if a time is out of all reason, or a count is negative and not UNKNOWN."""
    for name in rows.dtype.names or ():
        values, is_time = rows[name], name.endswith("_ns")
        lowest, highest = (-_LONGEST_NS, _LONGEST_NS) if is_time else (UNKNOWN, np.iinfo(values.dtype).max)
        if len(values) and (values.min() < lowest or values.max() > highest):
            raise ValueError(f"{name}: a value that bench never writes")


def _check_seq(seq: NDArray[np.int32]) -> None:
    """Raises ValueError unless they can be positions in one workload."""
    most = max(_FREE_SEQ, _SPARSE_SEQ * len(seq))
    if len(np.unique(seq)) < len(seq) or seq.min(initial=0) < 0 or seq.max(initial=0) >= most:
        raise ValueError("seq: not the positions of requests in a workload")


def _columns(rows: NDArray[np.void]) -> dict[str, parquet.Column]:
    return {name: _column(name, np.ascontiguousarray(rows[name])) for name in rows.dtype.names or ()}


def _column(name: str, values: NDArray[Any]) -> parquet.Column:
    if name in _CODES:
        return parquet.named(values, _names(name))
    return parquet.integers(values, UNKNOWN)


def _names(field: str) -> list[str]:
    """Names by code: each enumeration counts from 0."""
    return [code.name.lower() for code in _CODES[field]]


def _array(source: parquet.Source, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """Reads part by part, as it was written."""
    rows = np.zeros(source.rows, dtype)
    names = [name for name in dtype.names or () if name in source.names or name not in _ADDED]
    for name in set(dtype.names or ()) - set(names):
        rows[name] = UNKNOWN
    start = 0
    for group in source.groups({name: _expression(name, dtype[name]) for name in names}):
        count = len(group[names[0]])
        for name, values in group.items():
            rows[name][start : start + count] = values
        start += count
    return rows


def _expression(name: str, dtype: np.dtype[Any]) -> str:
    return parquet.code_of(name, _names(name)) if name in _CODES else parquet.known(name, dtype, UNKNOWN)
