"""Picks arrivals that represent their process: the most typical of several draws.

How long requests wait near a server's capacity depends on the bursts of a draw more than on the server.
Over 200 s at 16/s, at the load where 5% are beyond a limit in the long run, 2.2 to 8.4% were (nine of ten
draws), and 4.0 to 6.8% with the most typical of 50 draws (`python -m tests.bench.capacity_study
--arrivals`). So a capacity search, which asks for the long run, sends typical draws. A draw is judged by the
waits that it would cause in a queue with one server and constant service, at three utilisations.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from harness.workload.arrivals import NS, Process, arrivals

DRAWS = 50
UTILISATIONS = (0.75, 0.85, 0.93)
LONG_RUN = 1_000_000  # arrivals of the reference
SHARES = np.array([0.2, 0.1, 0.05, 0.02, 0.01])  # of the longest waits of the reference

Floats = NDArray[np.float64]


def typical_seed(process: Process, count: int, seed: int, burstiness: float = 1.0) -> int:
    """The one of DRAWS seeds from `seed` on whose `count` arrivals are nearest to the long run."""
    if process == "constant" or count < 2:
        return seed
    return min(range(seed, seed + DRAWS), key=lambda draw: _distance(process, count, draw, burstiness))


def _distance(process: Process, count: int, seed: int, burstiness: float) -> float:
    """Sum of differences in the shares beyond each wait, in standard deviations up to a constant factor."""
    arrived = _units(process, count, seed, burstiness)
    distance = 0.0
    for utilisation, waits in _reference(process, burstiness).items():
        ascending = np.sort(_waits(arrived, utilisation))
        beyond = 1 - np.searchsorted(ascending, waits, side="right") / count
        distance += float((np.abs(beyond - SHARES) / np.sqrt(SHARES)).sum())
    return distance


@cache
def _reference(process: Process, burstiness: float) -> dict[float, Floats]:
    """Waits by utilisation that, in the long run, SHARES of the requests exceed."""
    arrived = _units(process, LONG_RUN, 0, burstiness)
    return {
        utilisation: np.quantile(_waits(arrived, utilisation), 1 - SHARES) for utilisation in UTILISATIONS
    }


def _units(process: Process, count: int, seed: int, burstiness: float) -> Floats:
    """Arrival times with gaps of one unit on average."""
    return arrivals(process, 1.0, count, seed, burstiness=burstiness) / NS


def _waits(arrived: Floats, utilisation: float) -> Floats:
    """Wait of each request in units of the mean gap, by Lindley's recursion from an empty queue."""
    walk = np.cumsum(utilisation - np.diff(arrived, prepend=arrived[0] - utilisation))
    return walk - np.minimum.accumulate(np.minimum(walk, 0.0))
