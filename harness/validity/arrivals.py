"""Schedule of an open loop: whether requests left when they were meant to."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.metrics.arrivals import TITLES, compare_cell
from harness.metrics.latency import ttft_ms
from harness.model import IssueCode, known
from harness.records.layout import UNKNOWN
from harness.validity.client import tail
from harness.validity.requests import MIN_SAMPLES
from harness.validity.rule import Evidence, Rule, Violation

# Sending later than this shows in the response time. The relative limit lets slow servers be measured
# by slow clients: 5 % of the median TTFT.
MAX_LAG_MS = 5.0
MAX_LAG_SHARE = 0.05
RATE_TOLERANCE = 0.05


def lag_limit_ms(cell: Evidence) -> float:
    ttft = ttft_ms(cell.records.requests)
    median = float(np.median(ttft)) if len(ttft) else float("inf")
    return max(MAX_LAG_MS, MAX_LAG_SHARE * median) if np.isfinite(median) else MAX_LAG_MS


def _schedule_lag(cell: Evidence) -> Iterator[Violation]:
    """In a closed loop nobody intended a time, and an idle slot is told by `slot-idle`."""
    if cell.load.slots is not None:
        return
    percentile, lag_ms = tail(cell.client.send_lag_ms)
    limit_ms = lag_limit_ms(cell)
    if lag_ms is not None and lag_ms > limit_ms:
        yield Violation(f"{percentile} {lag_ms:.1f} ms", f"{limit_ms:.1f} ms")


def _rate_missed(cell: Evidence) -> Iterator[Violation]:
    """Against the schedule, which is the client's to keep. Earlier versions drew some of another rate."""
    requests = cell.records.requests
    sent = requests[requests["sent_ns"] != UNKNOWN]
    if cell.load.slots is not None or len(sent) < 2 * MIN_SAMPLES:
        return
    asked, achieved = _rate(sent["intended_ns"]), _rate(sent["sent_ns"])
    if abs(achieved / asked - 1) > RATE_TOLERANCE:
        yield Violation(f"{achieved:.2f}/s sent", f"{asked:.2f}/s ± {RATE_TOLERANCE:.0%}")


def _arrivals_differ(cell: Evidence) -> Iterator[Violation]:
    comparison = compare_cell(cell.records.requests, cell.load, cell.requested)
    if comparison and comparison.verdict == "differs" and comparison.limits and comparison.achieved:
        names = (known(comparison.reason) or "").split(", ")
        limits = ", ".join(
            "{} {:.3g} to {:.3g}".format(TITLES[name], *comparison.limits[name]) for name in names
        )
        yield Violation(
            ", ".join(f"{TITLES[name]} {comparison.achieved[name]:.3g}" for name in names),
            f"{limits} ({comparison.against})",
        )


def _rate(stamps_ns: NDArray[np.int64]) -> float:
    ordered = np.sort(stamps_ns)
    return float((len(ordered) - 1) * 1e9 / max(int(ordered[-1] - ordered[0]), 1))


RULES = (
    Rule(
        code=IssueCode.SCHEDULE_LAG,
        find=_schedule_lag,
        measures="how late requests left (p99, or the highest percentile that the sample supports)",
        limit=f"{MAX_LAG_MS:g} ms, or {MAX_LAG_SHARE:.0%} of the median TTFT if that is more",
        verdicts=("INVALID",),
        hint="requests left late: lower the load, add --workers, or free the client's core",
        cause="client",
    ),
    Rule(
        code=IssueCode.RATE_MISSED,
        find=_rate_missed,
        measures="the rate that was sent",
        limit=f"the schedule's ± {RATE_TOLERANCE:.0%}",
        verdicts=("INVALID",),
        hint="the client could not keep the schedule: lower the rate or raise max_in_flight",
        cause="client",
        eases=True,
    ),
    Rule(
        code=IssueCode.ARRIVALS_DIFFER,
        find=_arrivals_differ,
        measures="gap CV, dispersion and Kolmogorov-Smirnov distance of what was sent",
        limit="what chance leaves around what was asked for ([traces.md](traces.md#was-it-replayed))",
        hint="the server did not see what was asked for: look at lag, drops and the in-flight cap",
        cause="client",
        eases=True,
    ),
)
