"""Samples on their way out of the sampler: appended as they come, so that a kill loses half a second."""

import struct
import threading
import time
from pathlib import Path

NAMES, ROWS = "names", "rows"
_ROW = struct.Struct("<Iqd")  # number of the series, CLOCK_MONOTONIC in ns, value


class Spill:
    """Takes samples from several threads. A series is named once, then referred to by its number."""

    def __init__(self, folder: Path) -> None:
        self._names = (folder / NAMES).open("w", encoding="utf-8")
        self._rows = (folder / ROWS).open("wb")
        self._numbers: dict[str, int] = {}
        self._waiting = bytearray()
        self._lock = threading.Lock()

    def put(self, series: str, value: float, at_ns: int | None = None) -> None:
        """`at_ns` on CLOCK_MONOTONIC; None: now."""
        at_ns = time.monotonic_ns() if at_ns is None else at_ns
        with self._lock:
            number = self._numbers.get(series)
            if number is None:
                number = self._numbers[series] = len(self._numbers)
                self._names.write(f"{series}\n")
            self._waiting += _ROW.pack(number, at_ns, value)

    def flush(self) -> None:
        with self._lock:
            rows, self._waiting = self._waiting, bytearray()
            self._names.flush()
        self._rows.write(rows)
        self._rows.flush()

    def close(self) -> None:
        self.flush()
        self._names.close()
        self._rows.close()
