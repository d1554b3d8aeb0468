"""A sample of latencies as named statistics, or null with the reason."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from harness.model import UNSET, LatencyStats, UnsetType
from harness.model.numbers import counted
from harness.stats.binomial import trials_needed, upper_rank

PERCENTILES = (50, 90, 95, 99)

_LEAST_SAMPLES = 32  # for a gap: with fewer, chance opens one
_LEAST_RISE = 1.25  # from the lower end of a gap to the higher
_RANK_Z = 2.576  # of the 99% interval of the median's rank

NEVER = "never got there"  # ends the reason of a figure that failed requests make infinite


def made_infinite(reason: str) -> bool:
    """Whether failed requests are the reason of a null figure: of a stored one there is only the text."""
    return reason.endswith(NEVER)


def samples_needed(percentile: float) -> int:
    """Fewest samples whose maximum bounds the percentile at 95%: 5, 29, 59, 299 for p50, p90, p95, p99."""
    return trials_needed(percentile / 100)


def highest_percentile(samples: int) -> int:
    """The highest of PERCENTILES that so many samples support; the median when they support none."""
    return max((p for p in PERCENTILES if samples >= samples_needed(p)), default=50)


def joined(parts: Iterable[NDArray[np.float64]], most: int) -> NDArray[np.float64]:
    """The parts one after the other, at most so many values. Each is dropped once it is copied: all of them
    would take as much memory as the result.
    """
    values, count = np.empty(most), 0
    for part in parts:
        values[count : count + len(part)] = part
        count += len(part)
    return values[:count]


def ascending(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values in order: themselves where they are in order, which is not to be changed."""
    return values if (values[1:] >= values[:-1]).all() else np.sort(values)


def latency_stats(
    values: NDArray[np.float64], *, independent: bool = True
) -> tuple[LatencyStats, dict[str, str]]:
    """The statistics, and the reason for each that is null. Infinite values are requests that never got
    there.

    `p99_upper` and the like are one-sided 95% confidence bounds; they need samples that are `independent`.
    """
    statistics: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    ordered = ascending(values)
    finite = ordered[: np.searchsorted(ordered, np.inf)]
    lost = len(values) - len(finite)
    never = f"{lost} of {len(values)} requests {NEVER}"
    statistics["mean"] = float(finite.mean()) if len(finite) else None
    if not len(finite):
        reasons["mean"] = never if lost else "no request has this value"
    for percentile in PERCENTILES:
        name, needed = f"p{percentile}", samples_needed(percentile)
        upper = f"{name}_upper"
        statistics[name] = statistics[upper] = None
        if len(values) < needed:
            reasons[name] = reasons[upper] = f"{counted(len(values), 'sample')}; {name} needs {needed}"
            continue
        upper_neighbour = -(-(len(values) - 1) * percentile // 100)
        if upper_neighbour < len(finite):
            statistics[name] = _quantile(finite, (len(values) - 1) * (percentile / 100))
        else:
            reasons[name] = never
        rank = upper_rank(percentile / 100, len(values)) if independent else None
        if rank is None:
            reasons[upper] = "gaps of one answer are not independent of each other"
        elif rank > len(finite):
            reasons[upper] = never
        else:
            statistics[upper] = float(ordered[rank - 1])
    return LatencyStats(**statistics, p50_gap=_gap_at_median(ordered)), reasons


def _quantile(ordered: NDArray[np.float64], rank: float) -> float:
    """The value at a rank from 0 to that of the last value, the same as of `np.quantile`, which copies them
    all.
    """
    below = math.floor(rank)
    return float(np.quantile(ordered[below : below + 2], min(rank - below, len(ordered) - 1 - below)))


def _gap_at_median(ordered: NDArray[np.float64]) -> tuple[float, float] | UnsetType:
    """The ends of a gap between two groups of samples that the median may lie in, or on either side of.

    It is the widest gap of the middle half, if it takes more than half of it, and the 99% interval of the
    median's rank reaches it. Of smooth distributions, at most 2 of 100 samples of 32 have one.
    """
    count = len(ordered)
    first = count // 4
    middle = ordered[first : count - first]
    if count < _LEAST_SAMPLES or np.isinf(middle[-1]):
        return UNSET
    centre = (middle[0] + middle[-1]) / 2  # in any gap that takes more than half
    above = max(1, int(np.searchsorted(middle, centre)))
    low, high = float(middle[above - 1]), float(middle[above])
    below = first + above  # samples
    near = abs(below - count / 2) <= _RANK_Z * np.sqrt(count) / 2
    wide = 2 * (high - low) > middle[-1] - middle[0] and high >= _LEAST_RISE * low
    return (low, high) if near and wide else UNSET
