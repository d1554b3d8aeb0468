"""Whether requests left as the declared process says: spread of gaps, dispersion of counts,
Kolmogorov-Smirnov.

A flat Poisson or gamma process is a distribution, and what was sent is tested against that. Everything else
(constant gaps, a trace, a rate that changes) is its own schedule, and what was sent is tested against it.
All limits are those of one false alarm in 1,000 cells.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from harness.metrics.view import Floats
from harness.model import Arrivals, ArrivalStatistics, Load, known
from harness.records.layout import UNKNOWN, Outcome
from harness.records.request_table import RequestTable
from harness.stats.gamma import dispersion_limits, gamma_cdf

Stamps = NDArray[np.int64]
Limits = tuple[float, float]

# Fewer have no dispersion worth a test: 20 counts of 5.
MIN_ARRIVALS = 100
_PER_BIN = 5

# A send takes time, and in a burst the next one waits for it: a gap is known to within this, not exactly.
GAP_WITHIN_S = 0.001

_ALPHA = 0.001 / 3  # of each of three tests
_Z = NormalDist().inv_cdf(1 - _ALPHA / 2)
_KOLMOGOROV = math.sqrt(-math.log(_ALPHA / 2) / 2)

# What is printed for the figures of arrivals.
TITLES = {"rate_per_s": "rate per s", "gap_cv": "gap CV", "dispersion": "dispersion", "ks": "KS distance"}


def statistics(times_ns: Stamps) -> ArrivalStatistics | None:
    """None if the arrivals are too few, or all at one moment. `times_ns` may be in any order."""
    ordered = np.sort(times_ns)
    if len(ordered) <= 2 * _PER_BIN or ordered[-1] == ordered[0]:
        return None
    gaps = np.diff(ordered)
    mean = float(gaps.mean())
    return ArrivalStatistics(
        rate_per_s=1e9 / mean,
        gap_cv=float(gaps.std(ddof=1)) / mean,
        dispersion=dispersion(ordered, ordered),
    )


def compare_cell(
    requests: NDArray[np.void], load: Load, requested: RequestTable | None = None
) -> Arrivals | None:
    """`arrivals` of a cell; None for a closed loop, which has no schedule.

    Of a session only the first turn arrives by the schedule; the others follow its answers. A server that
    refuses connections leaves a hole in what was sent: that is its own, so the others have their schedule.
    """
    if load.slots is not None:
        return None
    sent = requests[requests["sent_ns"] != UNKNOWN]
    if requested is not None:
        sent = sent[requested.numbers["turn"][sent["seq"]] <= 0]
    process = known(load.arrival)
    profile, declared = known(load.profile), known(load.burstiness)
    refused = (requests["outcome"] == Outcome.CONNECT_FAILED).any()
    flat = process in ("poisson", "gamma") and not profile and not refused
    burstiness = declared if declared and process == "gamma" else 1.0
    schedule, stamps = np.sort(sent["intended_ns"]), np.sort(sent["sent_ns"])
    if UNKNOWN in schedule:  # of a file of another tool
        schedule = schedule[:0]
    nominal = None
    if load.kind == "rate" and not profile:
        turns = None if requested is None else requested.numbers["turn"]
        nominal = load.value * (1.0 if turns is None else float((turns <= 0).mean()))
    return compare(schedule, stamps, burstiness if flat else None, process, nominal)


def compare(
    asked_ns: Stamps,
    sent_ns: Stamps,
    burstiness: float | None,
    process: str | None = None,
    rate_per_s: float | None = None,
) -> Arrivals:
    """Tests `sent_ns` against `asked_ns`, both ascending; the latter is empty if it is not known.

    `burstiness`: of a gamma process, 1 for Poisson; None where only the schedule is known. `rate_per_s`: the
    declared rate; None takes that of the schedule, since earlier versions drew schedules whose rate was
    their own.
    """
    count = len(sent_ns)
    asked, sent = statistics(asked_ns), statistics(sent_ns)
    if asked is not None and rate_per_s:
        asked = structs.replace(asked, rate_per_s=rate_per_s)
    if count < MIN_ARRIVALS or asked is None or sent is None:
        too_few = f"{count} arrivals; {MIN_ARRIVALS} are needed"
        at_once = "all at one moment" if len(asked_ns) else "when they were to leave is not known"
        reason = too_few if count < MIN_ARRIVALS else at_once
        return Arrivals(
            process=process,
            arrivals=count,
            asked=None if asked is None else structs.asdict(asked),
            achieved=None if sent is None else structs.asdict(sent),
            verdict="not tested",
            reason=reason,
        )
    if burstiness is None:
        test = _against_schedule(asked, asked_ns, sent, sent_ns)
    else:
        test = _against_process(asked, sent, sent_ns, burstiness)
    tested = Arrivals(
        process=process,
        arrivals=count,
        against=test.against,
        asked=structs.asdict(asked),
        achieved={**structs.asdict(test.sent), "ks": test.distance},
        limits={name: list(limit) for name, limit in test.limits.items()},
        verdict="kept",
        reason=None,
    )
    wrong = outside(tested)
    return structs.replace(tested, verdict="differs", reason=", ".join(wrong)) if wrong else tested


class _Test(NamedTuple):
    against: str
    sent: ArrivalStatistics
    distance: float  # of Kolmogorov and Smirnov
    limits: dict[str, Limits]


def _against_schedule(
    asked: ArrivalStatistics, asked_ns: Stamps, sent: ArrivalStatistics, sent_ns: Stamps
) -> _Test:
    limits = _limits_of_schedule(asked, len(sent_ns))
    limits["ks"] = (0.0, _KOLMOGOROV * math.sqrt(2 / len(sent_ns)))
    in_its_bins = structs.replace(sent, dispersion=dispersion(sent_ns, asked_ns))
    return _Test("its schedule", in_its_bins, _distance_of_times(asked_ns, sent_ns), limits)


def _against_process(
    asked: ArrivalStatistics, sent: ArrivalStatistics, sent_ns: Stamps, burstiness: float
) -> _Test:
    count = len(sent_ns)
    limits = _limits_of_process(burstiness, count)
    if burstiness < 1 / _PER_BIN:  # bursts fill more than a bin: no formula for the counts holds
        limits["dispersion"] = _limits_of_schedule(asked, count)["dispersion"]
    limits["ks"] = (0.0, _KOLMOGOROV / (math.sqrt(count - 1) + 0.12 + 0.11 / math.sqrt(count - 1)))
    against = "Poisson" if burstiness == 1 else f"gamma, burstiness {burstiness:g}"
    distance = _distance_of_gaps(np.diff(sent_ns) / 1e9, asked.rate_per_s, burstiness)
    return _Test(against, sent, distance, limits)


def outside(arrivals: Arrivals) -> list[str]:
    """Names of the figures outside their limits; empty where nothing was tested."""
    limits, sent = arrivals.limits or {}, arrivals.achieved or {}
    return [name for name in limits if name in sent and not limits[name][0] <= sent[name] <= limits[name][1]]


def dispersion(times_ns: Stamps, range_ns: Stamps) -> float:
    """Variance over mean of the counts per bin, between the first and the last of `range_ns`: they set the
    bins and are not counted. Both are ascending."""
    first, last = int(range_ns[0]), int(range_ns[-1])
    bins = max(len(range_ns) // _PER_BIN, 1)
    inner = times_ns[1:-1]
    inner = inner[(inner >= first) & (inner <= last)]
    places = ((inner - first) / (last - first) * bins).astype(np.int64)
    counts = np.bincount(np.minimum(places, bins - 1), minlength=bins)
    mean = counts.mean()
    return float(counts.var(ddof=1) / mean) if mean else 0.0


def _limits_of_process(burstiness: float, count: int) -> dict[str, Limits]:
    """The limits of a gamma process: asymptotic for the gaps, Fisher's dispersion test for the counts (exact
    for Poisson)."""
    cv = burstiness**-0.5
    of_gaps = math.exp(_Z * math.sqrt((1 + cv**2) / (2 * count)))  # the logarithm is nearest to normal
    # Variance over mean of a renewal process's counts in bins of t arrivals: cv² + (1 - cv⁴) / 6t.
    index = cv**2 + (1 - cv**4) / (6 * _PER_BIN)
    low, high = dispersion_limits(count // _PER_BIN - 1, _Z)
    return {"gap_cv": (cv / of_gaps, cv * of_gaps), "dispersion": (index * low, index * high)}


def _limits_of_schedule(asked: ArrivalStatistics, count: int) -> dict[str, Limits]:
    """The limits within which two draws of one process stay. A regular schedule must stay below what chance
    would give."""
    bins = count // _PER_BIN
    of_gaps = math.exp(_Z * math.sqrt((1 + asked.gap_cv**2) / count))
    of_counts = math.exp(_Z * 2 / math.sqrt(bins - 1))
    chance = _limits_of_process(1.0, count)
    regular = asked.gap_cv < chance["gap_cv"][0]
    return {
        "gap_cv": (0.0, chance["gap_cv"][0]) if regular else (asked.gap_cv / of_gaps, asked.gap_cv * of_gaps),
        "dispersion": (0.0, chance["dispersion"][0])
        if regular and asked.dispersion < chance["dispersion"][0]
        else (asked.dispersion / of_counts, asked.dispersion * of_counts),
    }


def _distance_of_gaps(gaps_s: Floats, rate_per_s: float, burstiness: float) -> float:
    """Kolmogorov-Smirnov distance of gaps from the gamma distribution; each gap is as near as it may be."""
    ordered = np.sort(gaps_s)
    shorter, longer = (
        gamma_cdf(burstiness, np.maximum(ordered + away_s, 0.0) * rate_per_s * burstiness)
        for away_s in (-GAP_WITHIN_S, GAP_WITHIN_S)
    )
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - longer).max(), (shorter - steps[:-1]).max()))


def _distance_of_times(asked_ns: Stamps, sent_ns: Stamps) -> float:
    """Largest share of all arrivals by which one is ahead of the other at any moment."""
    moments = np.concatenate([asked_ns, sent_ns])
    asked, sent = (np.searchsorted(times, moments, side="right") for times in (asked_ns, sent_ns))
    return float(np.abs(asked - sent).max() / len(sent_ns))
