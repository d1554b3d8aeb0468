"""One request on its way, from the moment it is due to its end."""

from dataclasses import dataclass

from harness.load.http1 import Answer
from harness.records.layout import UNKNOWN, Outcome


@dataclass(slots=True)
class Exchange:
    """One request and its answer. Times are absolute CLOCK_MONOTONIC ns; `sent` is UNKNOWN if it never
    left.
    """

    seq: int
    intended: int
    index: int = 0  # position in the share of this worker
    sent: int = UNKNOWN  # for the first time
    connect: int = UNKNOWN  # waited for a connection before that
    end: int = UNKNOWN
    answer: Answer | None = None
    failure: Outcome | None = None  # what the transport saw; None: the answer came whole
    error: str = ""
    attempts: int = 0
    retransmits: int = UNKNOWN
    out_of_order: int = UNKNOWN
    replica: int = UNKNOWN  # that it went to
    deadline: int = 0  # when it ends at the latest
