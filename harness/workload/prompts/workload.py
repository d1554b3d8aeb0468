"""The requests of one cell, on disk while the run goes on: any number of prompts in little memory."""

import hashlib
import json
import pickle
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, pairwise
from typing import IO, Any

import msgspec

from harness.records.request_table import Expected, RequestTable
from harness.workload.prompts.request import ChatRequest, Constraint, Tools

ALIKE_CHARS = 64
_NO_CALL = (-1,) * 4  # where a call of a session has its waits and its beginning
_BATCH = 256  # requests of one batch share the memory of what they have in common


class _Spool:
    """Batches of requests in an unnamed file, which goes with its last reader.

    Pickled: nobody but this process can write what it reads here.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the spool
        self._offsets: list[int] = []
        weakref.finalize(self, _dropped, self._file)

    def add(self, batch: Sequence[ChatRequest]) -> None:
        self._offsets.append(self._file.seek(0, 2))
        pickle.dump(batch, self._file, pickle.HIGHEST_PROTOCOL)

    def batches(self) -> Iterator[list[ChatRequest]]:
        for offset in self._offsets:
            self._file.seek(offset)
            yield pickle.load(self._file)


def _dropped(file: IO[bytes]) -> None:
    with suppress(OSError):  # what the disk refused is still buffered, and closing tries to write it
        file.close()


@dataclass(frozen=True, slots=True)
class Workload:
    """Equal bytes for every backend."""

    exact: bool  # lengths were made and checked with the model's tokenizer
    sha256: str
    requested: RequestTable
    constraints: tuple[Constraint, ...]  # one of each shape
    tools: bool  # whether any request offers tools
    alike_chars: int  # with which the text of any two prompts begins alike, up to ALIKE_CHARS
    _spool: _Spool

    def __len__(self) -> int:
        return len(self.requested)

    @property
    def requests(self) -> Iterator[ChatRequest]:
        """Requests in the order of the cell, from the first each time."""
        for batch in self._spool.batches():
            yield from batch


def workload(requests: Iterable[ChatRequest], exact: bool) -> Workload:
    """Takes the requests one by one, to disk."""
    taken = _Taken()
    requested = RequestTable.of(taken.rows(requests), taken.expectations)
    constraints = tuple(taken.constraints.values())
    alike = _longest_alike(taken.heads)
    return Workload(exact, taken.digest.hexdigest(), requested, constraints, taken.tools, alike, taken.spool)


def _longest_alike(heads: list[str]) -> int:
    """Neighbours in sorted order are the most alike."""
    heads.sort()
    return max((_alike(a, b) for a, b in pairwise(heads)), default=0)


def _alike(a: str, b: str) -> int:
    differ = (index for index, (first, other) in enumerate(zip(a, b, strict=False)) if first != other)
    return next(differ, min(len(a), len(b)))


class _Taken:
    """Holds what is known of the requests that went by."""

    def __init__(self) -> None:
        self.digest, self.spool = hashlib.sha256(), _Spool()
        self.expectations: list[Expected] = []
        self.constraints: dict[str, Constraint] = {}
        self.tools = False
        self.heads: list[str] = []
        self._places: dict[str, int] = {}  # of expectations, by their text
        self._texts: dict[int, tuple[object, str]] = {}  # of what many requests hold in common, by identity

    def rows(self, requests: Iterable[ChatRequest]) -> Iterator[Any]:
        """Yields the rows as RequestTable.of takes them."""
        source = iter(requests)
        while batch := list(islice(source, _BATCH)):
            self.spool.add(batch)
            for request in batch:
                self.digest.update(self._line(request))
                self.tools = self.tools or request.tools is not None
                if request.turn <= 0:
                    self.heads.append(request.messages[0][1][:ALIKE_CHARS])
                if request.constraint is not None:
                    self.constraints.setdefault(request.constraint.shape, request.constraint)
                index = -1 if request.expected is None else self._place(request.expected)
                numbers: tuple[int, ...] = (
                    request.max_tokens,
                    request.content_tokens,
                    request.group,
                    request.session,
                    request.turn,
                )
                numbers += (request.at_ns, index, request.items)
                if (clip := request.clip) is not None:
                    yield (*numbers, *_NO_CALL, -1, -1, clip.recording.audio_ms), request.kind, request.shared
                elif request.images is not None:
                    sizes = [picture.size_bytes for picture in request.images]
                    yield (*numbers, *_NO_CALL, len(sizes), sum(sizes)), request.kind, request.shared
                elif (call := request.call) is None:
                    yield numbers, request.kind, request.shared
                else:
                    links = call.tool_ns, call.think_ns, call.base, call.kept
                    yield (*numbers, *links), request.kind, request.shared, call.after

    def _place(self, expected: Expected) -> int:
        index = self._places.setdefault(self._text(expected), len(self._places))
        if index == len(self.expectations):
            self.expectations.append(expected)
        return index

    def _line(self, request: ChatRequest) -> bytes:
        """Returns what of a request reaches a server, and when, where it has a time of its own."""
        line: list[Any] = [request.messages, request.max_tokens]
        if request.at_ns >= 0:
            line.append(request.at_ns)
        if request.adapter:
            line.append(request.adapter)
        if request.images is not None:
            line.append([picture.sha256 for picture in request.images])
        if request.clip is not None:
            line.append(request.clip.sha256)
        more = ""
        if request.turn or request.constraint or request.tools:
            more = f" {request.turn} {self._text(request.constraint)} {self._text(request.tools)}"
        if (call := request.call) is not None:
            more += f" {call.after} {call.tool_ns} {call.think_ns} {call.base} {call.kept}"
        return b"%b%b\n" % (msgspec.json.encode(line), more.encode())

    def _text(self, part: "Constraint | Tools | Expected | None") -> str:
        if part is None:
            return "null"
        known = self._texts.get(id(part))
        if known is None:
            known = self._texts[id(part)] = (part, json.dumps(asdict(part), sort_keys=True))
        return known[1]
