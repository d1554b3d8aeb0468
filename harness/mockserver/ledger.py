"""Says what was really written when: one record per request, and the statistics a client should find."""

from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

Outcome = Literal["open", "complete", "refused", "aborted", "faulted"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(slots=True)
class Record:
    """One request to a completion route. Times are nanoseconds on CLOCK_MONOTONIC.

    `received_ns` is when its last byte arrived: the kernel's stamp, or where there is none when it was read.
    """

    number: int  # from 0, in order of arrival, since the start or the last reset
    path: str
    received_ns: int
    read_ns: int
    status: int = 200
    fault: str | None = None
    outcome: Outcome = "open"
    admitted_ns: int = 0
    ended_ns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    planned_tokens: int = 0
    transfer_ns: int = 0  # for which its KV cache came from another engine
    tokens: int = 0  # written
    # One per event that carries generated text: when it was to be written, and the clock just before send().
    due_ns: "array[int]" = field(default_factory=lambda: array("q"))
    write_ns: "array[int]" = field(default_factory=lambda: array("q"))

    def outcome_when_written(self) -> Outcome:
        """Now that the last byte of the answer was written."""
        if self.status != 200:
            return "refused"
        return "complete" if self.tokens == self.planned_tokens else "faulted"

    def as_json(self) -> dict[str, object]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"due_ns": self.due_ns.tolist(), "write_ns": self.write_ns.tolist()}


class Ledger:
    """Ledger of the last `keep` requests; None: of all since the start or the last reset."""

    def __init__(self, keep: int | None = None) -> None:
        self.records: deque[Record] = deque(maxlen=keep)
        self.dropped = 0
        self.blocked_writes = 0  # the client did not read: the kernel took less than was written

    def add(self, record: Record) -> None:
        self.dropped += len(self.records) == self.records.maxlen
        self.records.append(record)

    def reset(self) -> None:
        """Keeps requests that are still open: their times are still being written."""
        self.records = deque(
            (record for record in self.records if record.outcome == "open"), self.records.maxlen
        )
        self.dropped = self.blocked_writes = 0

    def statistics(self) -> dict[str, object]:
        """Returns statistics of the requests that are kept.

        Latencies are of complete answers only, from received; ITL is between text events, pooled.
        """
        records = self.records
        outcomes = [record.outcome for record in records]
        whole = [record for record in records if record.outcome == "complete" and record.write_ns]
        received = np.array([record.received_ns for record in whole], np.int64)
        first = np.array([record.write_ns[0] for record in whole], np.int64)
        last = np.array([record.write_ns[-1] for record in whole], np.int64)
        tokens = np.array([record.tokens for record in whole], np.int64)
        streamed = last > first
        gaps = [np.diff(np.asarray(record.write_ns)) for record in whole]
        late = [np.asarray(record.write_ns) - np.asarray(record.due_ns) for record in whole]
        return {
            "requests": len(records),
            **{outcome: outcomes.count(outcome) for outcome in OUTCOMES},
            "dropped": self.dropped,
            "tokens": sum(record.tokens for record in records),
            "blocked_writes": self.blocked_writes,
            "ttft_ms": _summary(first - received, 1e6),
            "itl_ms": _summary(_joined(gaps), 1e6),
            "tpot_ms": _summary((last - first)[streamed] / (tokens[streamed] - 1), 1e6),
            "e2e_ms": _summary(last - received, 1e6),
            "schedule_error_us": _summary(_joined(late), 1e3),
            "read_lag_us": _summary(np.array([r.read_ns - r.received_ns for r in whole], np.int64), 1e3),
        }

    def as_json(self) -> dict[str, object]:
        return {"statistics": self.statistics(), "records": [record.as_json() for record in self.records]}


def _joined(parts: Iterable[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _summary(values: np.ndarray[Any, Any], unit_ns: float) -> dict[str, float | int]:
    if not len(values):
        return {"n": 0}
    scaled = values / unit_ns
    quantiles = {f"p{q}": float(np.percentile(scaled, q)) for q in (50, 90, 99)}
    return {
        "n": len(scaled),
        "mean": float(scaled.mean()),
        "min": float(scaled.min()),
        **quantiles,
        "max": float(scaled.max()),
    }
