"""The latencies of a cell as values that can be pooled with those of other runs."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import by_arrival, latencies
from harness.records.layout import Records

MOST_VALUES = 20_000  # more are thinned to as many, evenly by rank: no percentile shown moves by 0.01 %

Samples = dict[str, NDArray[np.float64]]  # by the name in summary.json; ascending; infinite: never got there


def samples(records: Records) -> Samples:
    return {metric: _thinned(values) for metric, values in latencies(by_arrival(records)).items()}


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(values)
    if len(ordered) <= MOST_VALUES:
        return ordered
    return ordered[((np.arange(MOST_VALUES) + 0.5) * len(ordered) / MOST_VALUES).astype(np.int64)]
