"""Decides whether one cell of a capacity search shows that its load keeps the scenario's limits."""

import math
from collections.abc import Iterator, Mapping

from harness.model import Backlog, CellResult, IssueCode, Limit
from harness.stats.binomial import share_above, trials_needed
from harness.validity import eases

# Share of the arrivals of an open loop that may stay unanswered, in addition to what chance leaves.
BACKLOG_TOLERANCE = 0.01
CHANCE = 2.0  # standard errors
SHORT_CHANCE = 4.0  # standard errors for a short probe, whose false alarm sends the search far down
LEAST_SPANS = 3.0  # least length of a window, in times that a request is in the system
LEAST_SHARE = 0.8  # least length of a probe, as a share of the seconds that it was to last
UNKNOWN_LATENCY = "a latency with a limit is not known"
FAILURES_ALLOWED = 2  # requests outside a limit, in the smallest probe that can still keep it


def answers_needed(slo: Mapping[str, Mapping[str, float]]) -> int:
    """Answers with which every limit can be kept with confidence although FAILURES_ALLOWED miss it."""
    shares = [_share(share) for limits in slo.values() for share in limits]
    return max((trials_needed(share, FAILURES_ALLOWED) for share in shares if share < 1), default=1)


def kept_limits(cell: CellResult, *, short: bool = False) -> bool:
    return not why_not_kept(cell, short=short)


def why_not_kept(cell: CellResult, *, short: bool = False) -> list[str]:
    """Reasons why the cell does not show that its load keeps the limits; empty if it does.

    A short probe only brackets the capacity. It fails if it surely does not keep up, or if it missed a limit
    as measured; it need not be steady.
    """
    if short:
        return [*_doubts(cell, steady=False), *queue_reasons(cell, SHORT_CHANCE), *_missed(cell)]
    return [*_doubts(cell), *queue_reasons(cell), *_length(cell), *_limits(cell)]


def _doubts(cell: CellResult, *, steady: bool = True) -> Iterator[str]:
    """Yields broken validity rules that count against the load: all of an INVALID cell, which kept nothing.

    Rules that can only make a load look harder (a busy client, a lag of its loop) do not count. Nor do failed
    requests: each is outside every limit already, and counts in its share.
    """
    for reason in cell.validity.reasons:
        if reason.code == IssueCode.FAILED_REQUESTS:
            continue
        if reason.verdict == "INVALID" or (steady and eases(reason.code)):
            yield f"{reason.code}: {reason.measured}"


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
        first, last = f"{queue.in_system_first:.3g}", f"{queue.in_system_last:.3g}"
        yield f"a queue builds: {first} requests in the system early, {last} late"
    left = queue.arrivals - queue.answered - cell.requests.failed  # those do not wait in a queue
    if left > BACKLOG_TOLERANCE * queue.arrivals + chance * math.sqrt(2 * queue.in_system_mean):
        yield f"{queue.answered} answers to {queue.arrivals} arrivals"


def _length(cell: CellResult) -> Iterator[str]:
    """Yields a reason if the window is too short to tell a growing queue from an engine that fills up."""
    queue = cell.backlog
    if queue is None:
        return
    wanted_s = max(
        LEAST_SHARE * (cell.probe.seconds if cell.probe else 0.0), LEAST_SPANS * time_in_system_s(queue)
    )
    if queue.probed_s < wanted_s:
        yield f"too short: {queue.probed_s:.3g} s, needs {wanted_s:.3g} s"


def time_in_system_s(queue: Backlog) -> float:
    """Mean time of a request in the system, by Little's law."""
    return float(queue.in_system_mean * queue.window_s / max(queue.arrivals, 1))


def _missed(cell: CellResult) -> Iterator[str]:
    if cell.slo is None:
        yield UNKNOWN_LATENCY
        return
    for limit in cell.slo.limits:
        if limit.within < _share(limit.share):
            yield f"{_name(limit)}: {limit.within:.1%} within the limit"


def _limits(cell: CellResult) -> Iterator[str]:
    slo = cell.slo
    if slo is None:
        yield UNKNOWN_LATENCY
        return
    for limit in slo.limits:
        share, total, name = _share(limit.share), slo.requests, _name(limit)
        if share == 1:
            if limit.within < 1:
                yield f"{name}: {limit.within:.1%} within the limit"
            continue
        sure = share_above(round(limit.within * total), total)
        if sure < share and total < trials_needed(share):
            yield f"{name}: {total} requests, needs {trials_needed(share)}"
        elif sure < share:
            yield f"{name}: {limit.within:.1%} within the limit, surely {sure:.1%}"


def _name(limit: Limit) -> str:
    return f"{limit.metric.removesuffix('_ms')} {limit.share}"


def _share(name: str) -> float:
    """Share of requests that a limit is for: p95 is 0.95, max is 1."""
    return 1.0 if name == "max" else float(name.removeprefix("p")) / 100
