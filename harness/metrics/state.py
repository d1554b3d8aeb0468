"""Whether the load or the server set the pace of a cell. A rate is the server's only if the server did.

Under load: all that was sent was served as it came; what more the server could do is unknown. Saturated: a
closed loop whose slots always hold a request. Unstable: less was served than was sent, or answers took
longer and longer; a latency then says how long was measured, not how fast the server is.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight
from harness.metrics.quality import form_refused
from harness.metrics.reason import OfServer, OfTimes
from harness.metrics.sessions import in_flight_share
from harness.metrics.view import Floats
from harness.metrics.window import MIN_STEADY_TIMES, first_left_empty_ns, session_ends_ns
from harness.model import Load, State, known
from harness.model.numbers import counted, percent_apart, short
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.records.request_table import RequestTable
from harness.stats.serial import lasting

UNSERVED = 0.01  # share of the requests: the limit of failed-requests and dropped-requests
BEHIND = 0.05  # share of what is sent by which an open loop falls behind
SURE = 3.09  # standard errors: one in 1,000
BUSY = 0.9  # share of the time in which a closed loop's slots hold a request
LEAST = 20  # requests, else neither growth nor its absence can be seen


@dataclass(frozen=True, slots=True)
class CellState:
    state: State | None  # None: not known
    why: str


def cell_state(
    requests: NDArray[np.void], load: Load, requested: RequestTable | None = None, not_before_ns: int = 0
) -> CellState:
    """Uses requests of any phase, since the server does not know phases.

    `not_before_ns`: until then slots wait on purpose.
    """
    rows = requests[requests["outcome"] != Outcome.CANCELLED]
    if not (rows["phase"] == Phase.MEASURE).any():
        return CellState(None, OfTimes("no measured request was due"))
    if load.slots is not None and requested is not None and requested.has_calls():
        return _closed(in_flight_share(rows, requested), "a call of a session is in flight")
    if load.slots is not None and known(load.think_time_s) == 0:
        return CellState("saturated", "each slot sends again at once")
    if load.slots is not None:
        share = _busy_share(rows, load.slots, requested, not_before_ns)
        return _closed(share, "slots hold a request")
    # A server that does not take a schema refuses it at any pace.
    stays = rows["phase"] != Phase.IMPATIENT
    return _open(rows[stays & (rows["intended_ns"] != UNKNOWN) & ~form_refused(rows, requested)])


def _closed(share: float, what: str) -> CellState:
    words = f"{what} {percent_apart(share, BUSY)}% of the time"
    return CellState("saturated" if share >= BUSY else "under load", words)


def _busy_share(
    rows: NDArray[np.void], slots: int, requested: RequestTable | None, not_before_ns: int
) -> float:
    """The share of the time until slots run empty; 1 if all were sent at once.

    Without chats that is the last send. A slot that has no chat to begin is empty while others go on. The
    time before `not_before_ns` counts only where less than half of a usual answer is left after it.
    """
    sent = rows[in_flight.held(rows)]
    if not len(sent):
        return 0.0
    begin, last = int(sent["sent_ns"].min()), int(sent["sent_ns"].max())
    if len(sent) <= slots or last == begin:
        return 1.0
    if requested is not None and requested.has_sessions():
        chats = requested.sessions()
        ends = np.maximum(sent["end_ns"], session_ends_ns(sent, chats, None))
        last = min(last, first_left_empty_ns(ends, chats[sent["seq"]], sent["worker"], slots))
    usual_ns = float((sent["end_ns"] - sent["sent_ns"]).mean())
    if last - not_before_ns >= MIN_STEADY_TIMES * usual_ns:
        begin = max(begin, not_before_ns)
    return min(1.0, (in_flight.mean(sent, begin, last) or 0.0) / slots)


def _open(rows: NDArray[np.void]) -> CellState:
    rows = rows[np.argsort(rows["intended_ns"], kind="stable")]
    missing = int(np.count_nonzero(rows["outcome"] != Outcome.OK))
    usual = UNSERVED * len(rows)
    if missing > usual + SURE * usual**0.5:
        return CellState("unstable", f"{missing} of {len(rows)} requests were not answered")
    good = rows[(rows["outcome"] == Outcome.OK) & (rows["end_ns"] != UNKNOWN)]
    if len(good) < LEAST:
        few = f"{counted(len(good), 'answer')}; {LEAST} are needed to see whether they take longer"
        return CellState(None, few if len(good) else OfServer(few))
    usual_ns = float(np.median(good["end_ns"] - good["intended_ns"]))
    if (growing := _growth(good)) is not None:
        words = f"each second of sending adds {growing:.2g} s to the answers"
        return CellState("unstable", words)
    if (behind := _falls_behind(rows, good, usual_ns)) is not None:
        return CellState("unstable", behind)
    usual_s, sending_s = usual_ns / 1e9, float(np.ptp(rows["intended_ns"])) / 1e9
    if sending_s < usual_s:  # most would not have ended by the last send, on time or late
        words = f"requests came for {short(sending_s)} s and answers take {short(usual_s)} s"
        return CellState(None, f"{words}: a backlog would not show")
    return CellState("under load", f"{len(good)} of {len(rows)} requests served as they came")


def _growth(good: NDArray[np.void]) -> float | None:
    """Seconds of answer time per second of sending, where that is plainly above `BEHIND`.

    A queue that is served at a share r of its arrivals makes answers grow by 1/r - 1. Where it only swings,
    answers in a row are alike, and count for fewer.
    """
    due = (good["intended_ns"] - good["intended_ns"].mean()) / 1e9
    spread = float((due**2).sum())
    if spread == 0:
        return None
    slope, left = _trend(due, (good["end_ns"] - good["intended_ns"]) / 1e9)
    error = (float((left**2).sum()) * lasting(left) / (len(good) - 2) / spread) ** 0.5
    return slope if slope > BEHIND and slope - SURE * error > 0 else None


def _falls_behind(rows: NDArray[np.void], good: NDArray[np.void], usual_ns: float) -> str | None:
    """Fewer answers than requests in the time in which both flow: after one usual answer time, to the last.

    An answer in flight at either end is not a backlog: as many as usually are may be missing, give or take. A
    queue, which is empty at the start, may hold as many more at the end as it does now and then.
    """
    start, stop = float(rows["intended_ns"].min()) + usual_ns, float(rows["intended_ns"].max())
    if stop - start < max(usual_ns, 1):
        return None  # too short for a backlog to be distinguished from what is in flight
    due = int(np.count_nonzero((rows["intended_ns"] > start) & (rows["intended_ns"] <= stop)))
    served = int(np.count_nonzero((good["end_ns"] > start) & (good["end_ns"] <= stop)))
    usually = due * usual_ns / (stop - start)
    swing = float((_in_flight_less_trend(rows, good) ** 2).mean())
    if due - served > BEHIND * due + SURE * (usually + max(usually, swing)) ** 0.5:
        return f"{counted(served, 'answer')} to {counted(due, 'request')} in {short((stop - start) / 1e9)} s"
    return None


def _in_flight_less_trend(rows: NDArray[np.void], good: NDArray[np.void]) -> Floats:
    """How many requests were in flight, beyond their trend, at each moment at which one was due."""
    due = rows["intended_ns"]
    ended = np.searchsorted(np.sort(good["end_ns"]), due, side="right")
    return _trend((due - due.mean()) / 1e9, (np.arange(len(due)) - ended).astype(np.float64))[1]


def _trend(since: Floats, values: Floats) -> tuple[float, Floats]:
    """The slope of the values over times with mean 0, and what is left of them beyond it."""
    slope = float(since @ values) / float(since @ since)
    return slope, values - values.mean() - slope * since
