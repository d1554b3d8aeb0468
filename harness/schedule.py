"""When requests leave: offsets from t0 in nanoseconds, computed before the window from a seed."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

NS = 1_000_000_000


def constant(rate: float, count: int) -> NDArray[np.int64]:
    """`rate` per second, the first at t0, gaps all equal."""
    return np.round(np.arange(count) * (NS / rate)).astype(np.int64)


def poisson(rate: float, count: int, seed: int) -> NDArray[np.int64]:
    """Exponential gaps by inversion of one uniform stream, so a seed means the same arrivals anywhere.

    The first request comes one gap after t0, like every other.
    """
    uniform = np.random.Generator(np.random.PCG64(seed)).random(count)
    return np.round(np.cumsum(-np.log1p(-uniform)) * (NS / rate)).astype(np.int64)


def arrivals(
    process: Literal["poisson", "constant"], rate: float, count: int, seed: int
) -> NDArray[np.int64]:
    return poisson(rate, count, seed) if process == "poisson" else constant(rate, count)
