"""Laws between the figures of a cell that hold whatever the engine does: where one fails, a figure is wrong.

Each law has a tolerance that follows from what cannot be known at the edges of the window; where that is too
wide to tell, or the cell gives no ground for it, the law is not judged and says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics import in_flight, series
from harness.metrics.counts import requests_of
from harness.metrics.reason import NOT_COUNTED
from harness.metrics.throughput import rates_of
from harness.metrics.view import CellView, Figures, Floats
from harness.metrics.window import Window, work_shares
from harness.model import WITHOUT_TEXT, CellFacts, Law, Requests, known
from harness.records.layout import CLIENT_ENDED, UNKNOWN, Outcome, Phase, Records
from harness.records.series import Telemetry

ERRORS = 3.0  # standard errors that chance may take at the edges
RESOLUTION = 0.01  # of what is expected: stamps, ticks, tails between the last text and the end
SAMPLED = 0.1  # of what an engine's gauges say: they lag behind by a step, and leave out the way to it
FEWEST = 4  # samples of a gauge: fewer say nothing of their own error
TOO_WIDE = 0.5  # a tolerance of half of what is expected finds nothing

_PLANNED = "planned = ended in any way + never due"
_LITTLE = "Little's law: in flight = requests/s × time in system"
ENGINE = "in flight: no more by the engine's gauges than by the client's records"
COUNTED = {
    "prompt_tokens": "prompt tokens: by the engine's counters = in its answers",
    "output_tokens": "output tokens: by the engine's counters = in its answers",
}
_TOKENS = "tokens/s = requests/s × mean length"
_SHARED = "engines behind one address: a prefill and a decode engine may both count a request"
_GIVEN_UP = "requests timed out or were stopped: an engine may go on with what nobody waits for"
_RESTARTED = "the engine restarted: what it counted since the last sample before is lost"
_OFFERED = "arrivals = served + backlog growth"
_SLOTS = "in flight: no more than slots"
_SLOT_TIME = "slots × window = busy + idle"
_NO_ANSWER = "no answer in the window"
NO_SCHEDULE = "when requests were to leave is not known"


def compute(cell: CellView) -> Figures:
    if cell.window is None:
        return Figures(conservation=())
    rates, counts = cell.of(rates_of), cell.of(requests_of)
    trees = cell.requested is not None and cell.requested.has_calls()
    about = Cell(cell.records, cell.facts, cell.window, rates, cell.shares, counts, cell.telemetry, trees)
    return Figures(conservation=tuple(laws(about)))


@dataclass(frozen=True, slots=True)
class Cell:
    """What the laws are about. `rates` are the rates as shown, `shares` those they were made of."""

    records: Records
    facts: CellFacts
    window: Window
    rates: Mapping[str, float | None]
    shares: Floats
    counts: Requests
    telemetry: Telemetry
    trees: bool = False  # slots hold recorded sessions: several calls at once, or none


def laws(cell: Cell) -> list[Law]:
    open_loop = cell.facts.load.slots is None
    return [
        _planned(cell.counts),
        _little(cell),
        _engine_in_flight(cell),
        _tokens(cell),
        *_counters(cell.records.requests, cell.facts),
        *([_offered(cell)] if open_loop else [_slots(cell), _slot_time(cell)]),
    ]


def _judged(law: str, measured: float, expected: float, tolerance: float) -> Law:
    if tolerance > 0 and tolerance >= TOO_WIDE * abs(expected):
        return Law(law, measured, expected, tolerance, None, "too few answers to tell")
    return Law(law, measured, expected, tolerance, abs(measured - expected) <= tolerance)


def _planned(counts: Requests) -> Law:
    """Every planned request has one end, or was never due. `unsent` counts those of the warm-up as well."""
    accounted = sum(counts.outcomes.values()) + counts.unsent
    if counts.planned < accounted <= counts.planned + counts.unsent:
        return Law(_PLANNED, why="requests of the warm-up were never due")
    return _judged(_PLANNED, accounted, counts.planned, 0.0)


def _little(cell: Cell) -> Law:
    """Mean in flight = requests/s × mean time in system, plus what was in flight and never answered.

    In an open loop work is not time: all that wait at an edge may have theirs on the same side of it.
    """
    law, window, requests = _LITTLE, cell.window, cell.records.requests
    inside_ns = in_flight.overlap_ns(requests, window.start_ns, window.end_ns)
    served = in_flight.served(requests)
    here = served & ((inside_ns > 0) | (cell.shares > 0))
    rate = cell.rates["requests_per_s"]
    if rate is None or not here.any():
        return Law(law, why=_NO_ANSWER)
    answers = requests[here]
    mean_ns = float((answers["end_ns"] - answers["sent_ns"]).mean())
    by_time = inside_ns[here] / np.maximum(answers["end_ns"] - answers["sent_ns"], 1)
    cut = (answers["sent_ns"] <= window.start_ns) | (answers["end_ns"] >= window.end_ns)
    edges_ns = _edge_error_ns(answers, 1 - by_time)
    edges_ns += mean_ns * abs(float((cell.shares[here] - by_time)[cut].sum()))
    length_ns = window.end_ns - window.start_ns
    expected = rate * mean_ns / 1e9 + float(inside_ns[~served].sum()) / length_ns
    measured = float(inside_ns.sum()) / length_ns
    return _judged(law, measured, expected, RESOLUTION * expected + edges_ns / length_ns)


def _edge_error_ns(answers: NDArray[np.void], outside: Floats) -> float:
    """The difference between the parts of answers outside the window and those of mean answers, ns.

    `outside`: the share of each. How far off they are is known, and chance bounds it badly: of few answers,
    one pause of the engine makes all those long that an edge cuts.
    """
    times_ns = (answers["end_ns"] - answers["sent_ns"]).astype(np.float64)
    return abs(float((outside * (times_ns - times_ns.mean())).sum()))


def _engine_in_flight(cell: Cell) -> Law:
    """More in flight at the engine than here is another client's work. Fewer is fine: gauges leave out the
    way to the queue."""
    if cell.facts.request.api in WITHOUT_TEXT:
        return Law(ENGINE, why="an engine counts the parts of a request apart")
    window = cell.window
    gauges = [cell.telemetry.get(f"engine.{name}") for name in ("running", "waiting")]
    means = [series.mean(samples, window) for samples in gauges]
    ours = in_flight.mean(cell.records.requests, window.start_ns, window.end_ns)
    if None in means or ours is None:
        return Law(ENGINE, why="the engine's queue was not sampled over the window")
    samples = gauges[0].between(window.start_ns, window.end_ns).values
    if len(samples) < FEWEST:
        return Law(ENGINE, why=f"the engine's queue was sampled fewer than {FEWEST} times in the window")
    error = float(samples.std()) / len(samples) ** 0.5
    theirs, tolerance = sum(filter(None, means)), max(SAMPLED * ours, 0.5) + ERRORS * error
    if theirs > ours + tolerance:
        sent = cell.records.requests[in_flight.held(cell.records.requests)]
        early = sent[sent["end_ns"] < window.end_ns]
        given_up = np.isin(early["outcome"], CLIENT_ENDED).any()
        if given_up or _shares_an_address(cell.facts):
            return Law(ENGINE, theirs, ours, tolerance, None, _GIVEN_UP if given_up else _SHARED)
    return Law(ENGINE, theirs, ours, tolerance, theirs <= ours + tolerance)


def _shares_an_address(facts: CellFacts) -> bool:
    """Whether several engines work behind one address, so that two may count the same request."""
    return len(known(facts.metrics_urls) or ()) > len(known(facts.urls) or ("",))


def _tokens(cell: Cell) -> Law:
    rate, shown = cell.rates["requests_per_s"], cell.rates["output_tokens_per_s"]
    if rate is None or not cell.shares.any():
        return Law(_TOKENS, why=_NO_ANSWER)
    if shown is None:
        return Law(_TOKENS, why=str(NOT_COUNTED))
    tokens = cell.records.requests["output_tokens"]
    expected = rate * float((cell.shares * tokens).sum() / cell.shares.sum())
    return _judged(_TOKENS, shown, expected, RESOLUTION * expected)


def _counters(requests: NDArray[np.void], facts: CellFacts) -> Iterator[Law]:
    """The engine's counters over the whole cell, warm-up included. Of a failed request the engine counts
    tokens that never arrived."""
    counters = facts.server_counters or {}
    sent = requests[requests["sent_ns"] != UNKNOWN]
    for field, law in COUNTED.items():
        if field not in counters:
            yield Law(law, why="the engine has no such counter")
        elif facts.counter_restarts:
            yield Law(law, why=_RESTARTED)
        elif not len(sent) or (sent["outcome"] != Outcome.OK).any():
            yield Law(law, why="requests without an answer: the engine counts tokens that never arrived")
        elif (sent[field] == UNKNOWN).any():
            yield Law(law, why=str(NOT_COUNTED))
        else:
            measured, expected = round(counters[field]), float(np.sum(sent[field], dtype=np.int64))
            if measured > expected and _shares_an_address(facts):
                yield Law(law, measured, expected, 0.0, None, _SHARED)
            else:
                yield _judged(law, measured, expected, 0.0)


def _offered(cell: Cell) -> Law:
    """Open loop: what was to arrive in the window was served in it, or is left over in addition."""
    requests, rate = cell.records.requests, cell.rates["requests_per_s"]
    if rate is None:
        return Law(_OFFERED, why=_NO_ANSWER)
    if not scheduled(requests):
        return Law(_OFFERED, why=NO_SCHEDULE)
    arrived = float(arrivals(requests, cell.window))
    never = arrivals(requests[~in_flight.served(requests)], cell.window)
    expected = rate * cell.window.seconds + backlog_growth(cell.records, cell.window) + never
    return _judged(_OFFERED, arrived, expected, max(1.0, RESOLUTION * arrived))


def scheduled(requests: NDArray[np.void]) -> bool:
    """Whether it is known when requests were to leave: files of other tools seldom say so."""
    return bool((requests["intended_ns"] != UNKNOWN).any())


def arrivals(requests: NDArray[np.void], window: Window) -> int:
    """Requests that the schedule meant to leave inside the window, whatever became of them."""
    due = requests["intended_ns"]
    return int(np.count_nonzero((due > window.start_ns) & (due <= window.end_ns)))


def backlog_growth(records: Records, window: Window) -> float:
    """Growth over the window, in whole requests, of the work that has arrived and is not done."""
    requests = records.requests
    served = in_flight.served(requests)
    due = requests["intended_ns"]
    begin = int(due.min(initial=window.start_ns)) - 1
    left = []
    for moment in (window.start_ns, window.end_ns):
        so_far = Window(begin, moment, "whole")
        done = work_shares(requests, records.events, so_far, closed_loop=False)
        left.append(float(np.count_nonzero(served & (due <= moment)) - done.sum()))
    return left[1] - left[0]


def _slots(cell: Cell) -> Law:
    if cell.trees:
        return Law(_SLOTS, why="a session may have several calls in flight")
    slots, requests = cell.facts.load.slots or 0, cell.records.requests
    if cell.facts.imported is not None:  # another tool may warm up with more at once
        requests = requests[requests["phase"] == Phase.MEASURE]
    most = int(in_flight.steps(requests).counts.max(initial=0))
    return Law(_SLOTS, most, slots, 0.0, most <= slots)


def _slot_time(cell: Cell) -> Law:
    """Closed loop: every slot is busy, or between an answer and the send that was due when it ended."""
    law, window, requests = _SLOT_TIME, cell.window, cell.records.requests
    if window.kind == "whole":
        return Law(law, why="no steady part: slots drain inside the window")
    if cell.facts.client.lost_workers:
        return Law(law, why="slots were lost with a load process")
    if cell.trees or _thinks(cell):
        return Law(law, why="slots think between requests")
    slots = cell.facts.load.slots or 0
    expected = slots * window.seconds
    busy_ns = in_flight.overlap_ns(requests, window.start_ns, window.end_ns).sum()
    due = requests["intended_ns"]
    waits = (due != UNKNOWN) & (requests["sent_ns"] != UNKNOWN)
    idle = np.minimum(requests["sent_ns"], window.end_ns) - np.maximum(due, window.start_ns)
    measured = float(busy_ns + np.maximum(idle[waits], 0).sum()) / 1e9
    return _judged(law, measured, expected, RESOLUTION * expected)


def _thinks(cell: Cell) -> bool:
    """Whether users think: as the load says; in runs that do not say, whether sends were due long after an
    answer had ended.

    The latter is blind to short think times of slots in lockstep, since the end of any slot counts.
    """
    declared_s = known(cell.facts.load.think_time_s)
    if declared_s is not None:
        return declared_s > 0
    requests = cell.records.requests
    ends = np.sort(requests["end_ns"][in_flight.held(requests)])
    due = requests["intended_ns"][requests["sent_ns"] != UNKNOWN]
    later = due[due > ends.min(initial=due.max(initial=0))]
    if not len(later):
        return False
    waits = later - ends[np.searchsorted(ends, later, side="right") - 1]
    return float(np.median(waits)) > RESOLUTION * float(in_flight.times_in_system_ns(requests).mean())
