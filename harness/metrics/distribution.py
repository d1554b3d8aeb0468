"""A sample of latencies as the named statistics of summary.json, or null with the reason."""

import math

import numpy as np
from numpy.typing import NDArray

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


def describe(values: NDArray[np.float64]) -> tuple[dict[str, float | None], dict[str, str]]:
    """Statistics and, for each that is null, why. Infinite values are requests that never got there."""
    statistics: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    statistics["mean"] = float(finite.mean()) if len(finite) else None
    if not len(finite):
        reasons["mean"] = "no request has this value"
    for percentile in PERCENTILES:
        name, needed = f"p{percentile}", samples_needed(percentile)
        statistics[name] = None
        if len(values) < needed:
            reasons[name] = f"{len(values)} samples; {name} needs {needed}"
            continue
        # 'higher' keeps an infinite neighbour infinite where interpolation would give NaN.
        value = float(np.quantile(values, percentile / 100, method="linear" if not lost else "higher"))
        if math.isinf(value):
            reasons[name] = f"{lost} of {len(values)} requests {NEVER}"
        else:
            statistics[name] = value
    return statistics, reasons
