"""Request bodies in a file, read through the page cache: a job of any length in little memory."""

import mmap
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.load.lazy_sequence import LazySequence


class BodyFile(LazySequence[bytes]):
    """Those of `spans` (start and end per body) in the file at `path`, which outlives every use.

    A copy for another process is the path and the spans.
    """

    def __init__(self, path: Path, spans: NDArray[np.int64]) -> None:
        self._path, self._spans = path, spans
        self._map: mmap.mmap | None = None
        self._bounds: list[tuple[int, int]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return BodyFile, (self._path, self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def make(self, index: int) -> bytes:
        if self._map is None:
            with self._path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED | _POPULATE, mmap.PROT_READ)
            self._bounds = self._spans.tolist()
        start, end = self._bounds[index]
        return self._map[start:end]

    def only(self, indices: NDArray[np.integer[Any]]) -> "BodyFile":
        return BodyFile(self._path, self._spans[indices])


# Page tables are filled when a worker opens the file, not when a request is due.
_POPULATE = getattr(mmap, "MAP_POPULATE", 0)


def write_bodies(path: Path, bodies: Iterable[bytes]) -> BodyFile:
    ends = array("q", [0])
    with path.open("wb") as file:
        for body in bodies:
            file.write(body)
            ends.append(ends[-1] + len(body))
    bounds = np.array(ends, np.int64)
    return BodyFile(path, np.stack([bounds[:-1], bounds[1:]], axis=1))
