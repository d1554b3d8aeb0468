"""The requests of one cell, on disk while the run goes on: any number of prompts in little memory."""

import hashlib
import json
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from harness.asked import Asked, Expected
from harness.prompts.request import ChatRequest, Constraint

_BATCH = 256  # requests of one batch share the memory of what they have in common


class _Spool:
    """Batches of requests in an unnamed file, which goes with its last reader."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the spool
        self._offsets: list[int] = []
        weakref.finalize(self, self._file.close)

    def add(self, batch: Sequence[ChatRequest]) -> None:
        self._offsets.append(self._file.seek(0, 2))
        pickle.dump(batch, self._file, pickle.HIGHEST_PROTOCOL)

    def batches(self) -> Iterator[list[ChatRequest]]:
        for offset in self._offsets:
            self._file.seek(offset)
            yield pickle.load(self._file)


@dataclass(frozen=True, slots=True)
class Workload:
    """Equal bytes for every backend."""

    exact: bool  # lengths were made and checked with the model's tokenizer
    sha256: str
    asked: Asked
    constraints: tuple[Constraint, ...]  # one of each shape
    tools: bool  # whether any request offers tools
    _spool: _Spool

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def requests(self) -> Iterator[ChatRequest]:
        """In the order of the cell, from the first each time."""
        for batch in self._spool.batches():
            yield from batch


def workload(requests: Iterable[ChatRequest], exact: bool) -> Workload:
    """Takes the requests one by one, to disk."""
    digest, spool = hashlib.sha256(), _Spool()
    expectations: list[Expected] = []
    places: dict[str, int] = {}
    constraints: dict[str, Constraint] = {}
    tools = False

    def place(expected: Expected | None) -> int:
        if expected is None:
            return -1
        key = json.dumps(asdict(expected), sort_keys=True)
        if key not in places:
            places[key] = len(expectations)
            expectations.append(expected)
        return places[key]

    def rows() -> Iterator[Any]:
        nonlocal tools
        source = iter(requests)
        while batch := list(islice(source, _BATCH)):
            spool.add(batch)
            for made in batch:
                digest.update(_line(made))
                tools = tools or made.tools is not None
                if made.constraint is not None:
                    constraints.setdefault(made.constraint.shape, made.constraint)
                numbers = (
                    made.max_tokens,
                    made.content_tokens,
                    made.group,
                    made.session,
                    made.turn,
                    made.at_ns,
                )
                yield (*numbers, place(made.expected)), made.kind, made.shared

    asked = Asked.of(rows(), expectations)
    return Workload(exact, digest.hexdigest(), asked, tuple(constraints.values()), tools, spool)


def _line(made: ChatRequest) -> bytes:
    """What of a request reaches a server, and when, where it has a time of its own."""
    line: list[Any] = [made.messages, made.max_tokens]
    if made.at_ns >= 0:
        line.append(made.at_ns)
    if made.turn or made.constraint or made.tools:
        line += [made.turn, *(asdict(part) if part else None for part in (made.constraint, made.tools))]
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
