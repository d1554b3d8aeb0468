"""The latencies of a cell as values that can be pooled with those of other runs."""

import numpy as np
from numpy.typing import NDArray

from harness.metrics import latency
from harness.record import Records

MOST_VALUES = 20_000  # more are thinned to as many, evenly by rank: no percentile shown moves by 0.01 %

Samples = dict[str, NDArray[np.float64]]  # by the name in summary.json; ascending; infinite: never got there


def samples(records: Records) -> Samples:
    requests = records.requests
    return {
        "ttft_ms": _thinned(latency.ttft_ms(requests)),
        "ttft_service_ms": _thinned(latency.ttft_service_ms(requests)),
        "itl_ms": _thinned(latency.itl_ms(records)),
        "tpot_ms": _thinned(latency.tpot_ms(requests)),
        "e2e_ms": _thinned(latency.e2e_ms(requests)),
    }


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ordered = np.sort(values)
    if len(ordered) <= MOST_VALUES:
        return ordered
    return ordered[((np.arange(MOST_VALUES) + 0.5) * len(ordered) / MOST_VALUES).astype(np.int64)]
