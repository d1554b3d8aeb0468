"""Decides whether one cell of a capacity search kept the scenario's limits, and what refutes it."""

import math
from collections.abc import Iterator, Mapping

from harness.model import Backlog, CellResult, IssueCode, Reason
from harness.model.figures import share_of
from harness.model.numbers import counted, percent_of_all, short
from harness.stats.binomial import share_above, trials_needed
from harness.validity import cause_of, eases, spoiled

# Share of the arrivals of an open loop that may stay unanswered, in addition to what chance leaves.
BACKLOG_TOLERANCE = 0.01
CHANCE = 3.0  # standard errors
SHORT_CHANCE = 5.0  # standard errors for a short probe, whose false alarm sends the search far down
SHORT_SURE = 0.8  # confidence with which a short probe misses a limit
LEAST_SPANS = 3.0  # least length of a window, in times that a request is in the system
LEAST_SHARE = 0.8  # least length of a probe, as a share of the seconds that it was to last
UNKNOWN_LATENCY = "a latency with a limit is not known"
FAILURES_ALLOWED = 2  # requests outside a limit, in the smallest probe that can still keep it


def answers_needed(slo: Mapping[str, Mapping[str, float]]) -> int:
    """Answers with which every limit can be kept with confidence although FAILURES_ALLOWED miss it."""
    shares = [share_of(share) for limits in slo.values() for share in limits]
    return max((trials_needed(share, FAILURES_ALLOWED) for share in shares if share < 1), default=1)


def kept_limits(cell: CellResult, *, short: bool = False) -> bool:
    return not why_not_kept(cell, short=short)


def why_not_kept(cell: CellResult, *, short: bool = False) -> list[str]:
    """Reasons why the cell, as measured, did not keep the limits; empty if it did.

    A short probe only brackets the capacity: it fails if it surely does not keep up or surely missed a limit,
    and need not be steady.
    """
    return [*refuted(cell, short=short), *_missed(cell, SHORT_SURE if short else None)]


def refuted(cell: CellResult, *, short: bool = False) -> Iterator[str]:
    """Yields reasons for which a probe shows nothing in favour of its load, whatever its latencies."""
    yield from _doubts(cell, steady=not short)
    yield from queue_reasons(cell, SHORT_CHANCE if short else CHANCE)
    if not short:
        yield from _length(cell)


def is_spoiled(cell: CellResult, *, short: bool = False) -> bool:
    """Whether the first of the reasons of `why_not_kept` says nothing of the server."""
    first = next(_counted(cell, steady=not short), None)
    return first is not None and spoiled(cause_of(first))


def _doubts(cell: CellResult, *, steady: bool = True) -> Iterator[str]:
    return (f"{reason.code}: {reason.measured}" for reason in _counted(cell, steady=steady))


def _counted(cell: CellResult, *, steady: bool) -> Iterator[Reason]:
    """Yields broken validity rules that count against the load: all of an INVALID cell, which kept nothing.

    Rules that can only make a load look harder (a busy client, a lag of its loop) do not count. Nor do failed
    requests: each is outside every limit already, and counts in its share. Nor does what is not steady in an
    open loop: its queue swings near the capacity, and `queue_reasons` find one that builds.
    """
    for reason in cell.validity.reasons:
        swings = reason.code == IssueCode.NOT_STEADY and cell.backlog is not None
        if swings or reason.code == IssueCode.FAILED_REQUESTS:
            continue
        if reason.verdict == "INVALID" or (steady and eases(reason.code)):
            yield reason


def queue_reasons(cell: CellResult, chance: float = CHANCE) -> Iterator[str]:
    """Yields signs that more requests come than are answered.

    Both limits allow for chance as if arrivals were Poisson.
    """
    queue = cell.backlog
    if queue is None:
        return
    third_s = queue.window_s / 3
    kept_s = time_in_system_s(queue)
    error = math.sqrt(2 * queue.in_system_mean * min(1.0, 2 * kept_s / third_s))
    growth = queue.in_system_last - queue.in_system_first
    if growth > BACKLOG_TOLERANCE * queue.arrivals * 2 / 3 + chance * error:
        first, last = short(queue.in_system_first), short(queue.in_system_last)
        yield f"a queue builds: {first} requests in the system early, {last} late"
    left = queue.arrivals - queue.answered - cell.requests.failed  # those do not wait in a queue
    if left > BACKLOG_TOLERANCE * queue.arrivals + chance * math.sqrt(2 * queue.in_system_mean + 1):
        yield f"{counted(queue.answered, 'answer')} to {counted(queue.arrivals, 'arrival')}"


def _length(cell: CellResult) -> Iterator[str]:
    """Yields a reason if the window is too short to tell a growing queue from an engine that fills up."""
    queue = cell.backlog
    if queue is None:
        return
    wanted_s = max(
        LEAST_SHARE * (cell.probe.seconds if cell.probe else 0.0), LEAST_SPANS * time_in_system_s(queue)
    )
    if queue.probed_s < wanted_s:
        yield f"too short: {short(queue.probed_s)} s, needs {short(wanted_s)} s"


def time_in_system_s(queue: Backlog) -> float:
    """Mean time of a request in the system, by Little's law."""
    return float(queue.in_system_mean * queue.window_s / max(queue.arrivals, 1))


def _missed(cell: CellResult, confidence: float | None = None) -> Iterator[str]:
    """Yields limits that were missed: as measured, or with this confidence."""
    if cell.slo is None:
        yield UNKNOWN_LATENCY
        return
    for limit in cell.slo.limits:
        share, requests = share_of(limit.share), cell.slo.requests
        if limit.within >= share:
            continue
        missed = round((1 - limit.within) * requests)
        if confidence is None or share_above(missed, requests, confidence) > 1 - share:
            name = f"{limit.metric.removesuffix('_ms')} {limit.share}"
            yield f"{name}: {percent_of_all(limit.within, share)}% within the limit"
