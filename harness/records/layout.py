"""The record of one request: what the load room writes and every later room reads.

All times are nanoseconds on CLOCK_MONOTONIC since the cell's t0. A value that was not reported is UNKNOWN in
these arrays and null on disk: unknown is not zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.records.event_kind import GENERATED as GENERATED
from harness.records.event_kind import UNKNOWN as UNKNOWN
from harness.records.event_kind import EventKind as EventKind


class Outcome(IntEnum):
    """How a request ended. All but OK, CANCELLED and ABANDONED are infinite latencies."""

    OK = 0
    HTTP_ERROR = 1  # a status other than 2xx, redirects included
    STREAM_ERROR = 2  # an error object inside a 2xx answer
    EMPTY = 3  # a complete 2xx answer without generated text
    TRUNCATED = 4  # the connection closed before the answer was complete
    MALFORMED = 5  # bytes that are not HTTP, SSE or JSON where they must be
    CONNECT_FAILED = 6
    RESET = 7
    TIMEOUT = 8
    CANCELLED = 9  # a person stopped the run; says nothing about the server
    DROPPED = 10  # never sent: the in-flight cap was reached and the schedule says drop, or the window closed
    ABORTED = 11  # the server gave it up: a finish reason of Finish.GIVEN_UP
    UNFINISHED = 12  # a stream that ended without the finish reason or [DONE] that this engine promises
    LOST = 13  # with a load worker that died
    OVERSIZED = 14  # the head, an event or the whole answer was longer than any engine makes them
    NO_SOCKET = 15  # never sent: the load generator's machine had no open file, port or memory for it
    ABANDONED = 16  # its user hung up, as the scenario says; says nothing about the server


# The client ended the exchange: a server may go on with what nobody waits for.
CLIENT_ENDED = (Outcome.TIMEOUT, Outcome.CANCELLED, Outcome.ABANDONED)


class Phase(IntEnum):
    """What a request is for. Statistics are of MEASURE only."""

    WARMUP = 0
    MEASURE = 1
    IMPATIENT = 2  # load next to it: the user hangs up, unless the answer comes first


REQUEST_DTYPE = np.dtype(
    [
        ("seq", "<i4"),  # position in the cell's workload
        ("worker", "<i2"),
        ("phase", "u1"),
        ("outcome", "u1"),
        ("http_status", "<i2"),
        ("intended_ns", "<i8"),  # open loop: the schedule; closed loop: when the slot became free
        ("sent_ns", "<i8"),  # first byte of the first attempt handed to the socket
        ("start_ns", "<i8"),  # response times count from here: `intended_ns`; in a closed loop `sent_ns`
        (
            "attempts",
            "<i2",
        ),  # how often it was sent; more than once only where the server cannot have read it
        ("connect_ns", "<i8"),  # waited for a connection before the first send; 0 on a warm one
        ("headers_ns", "<i8"),
        ("first_text_ns", "<i8"),
        ("last_text_ns", "<i8"),
        ("first_reasoning_ns", "<i8"),  # of the text that is no answer; UNKNOWN where there is none
        ("first_answer_ns", "<i8"),  # content or a tool call; equal to `first_text_ns` without reasoning
        ("end_ns", "<i8"),  # end of the answer, or when the failure was seen
        ("prompt_tokens", "<i4"),
        ("cached_tokens", "<i4"),
        ("output_tokens", "<i4"),
        ("reasoning_tokens", "<i4"),  # of `output_tokens`, as the server counts them
        ("output_chars", "<i4"),
        ("text_events", "<i4"),
        ("first_tokens", "<i4"),  # tokens that the server had counted by the first text event
        ("retransmits", "<i4"),  # TCP segments of the request that were lost and sent again (TCP_INFO)
        ("out_of_order", "<i4"),  # TCP segments of the answer that arrived out of order: one was lost before
        ("wire_bytes", "<i8"),
        ("replica", "<i2"),  # position of the URL it went to among the cell's; UNKNOWN where never sent
    ]
)

_EVENTS_PER_BLOCK = 1 << 20
# By kind. numpy's isin takes longer for a short answer than all else that a load worker does with it.
_IS_GENERATED = np.isin(np.arange(256), GENERATED)
EVENT_DTYPE = np.dtype(
    [
        ("seq", "<i4"),
        ("kind", "u1"),
        ("text_chars", "<i4"),
        ("wire_bytes", "<i4"),  # bytes of the event in the decoded body; 0: in the row before, of one event
        ("stamp_ns", "<i8"),  # arrival of the last byte of the event
    ]
)


@dataclass(frozen=True, slots=True)
class Records:
    """Requests in `seq` order with their texts; events grouped by request, each group in arrival order.

    `events` may be a memory map: an hour of streaming does not have to fit in memory.
    """

    requests: NDArray[np.void]  # REQUEST_DTYPE
    events: NDArray[np.void]  # EVENT_DTYPE
    texts: Sequence[str]  # generated text per request: reasoning, content, names and arguments of tool calls
    finish_reasons: Sequence[str]  # "" where not reported
    errors: Sequence[str]  # "" where none; at most 300 characters, never a credential
    tool_calls: Sequence[str] = ()  # JSON list of id, name and arguments, "" where none; (): not kept

    @property
    def seq_count(self) -> int:
        """Length of an array indexed by `seq`: more than the number of rows if requests never became due."""
        return int(self.requests["seq"].max(initial=-1)) + 1

    def event_blocks(self) -> Iterator[NDArray[np.void]]:
        """Yields all events in blocks, so that results computed from them need not fit in memory either."""
        for start in range(0, len(self.events), _EVENTS_PER_BLOCK):
            yield self.events[start : start + _EVENTS_PER_BLOCK]


def with_text(events: NDArray[np.void]) -> NDArray[np.bool_]:
    """Marks one row of each event with generated text, which has a row for each kind of text in it."""
    marks: NDArray[np.bool_] = _IS_GENERATED[events["kind"]] & (events["wire_bytes"] != 0)
    return marks


def was_sent(records: Records) -> bool:
    """Whether any request was sent that is neither preparation nor warm-up."""
    rows = records.requests
    return bool(((rows["phase"] == Phase.MEASURE) & (rows["sent_ns"] != UNKNOWN)).any())


def content(events: NDArray[np.void], text: str) -> str:
    """The part of a request's text that is its answer: without reasoning and tool calls."""
    with_text = events[events["text_chars"] > 0]
    kept = with_text["kind"] == EventKind.TEXT
    ends = np.cumsum(with_text["text_chars"])
    if kept.all() or ends[-1] != len(text):  # a credential in it was replaced
        return text
    starts = ends - with_text["text_chars"]
    return "".join(text[a:b] for a, b in zip(starts[kept].tolist(), ends[kept].tolist(), strict=True))


def response_start(requests: NDArray[np.void], *, closed_loop: bool) -> NDArray[np.int64]:
    """Values for `start_ns`: when a request was sent in a closed loop, when it was due in an open one.

    A request that was never sent counts from when it was due in both.
    """
    sent: NDArray[np.int64] = requests["sent_ns"]
    intended: NDArray[np.int64] = requests["intended_ns"]
    return np.where(sent != UNKNOWN, sent, intended) if closed_loop else intended


def empty_requests(count: int) -> NDArray[np.void]:
    """`count` rows with every field UNKNOWN; phase MEASURE, outcome CANCELLED, seq 0..count-1."""
    rows: NDArray[Any] = np.zeros(count, REQUEST_DTYPE)
    for name in REQUEST_DTYPE.names or ():
        if np.issubdtype(REQUEST_DTYPE[name], np.signedinteger):
            rows[name] = UNKNOWN
    rows["seq"] = np.arange(count)
    rows["worker"] = 0
    rows["phase"] = Phase.MEASURE
    rows["outcome"] = Outcome.CANCELLED
    return rows
