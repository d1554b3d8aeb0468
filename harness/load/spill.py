"""Records on their way out of a worker: appended to files while it runs, merged when it ended.

A request's row is written after its events and texts, so what a killed worker left is whole up to its
last row.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.load.finalize import Finalized
from harness.load.lazy_sequence import LazySequence
from harness.records.layout import EVENT_DTYPE, REQUEST_DTYPE, UNKNOWN, Records

# A row also tells how many bytes the request has in each of the other files.
_BLOBS = ("events", "texts", "calls", "reasons", "errors")
ROW_DTYPE = np.dtype([*REQUEST_DTYPE.descr, *((name, "<i8") for name in _BLOBS)])
FILES = (*_BLOBS, "rows")  # of one worker's folder
_TIMES = tuple(
    name for name in REQUEST_DTYPE.names or () if name.endswith("_ns") and name != "connect_ns"
)  # from t0; a wait for a connection is a length
_FLUSH_BYTES = 1 << 20
_MOVED_AT_ONCE = 1 << 20  # events: memory does not grow with their number


class Spill:
    """Buffers about a megabyte, so that writing costs the window little and rarely."""

    def __init__(self, folder: Path) -> None:
        self._files = [(folder / name).open("wb", buffering=0) for name in FILES]
        self._pending: list[tuple[bytes, ...]] = []
        self._rows: list[tuple[int, ...]] = []
        self._bytes = 0

    def add(self, finalized: Finalized) -> None:
        strings = (finalized.text, finalized.tool_calls, finalized.finish_reason, finalized.error)
        blobs = (finalized.events.tobytes(), *(text.encode("utf-8", "replace") for text in strings))
        sizes = [len(blob) for blob in blobs]
        self._pending.append(blobs)
        self._rows.append((*finalized.row, *sizes))
        self._bytes += sum(sizes) + ROW_DTYPE.itemsize
        if self._bytes >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        pending, rows = self._pending, self._rows
        self._pending, self._rows, self._bytes = [], [], 0  # first: a write that fails is not repeated
        if rows:
            blobs = [b"".join(column) for column in zip(*pending, strict=True)]
            blobs.append(np.array(rows, ROW_DTYPE).tobytes())
            for file, blob in zip(self._files, blobs, strict=True):
                file.write(blob)

    def close(self) -> None:
        self.flush()
        for file in self._files:
            file.close()


def move(folder: Path, by: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> None:
    """Moves all times of each request of a worker by the same ns: `by` maps send times to that."""
    rows = _read_rows(folder).copy()
    if not len(rows):
        return
    shift = by(np.where(rows["sent_ns"] == UNKNOWN, rows["intended_ns"], rows["sent_ns"]))
    for name in _TIMES:
        rows[name] = np.where(rows[name] == UNKNOWN, UNKNOWN, rows[name] + shift)
    counts = rows["events"] // EVENT_DTYPE.itemsize
    whole = int(counts.sum())
    if whole:
        events = np.memmap(folder / "events", EVENT_DTYPE, "r+", shape=(whole,))
        ends = np.cumsum(counts)
        for start in range(0, whole, _MOVED_AT_ONCE):
            part = events[start : start + _MOVED_AT_ONCE]
            owners = np.searchsorted(ends, np.arange(start, start + len(part)), side="right")
            part["stamp_ns"] += shift[owners]
        events.flush()
    (folder / "rows").write_bytes(rows.tobytes())


class FileTexts(LazySequence[str]):
    """Strings of a mapped file, decoded on access."""

    def __init__(self, blob: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self._blob = blob
        self._bounds = np.concatenate([[0], np.cumsum(lengths)])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def make(self, index: int) -> str:
        return self._blob[self._bounds[index] : self._bounds[index + 1]].tobytes().decode()


def merge(folders: Sequence[Path], missing: NDArray[Any], missing_error: str) -> Records:
    """The workers' records in `seq` order, and those of the `missing` rows that nobody wrote."""
    parts = [_read_rows(folder) for folder in folders]
    written = np.concatenate([np.zeros(0, np.int32), *(part["seq"] for part in parts)])
    missing = missing[~np.isin(missing["seq"], written)]
    absent: NDArray[Any] = np.zeros(len(missing), ROW_DTYPE)
    for name in REQUEST_DTYPE.names or ():
        absent[name] = missing[name]
    rows = np.concatenate([*parts, absent])
    order = np.argsort(rows["seq"], kind="stable")
    source = np.repeat(np.arange(len(parts) + 1), [*map(len, parts), len(absent)])[order]
    rows = rows[order]
    blobs = {}
    for name in _BLOBS:
        starts = np.concatenate([_starts(part[name]) for part in (*parts, absent)])[order]
        blobs[name] = _gather([folder / name for folder in folders], source, starts, rows[name])
    requests: NDArray[Any] = np.zeros(len(rows), REQUEST_DTYPE)
    for name in REQUEST_DTYPE.names or ():
        requests[name] = rows[name]
    errors = list(FileTexts(blobs["errors"], rows["errors"]))
    for position in np.flatnonzero(source == len(parts)):
        errors[position] = missing_error
    reasons = [sys.intern(reason) for reason in FileTexts(blobs["reasons"], rows["reasons"])]
    texts, calls = FileTexts(blobs["texts"], rows["texts"]), FileTexts(blobs["calls"], rows["calls"])
    return Records(requests, blobs["events"].view(EVENT_DTYPE), texts, reasons, errors, calls)


def _read_rows(folder: Path) -> NDArray[Any]:
    """Whole rows only: a worker may have been killed inside a write."""
    path = folder / "rows"
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data, ROW_DTYPE, len(data) // ROW_DTYPE.itemsize)


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.cumsum(lengths) - lengths


def _gather(
    paths: Sequence[Path], source: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Each request's bytes in order, in one mapped unnamed file: it need not fit in memory."""
    if not lengths.sum():
        return np.zeros(0, np.uint8)
    maps = [np.memmap(p, np.uint8, "r") if p.exists() and p.stat().st_size else None for p in paths]
    with tempfile.TemporaryFile(buffering=_FLUSH_BYTES) as file:
        for index, start, length in zip(source.tolist(), starts.tolist(), lengths.tolist(), strict=True):
            if length:
                file.write(maps[index][start : start + length])
        file.flush()
        return np.memmap(file, np.uint8, "r")
