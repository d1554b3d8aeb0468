"""What was written, and when: one record per request, and the statistics a client should find."""

from array import array
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, get_args

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
    audio_ms: int = 0  # of its recording, as its header says
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
