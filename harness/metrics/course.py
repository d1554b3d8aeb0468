"""A cell over its window: what was in flight and, in an open loop, what was offered."""

from harness.metrics import conservation, in_flight
from harness.metrics.reason import NO_ANSWER, OfServer
from harness.metrics.view import CellView, Figures
from harness.metrics.window import makespan_s
from harness.records.layout import Phase

_OF_THE_WINDOW = ("window_start_s", "window_s", "window_kind")
_OVER_THE_WINDOW = (
    "in_flight_mean",
    "time_in_system_ms_mean",
    "effective_concurrency",
    "offered_per_s",
    "backlog_growth_per_s",
)


def compute(cell: CellView) -> Figures:
    """Times in s from the start of the cell; a rate is per second of the window."""
    window, makespan = cell.window, makespan_s(cell.timed.requests)
    if window is None:
        none = dict.fromkeys((*_OF_THE_WINDOW, *_OVER_THE_WINDOW))
        return Figures(dict.fromkeys(_OVER_THE_WINDOW, NO_ANSWER), makespan_s=makespan, **none)
    requests, closed = cell.requests, cell.slots is not None
    measured = requests[requests["phase"] == Phase.MEASURE]
    mean = in_flight.mean(requests, window.start_ns, window.end_ns)
    offered = growth = None
    if scheduled := not closed and conservation.scheduled(requests):
        offered = window.per_second(conservation.arrivals(requests, window))
        growth = window.per_second(conservation.backlog_growth(cell.records, window))
    why = "a closed loop offers what is served" if closed else OfServer(conservation.NO_SCHEDULE)
    no_offer = {} if scheduled else dict.fromkeys(("offered_per_s", "backlog_growth_per_s"), why)
    no_slots = {} if closed else {"effective_concurrency": "an open loop has no slots"}
    return Figures(
        makespan_s=makespan,
        window_start_s=window.start_ns / 1e9,
        window_s=window.seconds,
        window_kind=window.kind,
        in_flight_mean=mean,
        time_in_system_ms_mean=float(in_flight.times_in_system_ns(measured).mean()) / 1e6,
        effective_concurrency=mean if closed else None,
        offered_per_s=offered,
        backlog_growth_per_s=growth,
        nulls=no_offer | no_slots,
    )
