"""What a reader takes from a file: one measurement, on its way to a cell of a run folder."""

import os
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.imports.source import wrong
from harness.model import Fact, Level, Load, Requests
from harness.model.numbers import counted, short
from harness.records.layout import (
    EVENT_DTYPE,
    UNKNOWN,
    EventKind,
    Outcome,
    Phase,
    Records,
    empty_requests,
)
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
_WRONG = 0.005  # by which a tool's own mean may miss that of its records: rounding
MOST_S = 30 * 86_400
_LATEST_S = 9e9  # in ns it fits into 64 bits
_MOST_COUNT = 2**31 - 1  # tokens of a request: what 32 bits hold


def _no_records() -> Records:
    return Records(empty_requests(0), np.zeros(0, EVENT_DTYPE), (), (), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """`started_unix_ns`: None if the file does not say. `cap`: most requests in flight. `settings`: those of
    the server, which repeats share.
    """

    tool: str
    version: str | None
    level: Level
    took: str
    load: Load
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
    requests: Requests | None = None  # as bench exported them

    @property
    def load_known(self) -> bool:
        """False if the file does not name the load, or if a cap may have changed it."""
        return not any(lack.startswith(LOAD) for lack in self.lacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
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
    chunks_s: NDArray[np.float64] | None = None
    empty_first: int = 0
    empty_last: int = 0
    outcome: Outcome = Outcome.OK
    error: str = ""
    warmup: bool = False


class Rows:
    """Requests one after another; their events go to a file, so that memory does not grow with them."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._answers: list[Answer] = []
        self._events, name = tempfile.mkstemp(prefix="bench-import-")
        Path(name).unlink()
        weakref.finalize(self, os.close, self._events)
        self._event_count = 0

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, answer: Answer) -> None:
        """Raises SpecError for impossible times and counts: other units, or a damaged file."""
        times = [answer.sent_s, answer.first_s, answer.last_s, answer.end_s]
        known = [time for time in times if time is not None]
        if not all(np.isfinite(known)) or sorted(known) != known:
            order = "send, first text, last text and end"
            raise wrong(f"request {len(self)}: its times are not in the order of {order}", self._where)
        if (took_s := known[-1] - known[0]) > MOST_S:
            raise wrong(f"request {len(self)}: took {short(took_s)} s: other units?", self._where)
        if (self._answers and abs(known[0] - self._answers[0].sent_s) > MOST_S) or abs(known[0]) > _LATEST_S:
            raise wrong(f"request {len(self)}: sent at {short(known[0])} s: other units?", self._where)
        for count in (answer.prompt_tokens, answer.cached_tokens, answer.output_tokens, answer.first_tokens,
                      answer.pieces):  # fmt: skip
            if count is not None and not 0 <= count <= _MOST_COUNT:
                raise wrong(f"request {len(self)}: a count of {count}, which is no amount", self._where)
        if answer.chunks_s is not None:
            self._write(len(self), answer)
        self._answers.append(replace(answer, chunks_s=None))

    def _write(self, seq: int, answer: Answer) -> None:
        """Stamps become relative later, when the first send is known."""
        chunks_s = answer.chunks_s
        assert chunks_s is not None
        events = np.zeros(len(chunks_s), EVENT_DTYPE)
        events["seq"], events["kind"] = seq, EventKind.OTHER
        events["kind"][answer.empty_first : len(events) - answer.empty_last] = EventKind.TEXT
        events["text_chars"], events["wire_bytes"] = 0, UNKNOWN
        events["stamp_ns"] = np.rint(chunks_s * 1e9)
        write_all(self._events, events.tobytes())
        self._event_count += len(events)

    def records(self, slots: int | None = None) -> Records:
        """Times count from the first send. With `slots` of a closed loop, a slot is free when an answer has
        ended."""
        if not len(self):
            return _no_records()
        rows = empty_requests(len(self))
        t0 = min(answer.sent_s for answer in self._answers)
        for row, answer in zip(rows, self._answers, strict=True):
            row["outcome"] = answer.outcome
            row["phase"] = Phase.WARMUP if answer.warmup else Phase.MEASURE
            for name, at_s in (
                ("sent_ns", answer.sent_s),
                ("first_text_ns", answer.first_s),
                ("last_text_ns", answer.last_s),
                ("end_ns", answer.end_s),
                ("intended_ns", answer.intended_s),
            ):
                if at_s is not None:
                    row[name] = round((at_s - t0) * 1e9)
            for name, count in (
                ("prompt_tokens", answer.prompt_tokens),
                ("cached_tokens", answer.cached_tokens),
                ("output_tokens", answer.output_tokens),
                ("first_tokens", answer.first_tokens),
                ("text_events", answer.pieces),
            ):
                if count is not None:
                    row[name] = count
        if slots is not None:
            rows["intended_ns"] = _slot_free_ns(rows, slots)
        rows["start_ns"] = rows["sent_ns"]
        if slots is None and (rows["intended_ns"] != UNKNOWN).all():
            rows["start_ns"] = rows["intended_ns"]
        empty = [""] * len(rows)
        errors = [answer.error[:300] for answer in self._answers]
        return Records(rows, self._stamped(round(t0 * 1e9)), empty, empty, errors)

    def _stamped(self, t0_ns: int) -> NDArray[np.void]:
        if not self._event_count:
            return np.zeros(0, EVENT_DTYPE)
        with os.fdopen(os.dup(self._events), "r+b") as file:
            events = np.memmap(file, EVENT_DTYPE, "r+", shape=(self._event_count,))
        events["stamp_ns"] -= t0_ns
        return events

    def check_streamed(self) -> None:
        """Raises SpecError if no answer has a first token: without streaming none is known."""
        outcomes = {answer.outcome for answer in self._answers}
        if Outcome.EMPTY in outcomes and Outcome.OK not in outcomes:
            raise wrong("no answer has a first token", self._where, hint="measure with streaming")

    @property
    def measured(self) -> list[Answer]:
        return [answer for answer in self._answers if not answer.warmup]


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
    """What the tool means by each figure that it reported: `meant`, by metric, after the name of the tool."""
    there = {path.partition(".")[0] for path in reported}
    return {metric: f"{tool}: {why}" for metric, why in meant.items() if metric in there}


def as_name(text: str, kept: str = ".-") -> str:
    """Fit for the name of a backend, and so of a folder: other characters become `-`."""
    return "".join(letter if letter.isalnum() or letter in kept else "-" for letter in text)


def mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
