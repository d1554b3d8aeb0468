"""Limits on the size of an answer, several times what engines send for what was asked, and on its time."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.load.failures import HUNG_UP, LATE
from harness.records.layout import UNKNOWN, Outcome

HEAD_BYTES = 64 << 10  # of an answer's head, interim answers before it included
EVENT_BYTES = 1 << 20  # of a stream that does not repeat its request
_ANSWER_BYTES = 1 << 20  # whatever was asked for: error pages, comments, usage
_TOKEN_BYTES = 4 << 10  # an event of one token has 200 to 600 bytes, with every field that engines add
_ITEM_BYTES = 256 << 10  # a vector of 4,096 numbers has 90 kB in JSON
_ESCAPED = 3  # a letter of two bytes may come back as \u00e9
USUAL_BYTES = 64 << 20  # of a job that names no limit


@dataclass(frozen=True, slots=True)
class Limits:
    request_timeout_ns: int  # from the first send; before it, from waiting for a connection
    drain_timeout_ns: int
    patience_ns: Sequence[int] = ()  # as in the job, by index; (): nobody hangs up

    def after_send_ns(self, index: int) -> int:
        """The time from its first send in which a request must end."""
        patience = self.patience_ns[index] if self.patience_ns else UNKNOWN
        return patience if UNKNOWN < patience < self.request_timeout_ns else self.request_timeout_ns

    def late(self, index: int) -> tuple[Outcome, str]:
        """The end of a request that takes longer."""
        if self.after_send_ns(index) < self.request_timeout_ns:
            return Outcome.ABANDONED, HUNG_UP
        return Outcome.TIMEOUT, LATE.format(seconds=self.request_timeout_ns / 1e9)


def answer_bytes(max_tokens: int, items: int = 0, echoed_bytes: int = 0) -> int:
    """The limit of one answer, on the wire and decompressed.

    `items`: the vectors or scores that it holds. `echoed_bytes`: as much of its request as it repeats.
    """
    return _ANSWER_BYTES + _TOKEN_BYTES * max_tokens + _ITEM_BYTES * items + _ESCAPED * echoed_bytes
