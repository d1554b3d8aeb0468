"""Keeps the requests of one cell on disk, so that any number of prompts needs little memory."""

import hashlib
import json
import math
import os
import pickle
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, pairwise, starmap
from operator import attrgetter
from typing import IO, Any

import msgspec

from harness.records.request_table import Expected, RequestTable
from harness.workload.prompts.audio import wav_of
from harness.workload.prompts.request import ChatRequest, Constraint, Tools

ALIKE_CHARS = 64
_NO_CALL = (-1,) * 4  # in place of the waits and the beginning of a call of a session
_NUMBERS = attrgetter("max_tokens", "content_tokens", "session", "turn")
MESSAGE_BYTES = 32  # tokens that a chat template has around a message, at most
_BATCH = 256  # requests pickled together, so that they share equal objects


class _SpoolFile:
    """An unnamed file that all spools share: a run has a workload for each load and repeat."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as its spools
        weakref.finalize(self, _dropped, self._file)

    def add(self, batch: Sequence[ChatRequest]) -> tuple[int, int]:
        """Returns where the batch begins, and its length."""
        start = self._file.tell()
        pickle.dump(batch, self._file, pickle.HIGHEST_PROTOCOL)
        self._file.flush()
        return start, self._file.tell() - start

    def batch(self, start: int, length: int) -> list[ChatRequest]:
        """Reads without a position of the file: engines of a duet read one workload in two threads."""
        batch: list[ChatRequest] = pickle.loads(os.pread(self._file.fileno(), length, start))
        return batch


_spool_files: "weakref.WeakSet[_SpoolFile]" = weakref.WeakSet()  # one, or none where no spool is left


class _Spool:
    """Batches of requests on disk.

    Pickle is safe here, because only this process can write the file.
    """

    def __init__(self) -> None:
        self._file = next(iter(_spool_files), None) or _SpoolFile()
        _spool_files.add(self._file)
        self._spans: list[tuple[int, int]] = []

    def add(self, batch: Sequence[ChatRequest]) -> None:
        self._spans.append(self._file.add(batch))

    def batches(self) -> Iterator[list[ChatRequest]]:
        return starmap(self._file.batch, self._spans)


def _dropped(file: IO[bytes]) -> None:
    with suppress(OSError):  # what the disk refused is still buffered, and closing tries to write it
        file.close()


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a cell, which are equal bytes for every backend."""

    exact: bool  # lengths were made and checked with the model's tokenizer
    sha256: str
    requested: RequestTable
    constraints: tuple[Constraint, ...]  # one of each shape
    tools: bool  # whether any request offers tools
    alike_chars: int  # longest common beginning of two prompts, up to ALIKE_CHARS
    equal_prompts: int  # most first turns with one prompt; 1: all differ
    most_bytes: int | None  # of a first turn and what is around its messages; None: not text alone
    _spool: _Spool

    def __len__(self) -> int:
        return len(self.requested)

    def most_tokens(self, chat_tokens: int | None) -> int | None:
        """Prompt tokens that no first turn can have more of; None: not known.

        Ordinary text has a byte or more for each token. What a server puts around it is in `chat_tokens`, the
        tokens of a short chat by its count.
        """
        return None if chat_tokens is None or self.most_bytes is None else chat_tokens + self.most_bytes

    @property
    def requests(self) -> Iterator[ChatRequest]:
        """Requests in the order of the cell, from the first each time."""
        for batch in self._spool.batches():
            yield from batch


def workload(requests: Iterable[ChatRequest], exact: bool) -> Workload:
    """Writes the requests to disk one by one, and describes them."""
    collected = _Collector()
    requested = RequestTable.of(collected.rows(requests), collected.expectations)
    constraints = tuple(collected.constraints.values())
    alike = _longest_alike(collected.heads)
    return Workload(
        exact,
        collected.digest.hexdigest(),
        requested,
        constraints,
        collected.tools,
        alike,
        max(collected.prompts.values(), default=1),
        collected.most_bytes,
        collected.spool,
    )


def _prompt_bytes(request: ChatRequest) -> float:
    """Bytes of the prompt, no fewer than it has tokens; infinite where a server adds to its text.

    A schema or a tool may be written into the prompt, and a ranked document has the query each time. Later
    turns count for nothing: they have the answers before them.
    """
    more = (request.constraint, request.tools, request.call, request.images, request.recording)
    if request.items >= 0 or any(part is not None for part in more):
        return math.inf
    if request.turn > 0:
        return 0
    return sum(len(content.encode()) + MESSAGE_BYTES for _role, content in request.messages)


def _longest_alike(heads: list[str]) -> int:
    """Length of the longest common beginning; neighbours in sorted order suffice to find it."""
    heads.sort()
    return max((_alike(a, b) for a, b in pairwise(heads)), default=0)


def _alike(a: str, b: str) -> int:
    differ = (index for index, (first, other) in enumerate(zip(a, b, strict=False)) if first != other)
    return next(differ, min(len(a), len(b)))


class _Collector:
    """Collects hash, table and constraints while requests pass through."""

    def __init__(self) -> None:
        self.digest, self.spool = hashlib.sha256(), _Spool()
        self.expectations: list[Expected] = []
        self.constraints: dict[str, Constraint] = {}
        self.tools = False
        self.longest = 0.0
        self.heads: list[str] = []
        self.prompts: Counter[int] = Counter()  # by hash
        self._places: dict[str, int] = {}  # of expectations, by their text
        self._texts: dict[int, tuple[object, str]] = {}  # JSON of objects that requests share, by identity

    @property
    def most_bytes(self) -> int | None:
        return int(self.longest) if math.isfinite(self.longest) else None

    def rows(self, requests: Iterable[ChatRequest]) -> Iterator[Any]:
        """Stores each request, and yields its row as RequestTable.of takes it."""
        source = iter(requests)
        while batch := list(islice(source, _BATCH)):
            self.spool.add(batch)
            for request in batch:
                self.digest.update(self._line(request))
                self.tools = self.tools or request.tools is not None
                self.longest = max(self.longest, _prompt_bytes(request))
                if request.turn <= 0:
                    self.heads.append(request.messages[0][1][:ALIKE_CHARS])
                    self._see(request)
                if request.constraint is not None:
                    self.constraints.setdefault(request.constraint.shape, request.constraint)
                index = -1 if request.expected is None else self._place(request.expected)
                more: tuple[int, ...] = ()
                after: tuple[Any, ...] = ()
                if request.recording is not None:
                    more = (*_NO_CALL, -1, -1, request.recording.audio_ms)
                elif request.images is not None:
                    sizes = [picture.size_bytes for picture in request.images]
                    more = (*_NO_CALL, len(sizes), sum(sizes))
                elif (call := request.call) is not None:
                    more, after = (call.tool_ns, call.think_ns, call.base, call.kept), (call.after,)
                numbers = (*_NUMBERS(request), request.at_ns, index, request.items, *more)
                yield numbers, request.kind, request.shared, *after

    def _see(self, request: ChatRequest) -> None:
        """Equal messages of recorded calls say nothing: the prompt of a call may begin with another one's."""
        images = tuple(picture.sha256 for picture in request.images or ())
        if request.call is None:
            self.prompts[hash((request.messages, request.adapter, images, request.recording))] += 1

    def _place(self, expected: Expected) -> int:
        index = self._places.setdefault(self._text(expected), len(self._places))
        if index == len(self.expectations):
            self.expectations.append(expected)
        return index

    def _line(self, request: ChatRequest) -> bytes:
        """Bytes for the hash: all of a request that reaches a server, and its own time if it has one."""
        line: list[Any] = [request.messages, request.max_tokens]
        if request.at_ns >= 0:
            line.append(request.at_ns)
        if request.adapter:
            line.append(request.adapter)
        if request.images is not None:
            line.append([picture.sha256 for picture in request.images])
        if request.recording is not None:
            line.append(hashlib.sha256(wav_of(request.recording)).hexdigest())
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
