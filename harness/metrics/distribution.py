"""A sample of latencies as named statistics, or null with the reason."""

import math

import numpy as np
from numpy.typing import NDArray

from harness.model import LatencyStats

PERCENTILES = (50, 90, 95, 99)

NEVER = "never got there"  # ends the reason of a percentile that failed requests make infinite

# With n samples the largest exceeds the true percentile with this probability or more.
CONFIDENCE = 0.95


def samples_needed(percentile: float) -> int:
    """Fewest samples whose maximum bounds the percentile at 95 %: 5, 29, 59, 299 for p50, p90, p95, p99."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(percentile / 100))


def highest_percentile(samples: int) -> int:
    """The highest of PERCENTILES that so many samples support; the median when they support none."""
    return max((p for p in PERCENTILES if samples >= samples_needed(p)), default=50)


def upper_rank(percentile: float, samples: int) -> int | None:
    """Rank from 1 of the value that bounds the percentile from above at 95 %; None for too few samples.

    The smallest order statistic that exceeds the percentile with that probability: the number of samples
    below the percentile is binomial, whatever the distribution (David and Nagaraja 2003, 7.1).
    """
    if samples < samples_needed(percentile):
        return None
    share = percentile / 100
    around = 12 * math.sqrt(samples * share * (1 - share)) + 12  # what is further off has no probability
    lowest, highest = max(0, int(samples * share - around)), min(samples, int(samples * share + around))
    counts = np.arange(lowest, highest + 1)
    ratios = (samples - counts[:-1]) / counts[1:] * (share / (1 - share))
    ways = math.lgamma(samples + 1) - math.lgamma(lowest + 1) - math.lgamma(samples - lowest + 1)
    first = ways + lowest * math.log(share) + (samples - lowest) * math.log1p(-share)
    logs = first + np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    return lowest + int(np.searchsorted(np.cumsum(np.exp(logs)), CONFIDENCE)) + 1


def describe(values: NDArray[np.float64], *, independent: bool = True) -> tuple[LatencyStats, dict[str, str]]:
    """Statistics and, for each that is null, why. Infinite values are requests that never got there.

    `p99_upper` and the like are one-sided 95 % confidence bounds; they need samples that are `independent`.
    """
    statistics: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    ordered = np.sort(values)
    finite = ordered[: np.searchsorted(ordered, np.inf)]
    lost = len(values) - len(finite)
    never = f"{lost} of {len(values)} requests {NEVER}"
    statistics["mean"] = float(finite.mean()) if len(finite) else None
    if not len(finite):
        reasons["mean"] = "no request has this value"
    for percentile in PERCENTILES:
        name, needed = f"p{percentile}", samples_needed(percentile)
        upper = f"{name}_upper"
        statistics[name] = statistics[upper] = None
        if len(values) < needed:
            reasons[name] = reasons[upper] = f"{len(values)} samples; {name} needs {needed}"
            continue
        # 'higher' keeps an infinite neighbour infinite where interpolation would give NaN.
        value = float(np.quantile(ordered, percentile / 100, method="linear" if not lost else "higher"))
        if math.isinf(value):
            reasons[name] = never
        else:
            statistics[name] = value
        rank = upper_rank(percentile, len(values)) if independent else None
        if rank is None:
            reasons[upper] = "gaps of one answer are not independent of each other"
        elif rank > len(finite):
            reasons[upper] = never
        else:
            statistics[upper] = float(ordered[rank - 1])
    return LatencyStats(**statistics), reasons
