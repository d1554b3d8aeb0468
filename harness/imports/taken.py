"""What a reader takes from a file: one measurement, on its way to a cell of a run folder."""

import os
import struct
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from math import isfinite, nan
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.imports.source import wrong
from harness.model import Fact, Level, Load, Requests
from harness.model.numbers import counted, short
from harness.records.layout import EVENT_DTYPE, UNKNOWN, EventKind, Outcome, Phase, Records, empty_requests
from harness.store.confined import write_all

# What a file lacks, in the words of every reader. VERSION and LOAD also begin longer texts.
VERSION = "the version of the tool"
LOAD = "the load"
UNKNOWN_LOAD = Load(kind="unknown", value=1)  # of every file that names none, so that repeats meet
REQUESTS = "requests: the format has none"
COUNTS = "how many were answered, and how many failed"
WHEN = "when it was measured (the time of the file stands in)"
ZONE = "the time zone of its date (UTC stands in)"
SENT = "when each request was sent"
INTENDED = "intended times"
ARRIVALS = "the arrival of each piece of text"
TEXTS = "text and finish reason of answers"
TOKENS = "the server's count of tokens: they are of the tool's own tokenizer"
OUTCOMES = {  # by the class of a client's exception, where there is no status; others are HTTP_ERROR
    "ClientConnectorDNSError": Outcome.CONNECT_FAILED,
    "ClientConnectorError": Outcome.CONNECT_FAILED,
    "ClientOSError": Outcome.RESET,
    "ClientPayloadError": Outcome.TRUNCATED,
    "InvalidInferenceResultError": Outcome.EMPTY,  # of an answer without text
    "ServerDisconnectedError": Outcome.TRUNCATED,
    "TimeoutError": Outcome.TIMEOUT,
}
_WRONG = 0.005  # by which a tool's own mean may miss that of its records: rounding
MOST_S = 30 * 86_400
_LATEST_S = 9e9  # in ns it fits into 64 bits
_MOST_COUNT = 2**31 - 1  # tokens of a request: what 32 bits hold
_EVENTS_AT_ONCE = 1 << 16  # are written together
# What is kept of an answer, by the column of REQUEST_DTYPE that it becomes. NaN and UNKNOWN: not known.
_TIMES = {
    "sent_ns": "sent_s",
    "first_text_ns": "first_s",
    "last_text_ns": "last_s",
    "end_ns": "end_s",
    "intended_ns": "intended_s",
}
_COUNTS = {
    "prompt_tokens": "prompt_tokens",
    "cached_tokens": "cached_tokens",
    "output_tokens": "output_tokens",
    "first_tokens": "first_tokens",
    "text_events": "pieces",
}
_KEPT = np.dtype(
    [
        *((name, "<f8") for name in _TIMES.values()),
        *((name, "<i4") for name in _COUNTS.values()),
        ("outcome", "u1"),
        ("warmup", "?"),
    ]
)
_PACKED = struct.Struct("<5d5iB?")


def _no_records() -> Records:
    return Records(empty_requests(0), np.zeros(0, EVENT_DTYPE), (), (), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """`started_unix_ns`: None if the file does not say. `cap`: most requests in flight. `settings`: those of
    the server, which repeats share. `planned` follows from the requests. Of a summary `facts` follow from
    `answered` and `failed`, and so do `planned` and `took` where its reader leaves them out.
    """

    tool: str
    version: str | None
    level: Level
    load: Load
    took: str = ""
    records: Records = field(default_factory=_no_records)
    model: str | None = None
    label: str = ""  # of the backend, where the file names it
    variant: str = ""  # what sets it apart from others in the same file, such as `tg128`
    settings: Mapping[str, str] = field(default_factory=dict)
    cap: int | None = None
    simulated: bool = False
    started_unix_ns: int | None = None
    planned: int = 0
    facts: tuple[Fact, ...] = ()
    lacks: tuple[str, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    answered: int | None = None
    failed: int | None = None
    requests: Requests | None = None  # of figures alone, where they name more outcomes than two

    @property
    def load_known(self) -> bool:
        """False if the file does not name the load, or if a cap may have changed it."""
        return not any(lack.startswith(LOAD) for lack in self.lacks)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds on one clock; None: not known. `chunks_s`: arrivals, ascending; all have text but the
    first `empty_first` and the last `empty_last`.
    """

    sent_s: float
    end_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    intended_s: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    first_tokens: int | None = None  # of the first piece
    pieces: int | None = None  # text events
    chunks_s: Sequence[float] | None = None
    empty_first: int = 0
    empty_last: int = 0
    outcome: Outcome = Outcome.OK
    error: str = ""
    warmup: bool = False

    def of_chunks(self, chunks_s: Sequence[float], empty_first: int = 0, empty_last: int = 0) -> "Answer":
        """Adds the arrivals. The answer ends with the last of them where its end is not known."""
        return msgspec.structs.replace(
            self,
            first_s=chunks_s[empty_first],
            last_s=chunks_s[-1 - empty_last],
            end_s=chunks_s[-1] if self.end_s is None else self.end_s,
            pieces=len(chunks_s) - empty_first - empty_last,
            chunks_s=chunks_s,
            empty_first=empty_first,
            empty_last=empty_last,
        )


class Rows:
    """Requests one after another; their events go to a file, so that memory does not grow with them."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._packed = bytearray()  # of _KEPT
        self._errors: dict[int, str] = {}
        self._first_s = 0.0  # when the first was sent
        self._unwritten: list[tuple[int, int, int, int]] = []  # requests: their chunks, empty first and last
        self._unwritten_s = array("d")  # when these chunks came
        self._events, name = tempfile.mkstemp(prefix="bench-import-")
        Path(name).unlink()
        weakref.finalize(self, os.close, self._events)
        self._event_count = 0

    def __len__(self) -> int:
        return len(self._packed) // _KEPT.itemsize

    def add(self, answer: Answer) -> None:
        """Raises SpecError for impossible times and counts: other units, or a damaged file."""
        number = len(self)
        times = answer.sent_s, answer.first_s, answer.last_s, answer.end_s
        known = [time for time in times if time is not None]
        if not all(map(isfinite, known)) or sorted(known) != known:
            order = "send, first text, last text and end"
            raise wrong(f"request {number}: its times are not in the order of {order}", self._where)
        if (took_s := known[-1] - known[0]) > MOST_S:
            raise wrong(f"request {number}: took {short(took_s)} s: other units?", self._where)
        if not number:
            self._first_s = known[0]
        if abs(known[0] - self._first_s) > MOST_S or abs(known[0]) > _LATEST_S:
            raise wrong(f"request {number}: sent at {short(known[0])} s: other units?", self._where)
        due_s = answer.intended_s
        if due_s is not None and not abs(due_s - known[0]) <= MOST_S:
            raise wrong(f"request {number}: meant for {short(due_s)} s: other units?", self._where)
        counts = (answer.prompt_tokens, answer.cached_tokens, answer.output_tokens, answer.first_tokens,
                  answer.pieces)  # fmt: skip
        for count in counts:
            if count is not None and not 0 <= count <= _MOST_COUNT:
                raise wrong(f"request {number}: a count of {count}, which is no amount", self._where)
        self._packed += _PACKED.pack(
            *(nan if time is None else time for time in (*times, due_s)),
            *(UNKNOWN if count is None else count for count in counts),
            answer.outcome,
            answer.warmup,
        )
        if answer.error:
            self._errors[number] = answer.error[:300]
        if answer.chunks_s is not None:
            count = len(answer.chunks_s)
            self._unwritten.append((number, count, answer.empty_first, answer.empty_last))
            self._unwritten_s.extend(answer.chunks_s)
            if len(self._unwritten_s) >= _EVENTS_AT_ONCE:
                self._write()

    def _write(self) -> None:
        """Stamps become relative later, when the first send is known. Raises SpecError if they go back."""
        seqs, counts, empty_first, empty_last = np.array(self._unwritten, np.int64).reshape(-1, 4).T
        events = np.zeros(len(self._unwritten_s), EVENT_DTYPE)
        events["seq"] = np.repeat(seqs, counts)
        stamps_s = np.frombuffer(self._unwritten_s)
        backwards = (np.diff(stamps_s) < 0) & (np.diff(events["seq"]) == 0)
        if backwards.any():
            number = events["seq"][np.argmax(backwards)]
            raise wrong(f"request {number}: its arrivals run backwards", self._where)
        events["stamp_ns"] = np.rint(stamps_s * 1e9)
        starts = np.cumsum(counts) - counts
        position = np.arange(len(events)) - np.repeat(starts, counts)  # in its answer
        text, after = np.repeat(empty_first, counts), np.repeat(counts - empty_last, counts)
        empty = (position < text) | (position >= after)
        events["kind"] = np.where(empty, EventKind.OTHER, EventKind.TEXT)
        events["wire_bytes"] = UNKNOWN
        write_all(self._events, events.tobytes())
        self._event_count += len(events)
        self._unwritten, self._unwritten_s = [], array("d")

    @property
    def measured(self) -> NDArray[np.void]:
        """What is kept of each request but those of the warm-up: times in s, NaN and UNKNOWN where not known.
        None may be added while it is in use.
        """
        kept = np.frombuffer(self._packed, _KEPT)
        measured: NDArray[np.void] = kept[~kept["warmup"]]
        return measured

    @property
    def answered(self) -> NDArray[np.void]:
        """The requests of `measured` that ended well."""
        answered: NDArray[np.void] = self.measured[self.measured["outcome"] == Outcome.OK]
        return answered

    @property
    def ended_well(self) -> NDArray[np.void]:
        """`answered`, and answers without any text, which tools count as successes."""
        measured = self.measured
        well: NDArray[np.void] = measured[np.isin(measured["outcome"], (Outcome.OK, Outcome.EMPTY))]
        return well

    @property
    def began_unix_ns(self) -> int | None:
        """When the first of `measured` was sent, where times are those of the day; None if none was."""
        measured = self.measured
        return round(float(measured["sent_s"].min()) * 1e9) or None if len(measured) else None

    @property
    def mean_ttft_ms(self) -> float | None:
        """The mean time to the first text of `answered`; None if nothing was."""
        good = self.answered
        return 1e3 * float((good["first_s"] - good["sent_s"]).mean()) if len(good) else None

    def records(self, slots: int | None = None) -> Records:
        """Times count from the first send. With `slots` of a closed loop, a slot is free when an answer has
        ended."""
        if not len(self):
            return _no_records()
        kept, rows = np.frombuffer(self._packed, _KEPT), empty_requests(len(self))
        t0 = float(kept["sent_s"].min())
        rows["outcome"] = kept["outcome"]
        of_all = np.where(kept["outcome"] == Outcome.ABANDONED, Phase.IMPATIENT, Phase.MEASURE)
        rows["phase"] = np.where(kept["warmup"], Phase.WARMUP, of_all)
        for column, name in _TIMES.items():
            rows[column] = np.where(np.isnan(kept[name]), UNKNOWN, np.rint((kept[name] - t0) * 1e9))
        for column, name in _COUNTS.items():
            rows[column] = kept[name]
        if slots is not None:
            rows["intended_ns"] = _slot_free_ns(rows, slots)
        rows["start_ns"] = rows["sent_ns"]
        if slots is None and (rows["intended_ns"] != UNKNOWN).all():
            rows["start_ns"] = rows["intended_ns"]
        empty = [""] * len(rows)
        errors = [self._errors.get(number, "") for number in range(len(rows))]
        return Records(rows, self._stamped(round(t0 * 1e9)), empty, empty, errors)

    def _stamped(self, t0_ns: int) -> NDArray[np.void]:
        self._write()
        if not self._event_count:
            return np.zeros(0, EVENT_DTYPE)
        with os.fdopen(os.dup(self._events), "r+b") as file:
            events = np.memmap(file, EVENT_DTYPE, "r+", shape=(self._event_count,))
        events["stamp_ns"] -= t0_ns
        return events

    def check_streamed(self) -> None:
        """Raises SpecError if no answer has a first token: without streaming none is known."""
        outcomes = np.frombuffer(self._packed, _KEPT)["outcome"]
        if (outcomes == Outcome.EMPTY).any() and not (outcomes == Outcome.OK).any():
            raise wrong("no answer has a first token", self._where, hint="measure with streaming")


def after_gaps(first_s: float, gaps_s: Iterable[float]) -> list[float]:
    """Times of a first chunk and of those that follow it."""
    return [first_s + after for after in accumulate(gaps_s, initial=0.0)]


def _slot_free_ns(rows: NDArray[np.void], slots: int) -> NDArray[np.int64]:
    """When a slot was free for each request: at the end of one before it, by the file's own times."""
    order = np.argsort(rows["sent_ns"], kind="stable")
    free = rows["sent_ns"].astype(np.int64)
    ended = np.sort(np.where(rows["end_ns"] == UNKNOWN, rows["sent_ns"], rows["end_ns"]))
    later = order[slots:]
    free[later] = np.minimum(ended[: len(later)], free[later])
    return free


def agree(
    what: str, stated: float | None, found: float | None, where: str, made_of: str = "its records give"
) -> None:
    """Raises SpecError if a figure of the file differs from the same figure of its records."""
    if stated is None or found is None:
        return
    if not np.isfinite(stated) or abs(stated - found) > max(_WRONG * abs(found), 1e-6):
        raise wrong(
            f"its {what} is {short(stated, 6)}, and {made_of} {short(found, 6)}: "
            "other units, a file cut short, or two runs in one",
            where,
        )


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def unix_ns(text: object) -> int | None:
    """Reads ISO 8601, as UTC where it names no zone; None for anything else."""
    if (at := _moment(text)) is None:
        return None
    found = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e9)
    return found if 0 < found < 2**63 else None


def without_zone(text: object) -> tuple[str, ...]:
    """Says that ISO 8601 names no zone; empty where it does, and for anything else."""
    at = _moment(text)
    return (ZONE,) if at is not None and at.tzinfo is None else ()


def figures_of(answers: int | None) -> str:
    """What a file of figures alone has."""
    return "figures" if answers is None else f"figures of {counted(answers, 'answer')}"


def of_reported(meant: Mapping[str, str], tool: str, reported: Mapping[str, float]) -> dict[str, str]:
    """What the tool means by each figure that it reported: `meant`, by metric, after the name of the tool. A
    meaning that is not there is not known, so no other tool has the same.
    """
    there = dict.fromkeys(path.partition(".")[0] for path in reported)
    return {metric: f"{tool}: {meant.get(metric, f'as {tool} means it')}" for metric in there}


def as_name(text: str, kept: str = ".-") -> str:
    """Fit for the name of a backend, and so of a folder: other characters become `-`."""
    return "".join(letter if letter.isalnum() or letter in kept else "-" for letter in text)


def mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
