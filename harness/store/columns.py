"""Records to Parquet and back. On disk UNKNOWN is null and codes are their names.

requests.parquet: one row per request, REQUEST_DTYPE plus text, finish_reason, error and tool_calls.
events.parquet: one row per SSE event, EVENT_DTYPE, grouped by request in arrival order.
"""

import os
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness.record import (
    EVENT_DTYPE,
    REQUEST_DTYPE,
    UNKNOWN,
    EventKind,
    Outcome,
    Phase,
    Records,
    response_start,
)
from harness.store.atomic import storage_error

_CODES: dict[str, type[IntEnum]] = {"phase": Phase, "outcome": Outcome, "kind": EventKind}
_ADDED = ("start_ns", "attempts", "first_tokens", "retransmits", "out_of_order")  # with 0.2
_TEXTS = ("text", "finish_reason", "error")

# Events are written this many at a time, so that a long cell never stands in memory whole.
EVENTS_PER_ROW_GROUP = 1_000_000


def write_records(records: Records, folder: Path) -> None:
    """Raises StorageError when the folder cannot be written."""
    requests = _frame(records.requests)
    for name, values in zip(_TEXTS, (records.texts, records.finish_reasons, records.errors), strict=True):
        requests[name] = np.array(values, dtype=object)
    requests["tool_calls"] = np.array(records.tool_calls or [""] * len(requests), dtype=object)
    write_frames(folder / "requests.parquet", [requests])
    groups = range(0, max(1, len(records.events)), EVENTS_PER_ROW_GROUP)
    write_frames(
        folder / "events.parquet",
        (_frame(records.events[start : start + EVENTS_PER_ROW_GROUP]) for start in groups),
    )


def read_records(folder: Path, *, closed_loop: bool) -> Records:
    """Raises FileNotFoundError for a cell that was never finished."""
    requests = read_frame(folder / "requests.parquet")
    events = read_frame(folder / "events.parquet")
    rows = _array(requests, REQUEST_DTYPE)
    if "start_ns" not in requests:  # written before 0.2
        rows["start_ns"] = response_start(rows, closed_loop=closed_loop)
    return Records(
        requests=rows,
        events=_array(events, EVENT_DTYPE),
        texts=requests["text"].tolist(),
        finish_reasons=requests["finish_reason"].tolist(),
        errors=requests["error"].tolist(),
        tool_calls=requests["tool_calls"].tolist() if "tool_calls" in requests else (),
    )


def _frame(rows: NDArray[np.void]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in rows.dtype.names or ():
        values: Any = np.ascontiguousarray(rows[name])
        if name in _CODES:
            names = [code.name.lower() for code in _CODES[name]]
            columns[name] = pd.Categorical.from_codes(values.astype(np.int8), categories=pd.Index(names))
        else:
            columns[name] = pd.arrays.IntegerArray(values.copy(), values == UNKNOWN)
    return pd.DataFrame(columns)


def _array(frame: pd.DataFrame, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    rows = np.zeros(len(frame), dtype)
    for name in dtype.names or ():
        if name not in frame and name in _ADDED:
            rows[name] = UNKNOWN
            continue
        column = frame[name]
        if name in _CODES:
            codes = {code.name.lower(): int(code) for code in _CODES[name]}
            rows[name] = column.astype(object).map(codes).to_numpy(dtype=np.uint8)
        else:
            rows[name] = column.fillna(UNKNOWN).to_numpy(dtype=dtype[name])
    return rows


def write_frames(path: Path, frames: Iterable[pd.DataFrame]) -> None:
    import fastparquet  # 0.3 s to import; only needed once a cell is done

    partial = path.with_name(f".{path.name}.partial")
    try:
        for index, frame in enumerate(frames):
            fastparquet.write(
                str(partial),
                frame,
                compression="SNAPPY",
                append=index > 0,
                object_encoding="utf8",
                stats=False,
            )
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise storage_error(error, path) from error


def read_frame(path: Path) -> pd.DataFrame:
    import fastparquet

    with path.open("rb") as file:
        frame: pd.DataFrame = fastparquet.ParquetFile(file).to_pandas()
    return frame
