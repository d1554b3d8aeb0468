"""The part of a cell that rates are taken over, and what share of each request's work lies inside it.

Counting whole answers at their end overstates a closed loop by up to one wave: its window begins and ends
where answers end. A share moves with the edge of the window instead of jumping.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight
from harness.model import Minimum
from harness.records.layout import UNKNOWN, Outcome, Phase, with_text

# Of the mean time in system: a shorter window holds too little of the load's course.
MIN_STEADY_TIMES = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Window:
    start_ns: int
    end_ns: int
    kind: Literal["steady", "whole"]  # whole: too short for a steady part, ramp and drain are mixed in

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / 1e9

    def per_second(self, amount: float) -> float | None:
        return float(amount) / self.seconds if self.seconds > 0 else None


def duration_begin_ns(requests: NDArray[np.void], asked: Minimum) -> int | None:
    """When a duration began: with the first request behind the warm-up, when that was due in an open loop, or
    sent; in older cells with the load. None: none was, or load workers took all of them with them.
    """
    if not asked.after_warmup:
        return 0
    starts = requests["start_ns"][requests["phase"] != Phase.WARMUP]
    known = starts[starts != UNKNOWN]
    return int(known.min()) if len(known) else None


def measured_window(
    requests: NDArray[np.void],
    slots: int | None,
    not_before_ns: int = 0,
    sessions: NDArray[np.int64] | None = None,
    kept_ns: NDArray[np.int64] | None = None,
) -> Window | None:
    """The stretch where the load is at its height; None if nothing measured was answered.

    Closed loop of `slots`: until the first slot stays empty; not before all have begun, and one mean answer
    later where there are several, so that a common start is forgotten. Open loop: until the last send; not
    before one mean answer after the first. `not_before_ns`: until then slots wait on purpose. `sessions`: of
    each request, equal numbers where they are turns of one chat, which keeps its slot between them, and at
    least until the times of `kept_ns`.
    """
    held = in_flight.held(requests)
    sent = requests[held]
    measured = sent["phase"] == Phase.MEASURE
    answered = sent[measured & (sent["outcome"] == Outcome.OK)]
    if not len(answered):
        return None
    first, last_send = int(sent["sent_ns"][measured].min()), int(sent["sent_ns"].max())
    begin = max(first, not_before_ns)
    mean_ns = float(in_flight.times_in_system_ns(sent).mean())
    shortest_ns = MIN_STEADY_TIMES * mean_ns
    if slots is None:
        starts, end = [int(sent["sent_ns"].min() + mean_ns)], last_send
    elif len(sent) <= slots:  # all sent at once: no slot was ever used again
        starts, end = [], last_send
    else:
        filled = in_flight.filled_ns(sent)
        starts = [int(filled + mean_ns), filled] if slots > 1 else [begin]
        own = np.arange(len(sent)) if sessions is None else sessions[held]
        ends = sent["end_ns"] if kept_ns is None else np.maximum(sent["end_ns"], kept_ns[held])
        end = first_left_empty_ns(ends, own, sent["worker"], slots)
    for start in starts:
        if end - max(begin, start) >= shortest_ns:
            return Window(max(begin, start), end, "steady")
    return Window(first, int(answered["end_ns"].max()), "whole")


def session_ends_ns(
    requests: NDArray[np.void], planned: NDArray[np.int64], close_ns: int | None
) -> NDArray[np.int64]:
    """When the session of each request gives up its slot at the earliest; 0 if after its last answer.

    A session with calls left that did not fail waits until nothing more is sent: until `close_ns`, or the
    last end where that is None. `planned`: the session of every request of the workload.
    """
    own, unsent = planned[requests["seq"]], np.ones(len(planned), bool)
    unsent[requests["seq"]] = False
    waits = np.isin(own, planned[unsent]) & ~np.isin(own, own[requests["outcome"] != Outcome.OK])
    return np.where(waits, requests["end_ns"].max(initial=0) if close_ns is None else close_ns, 0)


def first_left_empty_ns(
    ends_ns: NDArray[np.int64], sessions: NDArray[np.int64], workers: NDArray[np.integer], slots: int
) -> int:
    """The first end of a session with none left to begin in its slot: of the last ends of each load worker,
    as many as it has slots. A worker has its own share of slots and sessions, and one ends before another.
    """
    unique, first, session = np.unique(sessions, return_index=True, return_inverse=True)
    ended = np.zeros(len(unique), np.int64)
    np.maximum.at(ended, session, ends_ns)
    firsts = []
    for worker, own in slots_by_worker(workers, slots).items():
        ends = np.sort(ended[workers[first] == worker])
        firsts.append(int(ends[-min(own, len(ends))]))
    return min(firsts)


def slots_by_worker(workers: NDArray[np.integer], slots: int) -> dict[int, int]:
    """How many of the slots each load worker has. `workers`: of every request."""
    count = int(workers.max()) + 1
    return {worker: len(range(worker, slots, count)) for worker in np.unique(workers).tolist()}


def makespan_s(requests: NDArray[np.void]) -> float | None:
    """Time from the first measured send to the end of the last measured one; None if one was not answered."""
    rows = requests[requests["phase"] == Phase.MEASURE]
    if not len(rows) or (rows["outcome"] != Outcome.OK).any():
        return None
    return float(rows["end_ns"].max() - rows["sent_ns"].min()) / 1e9


def work_shares(
    requests: NDArray[np.void], events: NDArray[np.void], window: Window, *, closed_loop: bool
) -> Floats:
    """The share of each request's work, of any phase, inside the window; 0 if it was not answered.

    Closed loop: of its time in flight, since each slot is always at work on one answer. Open loop: of its
    text events, since requests may only wait; an answer without events counts at its end.
    """
    served = in_flight.served(requests)
    sent, end = requests["sent_ns"], requests["end_ns"]
    if closed_loop:
        inside_ns = in_flight.overlap_ns(requests, window.start_ns, window.end_ns)
        return np.where(served, inside_ns / np.maximum(end - sent, 1), 0.0)
    shares = (served & (sent > window.start_ns) & (end <= window.end_ns)).astype(np.float64)
    edge = np.flatnonzero(served & (shares == 0) & (end > window.start_ns) & (sent < window.end_ns))
    stamps = _text_stamps(events, requests["seq"][edge])
    for row in edge.tolist():
        done_ns = stamps.get(int(requests["seq"][row]), end[row : row + 1])
        shares[row] = ((done_ns > window.start_ns) & (done_ns <= window.end_ns)).mean()
    return shares


def _text_stamps(events: NDArray[np.void], seqs: NDArray[np.int32]) -> dict[int, NDArray[np.int64]]:
    """Ascending stamps of the text events of each of `seqs` that has any."""
    stamps = {}
    bounds = np.searchsorted(events["seq"], [seqs, seqs + 1])
    for seq, begin, end in zip(seqs.tolist(), *bounds.tolist(), strict=True):
        own = events[begin:end]
        if (text := with_text(own)).any():
            stamps[seq] = np.sort(own["stamp_ns"][text])
    return stamps
