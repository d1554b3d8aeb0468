"""Request bodies in a file, read through the page cache, so that any job fits in little memory."""

import mmap
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.load.lazy_sequence import LazySequence


class BodyFile(LazySequence[bytes]):
    """The bodies at `spans` (start and end of each) in the file at `path`, which outlives every use.

    Pickled as path and spans.
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

    def part(self, index: int, first: int, last: int) -> bytes:
        """Bytes `first` to `last` of one body."""
        if self._map is None:
            self.make(index)
        assert self._map is not None
        start, _ = self._bounds[index]
        return self._map[start + first : start + last]

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


class GrowingBodies(LazySequence[bytes]):
    """Bodies whose prompts begin with a part of an earlier one's: each text is in the file once.

    A request's own text begins at `place` of its span and has `own` bytes; in front of it go the first `kept`
    bytes of the prompt of the request `base` before it, which may itself begin with an earlier one's.
    """

    def __init__(self, file: BodyFile, links: NDArray[np.void], chosen: NDArray[np.integer[Any]]) -> None:
        """`links`: LINK_DTYPE, one per body of the file; `chosen`: the bodies that this sequence has."""
        self._file, self._links, self._chosen = file, links, chosen
        self._rows: list[tuple[int, int, int, int]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return GrowingBodies, (self._file, self._links, self._chosen)

    def __len__(self) -> int:
        return len(self._chosen)

    def only(self, indices: NDArray[np.integer[Any]]) -> "GrowingBodies":
        return GrowingBodies(self._file, self._links, self._chosen[indices])

    def make(self, index: int) -> bytes:
        if not self._rows:
            self._rows = self._links.tolist()
        rows, number = self._rows, int(self._chosen[index])
        body = self._file.make(number)
        slot, _, base, limit = rows[number]
        pieces = [body[slot:]]
        while limit:
            number -= base
            start, own, base, kept = rows[number]
            if limit > kept:
                pieces.append(self._file.part(number, start, start + min(limit - kept, own)))
                limit = kept
        pieces.append(body[:slot])
        return b"".join(reversed(pieces))


def write_growing(
    path: Path, bodies: Iterable[bytes], mark: bytes, links: Iterable[tuple[int, int, int]]
) -> GrowingBodies:
    """`mark` stands once in each body, in front of its own text; what goes there is not known to it.

    `links`, of each: bytes of its own text, `base` and `kept`.
    """
    rows = array("q")

    def unmarked() -> Iterator[bytes]:
        for body, link in zip(bodies, links, strict=True):
            head, tail = body.split(mark)
            rows.extend((len(head), *link))
            yield head + tail

    file = write_bodies(path, unmarked())
    return GrowingBodies(file, np.array(rows, "<i8").view(LINK_DTYPE), np.arange(len(file)))


LINK_DTYPE = np.dtype([("place", "<i8"), ("own", "<i8"), ("base", "<i8"), ("kept", "<i8")])
