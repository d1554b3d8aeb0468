"""The latencies of a cell as values that can be pooled with those of other runs."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import ascending
from harness.metrics.latency import values_ms
from harness.metrics.view import RequestView

MOST_VALUES = 20_000  # more are thinned to as many, evenly by rank: no percentile shown moves by 0.01%

Samples = dict[str, NDArray[np.float64]]  # by the name in summary.json; ascending; infinite: never got there


def samples(view: RequestView) -> Samples:
    return {metric: _thinned(values) for metric, values in view.of(values_ms).items()}


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = ascending(values)
    if len(ordered) <= MOST_VALUES:
        return ordered
    return ordered[((np.arange(MOST_VALUES) + 0.5) * len(ordered) / MOST_VALUES).astype(np.int64)]
