"""Schedule of an open loop: whether requests left when they were meant to."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.errors import page_address
from harness.metrics.arrivals import TITLES, compare_cell, outside
from harness.metrics.latency import of_metric
from harness.model import IssueCode
from harness.model.numbers import apart, digits_apart, fixed, short
from harness.records.layout import UNKNOWN
from harness.validity.client import tail
from harness.validity.requests import MIN_SAMPLES
from harness.validity.rule import Evidence, Rule, Violation

# Sending later than this shows in the response time. The relative limit lets slow servers be measured
# by slow clients: 5% of the median TTFT.
MAX_LAG_MS = 5.0
MAX_LAG_SHARE = 0.05
RATE_TOLERANCE = 0.05
LAG_LIMIT = f"{MAX_LAG_MS:g} ms, or {MAX_LAG_SHARE:.0%} of the median TTFT if that is more"
CHANCE = 3.0  # standard errors of the mean rate of Poisson arrivals


def lag_limit_ms(cell: Evidence) -> float:
    ttft = of_metric(cell.view, "ttft_ms")
    median = float(np.median(ttft)) if len(ttft) else float("inf")
    return max(MAX_LAG_MS, MAX_LAG_SHARE * median) if np.isfinite(median) else MAX_LAG_MS


@partial(
    Rule,
    code=IssueCode.SCHEDULE_LAG,
    measures="how late requests left (p99, or the highest percentile from p50 on that the sample supports)",
    limit=LAG_LIMIT,
    verdicts=("INVALID",),
    hint="requests left late: lower the load, add --workers, or free the client's core",
    cause="client",
)
def _schedule_lag(cell: Evidence) -> Iterator[Violation]:
    """A closed loop has no schedule; `slot-idle` reports its idle slots."""
    if cell.load.slots is not None:
        return
    percentile, lag_ms = tail(cell.client.send_lag_ms)
    limit_ms = lag_limit_ms(cell)
    if lag_ms is not None and lag_ms > limit_ms:
        late, limit = apart(lag_ms, limit_ms, 1)
        yield Violation(f"{percentile} {late} ms", f"{limit} ms")


def _sent_open(cell: Evidence) -> NDArray[np.void] | None:
    """Requests of an open loop that left; None if they are too few for a rate."""
    requests = cell.records.requests
    sent = requests[requests["sent_ns"] != UNKNOWN]
    return None if cell.load.slots is not None or len(sent) < 2 * MIN_SAMPLES else sent


@partial(
    Rule,
    code=IssueCode.RATE_MISSED,
    measures=f"the rate that was sent, from {2 * MIN_SAMPLES} requests on; not where the first and the "
    f"last request left as far apart as they were due, within the limit of `{IssueCode.SCHEDULE_LAG}`",
    limit=f"the schedule's ± {RATE_TOLERANCE:.0%}, as far as the in-flight cap let requests leave",
    verdicts=("INVALID",),
    hint="the client could not keep the schedule: lower the rate, add --workers, or free its core",
    cause="client",
    eases=True,
)
def _rate_missed(cell: Evidence) -> Iterator[Violation]:
    """Compares the rate with the schedule, which is the client's to keep, as far as the in-flight cap let
    requests leave.

    Earlier versions drew some schedules of another rate than the nominal one.
    """
    sent = _sent_open(cell)
    if sent is None:
        return
    achieved, tolerance = _rate(sent["sent_ns"]), RATE_TOLERANCE
    if (sent["intended_ns"] == UNKNOWN).any():  # of another tool: the rate is known, not when each was due
        asked, tolerance = float(cell.load.value), RATE_TOLERANCE + CHANCE / len(sent) ** 0.5
    else:
        due_ns = _due_ns(cell, sent)
        longer_ns = abs(int(np.ptp(sent["sent_ns"]) - np.ptp(due_ns)))
        if longer_ns <= lag_limit_ms(cell) * 1e6:  # in a burst any delay is another rate
            return
        asked = _rate(due_ns)
    if abs(achieved / asked - 1) > tolerance:
        yield _off(achieved, "sent", asked, tolerance)


@partial(
    Rule,
    code=IssueCode.HELD_AT_CAP,
    measures="the rate at which the in-flight cap let requests leave",
    limit=f"the schedule's ± {RATE_TOLERANCE:.0%}",
    verdicts=("INVALID",),
    hint="answers ended more slowly than requests were due: lower the rate, or raise max_in_flight "
    "if the server can take more at once",
    cause="engine",
    eases=True,
)
def _held_at_cap(cell: Evidence) -> Iterator[Violation]:
    """Doubts a load only if the schedule was missed because requests waited for others to end."""
    sent = _sent_open(cell)
    if sent is None or not cell.client.held_at_cap:
        return
    asked, possible = _rate(sent["intended_ns"]), _rate(_due_ns(cell, sent))
    if possible < asked * (1 - RATE_TOLERANCE):
        waited = f"{cell.client.held_at_cap} of {len(sent)} requests waited at the in-flight cap: "
        off = _off(possible, "could be sent", asked, RATE_TOLERANCE)
        yield off._replace(measured=waited + off.measured)


def _off(rate: float, what: str, asked: float, tolerance: float) -> Violation:
    edge = asked * (1 + tolerance if rate > asked else 1 - tolerance)
    decimals = digits_apart(rate, edge, least=2)
    return Violation(f"{fixed(rate, decimals)}/s {what}", f"{fixed(asked, decimals)}/s ± {tolerance:.0%}")


def _due_ns(cell: Evidence, sent: NDArray[np.void]) -> NDArray[np.int64]:
    """The earliest time each request could leave: its intended time, or when the cap let it.

    A worker that holds requests back had its cap in flight at the most, and its n-th request leaves once all
    but the cap of those before it have ended. Where more would have waited than the client says it held
    back, the most in flight was not the cap, and nothing is excused.
    """
    due = sent["intended_ns"].astype(np.int64)
    if not cell.client.held_at_cap:
        return due
    for worker in np.unique(sent["worker"]):
        own = np.flatnonzero(sent["worker"] == worker)
        own = own[np.argsort(sent["sent_ns"][own], kind="stable")]
        left, ended = sent["sent_ns"][own], np.sort(sent["end_ns"][own])
        cap = int((np.arange(1, len(own) + 1) - np.searchsorted(ended, left, side="right")).max())
        due[own[cap:]] = np.maximum(due[own[cap:]], ended[: len(own) - cap])
    waited = int(np.count_nonzero(due > sent["intended_ns"]))
    return due if waited <= cell.client.held_at_cap else sent["intended_ns"].astype(np.int64)


@partial(
    Rule,
    code=IssueCode.ARRIVALS_DIFFER,
    measures="gap CV, dispersion and Kolmogorov-Smirnov distance of what was sent",
    limit=f"what chance leaves around what was asked for ({page_address('traces', 'was-it-replayed')})",
    hint="the server did not see what was asked for: look at lag, drops and the in-flight cap",
    cause="client",
    eases=True,
)
def _arrivals_differ(cell: Evidence) -> Iterator[Violation]:
    comparison = compare_cell(cell.records.requests, cell.load, cell.requested)
    if comparison and comparison.verdict == "differs" and comparison.limits and comparison.achieved:
        measured, limits = [], []
        for name in outside(comparison):
            sent, (low, high) = comparison.achieved[name], comparison.limits[name]
            digits = digits_apart(sent, low, high, least=3, shown=short)
            measured.append(f"{TITLES[name]} {short(sent, digits)}")
            limits.append(f"{TITLES[name]} {short(low, digits)} to {short(high, digits)}")
        yield Violation(", ".join(measured), f"{', '.join(limits)} ({comparison.against})")


def _rate(stamps_ns: NDArray[np.int64]) -> float:
    ordered = np.sort(stamps_ns)
    return float((len(ordered) - 1) * 1e9 / max(int(ordered[-1] - ordered[0]), 1))


RULES = (_schedule_lag, _rate_missed, _held_at_cap, _arrivals_differ)
