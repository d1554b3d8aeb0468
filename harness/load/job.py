"""The task of the load room and its result: plain, picklable data without I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.apis import ApiName
from harness.host.access import Access
from harness.load.bounds import USUAL_BYTES
from harness.records.layout import UNKNOWN, Phase, Records

if TYPE_CHECKING:
    from harness.model import ClientStats  # which a load worker would load for nothing

StampSource = Literal["kernel", "user"]
ClosedBy = Literal["schedule", "caller", "silence"]


@dataclass(frozen=True, slots=True)
class ClosedLoop:
    """`concurrency` slots; a slot takes the next request as soon as its answer ended plus think time. One
    whose think time goes past the end of the window takes none, and another slot the request.

    `spread`: a slot's second request (of sessions: its second session) waits so that the sends of all slots
    come evenly over one answer time, where they would come together. It is intended for the end of that wait.
    """

    concurrency: int
    think_ns: NDArray[np.int64] | None = None  # as many as requests, taken in order; None: no wait
    spread: bool = False
    slots: range | None = None  # which of all workers' slots these are; None: all there are

    def spread_slots(self) -> range | None:
        """None where nothing is spread."""
        return (self.slots or range(self.concurrency)) if self.spread else None


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """Requests leave at their intended offsets whatever the server does.

    At `max_in_flight` a due request waits (its response time shows it) or is dropped and counted.
    """

    intended_ns: NDArray[np.int64]  # one per request, of sessions one per session; ascending, from t0
    max_in_flight: int = 4096
    over_cap: Literal["wait", "drop"] = "wait"
    # From t0, when the first measured request of the whole cell is due: a share may begin with a later one.
    measured_ns: int | None = None  # None: not known ahead


@dataclass(frozen=True, slots=True)
class Sessions:
    """Requests that follow one another: a turn is due when the answer before it ended, and its think time.

    A closed loop keeps so many sessions going, also where one waits past the end of the window; an open loop
    begins one at each of its times. The bodies of later turns hold `apis.ANSWER` where earlier answers go, or
    `apis.KEPT` for the id of the last one. A turn that fails is its session's last.

    Sessions that are trees say in `after` what each request waits for: several of one may be in flight. Their
    bodies hold no answers, and no request leaves after one of its session failed.
    """

    session: NDArray[np.int32]  # one per request; requests of one session stand together, in order
    think_ns: NDArray[np.int64]  # one per request, waited before it; the first of an open loop does not wait
    after: Sequence[tuple[int, ...]] = ()  # so many places before it; 0: the start of its session

    def only(self, mine: NDArray[np.integer[Any]]) -> "Sessions":
        """The sessions of `mine`, which are whole, so that every request keeps its distance to those it waits
        for."""
        after = [self.after[i] for i in mine.tolist()] if self.after else ()
        return Sessions(self.session[mine], self.think_ns[mine], after)

    def starts(self) -> list[int]:
        """Positions of the first turns."""
        changes = np.flatnonzero(np.diff(self.session)) + 1
        return [0, *changes.tolist()] if len(self.session) else []


@dataclass(frozen=True, slots=True)
class Promised:
    """How this server ends an answer. A stream with neither its end nor a finish reason is UNFINISHED."""

    done: bool = True  # [DONE], or what the API has instead, at the end of a stream
    finish_reason: bool = False  # in every answer
    keeps_connection: bool = True  # for the next request, unless its headers say otherwise
    answer_id: bool = False  # in every answer, for the turn after it


@dataclass(frozen=True, slots=True)
class LoadJob:
    """One timed window against one server, or several of one model: every request of a cell, in order."""

    url: str  # absolute, http or https, of the endpoint itself
    access: Access
    bodies: Sequence[bytes]  # JSON bodies in `seq` order
    schedule: ClosedLoop | OpenLoop
    sessions: Sessions | None = None  # None: no request waits for another's answer
    warmup_requests: int = 0  # the first so many are tagged Phase.WARMUP
    # Of each request, from its first send until its user hangs up; UNKNOWN: never. Others are IMPATIENT.
    patience_ns: NDArray[np.int64] | None = None  # None: nobody hangs up
    # No new request so long after the first measured one; those in flight drain.
    duration_s: float | None = None
    # From the first send (before it: from waiting for a connection) to the end.
    request_timeout_s: float = 300.0
    drain_timeout_s: float = 60.0  # after the last send; what is still open then is TIMEOUT
    answer_bytes: int = USUAL_BYTES  # a longer answer is OVERSIZED
    promised: Promised = Promised()
    api: ApiName = "chat"  # that bodies and answers speak
    items: NDArray[np.int32] | None = None  # vectors or scores of each answer; None: answers are text
    dimensions: int | None = None  # that a vector must have; None: the model's own
    workers: int | None = None  # processes; None: chosen from the load and the machine
    http2: bool = False  # needs the extra of that name
    stamps: StampSource | None = None  # None: kernel where the platform and the URL allow it
    other_urls: tuple[str, ...] = ()  # of more servers of the same model
    # Position in `urls` of each request; None with several: decided when it is sent, by what is in flight.
    replicas: NDArray[np.int16] | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        return (self.url, *self.other_urls)

    def phases(self, seqs: NDArray[np.int32]) -> NDArray[np.uint8]:
        """The phase of each request. `seqs`: their numbers in the cell."""
        phases = np.where(seqs < self.warmup_requests, Phase.WARMUP, Phase.MEASURE).astype(np.uint8)
        if self.patience_ns is not None:
            phases[self.patience_ns != UNKNOWN] = Phase.IMPATIENT
        return phases


@dataclass(frozen=True, slots=True)
class Progress:
    """Snapshot for the live display, a few times a second; never used for results."""

    elapsed_s: float
    planned: int
    sent: int
    done: int
    failed: int
    in_flight: int
    recent_ttft_ms: float | None  # median of recently finished requests
    recent_output_tokens_per_s: float | None  # by events, an estimate; None where answers are not text
    recent_items_per_s: float | None = None  # vectors or scores
    duration_s: float | None = None  # of the measured part, however many are planned
    measured_s: float = 0.0  # so far


@dataclass(frozen=True, slots=True)
class LoadResult:
    t0_monotonic_ns: int
    t0_unix_ns: int
    records: Records
    client: "ClientStats"
    closed_by: ClosedBy = "schedule"  # what ended the window
    timeouts: int = 0  # in a row, without a token, with which it ended
    unsent: int = 0  # requests of the job never due because the window closed
    # Numbers of the requests by the model that their answers name; those that name none are in no list.
    models: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        return self.closed_by == "caller"


ProgressSink = Callable[[Progress], None]
