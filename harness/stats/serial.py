"""Says how much values that were measured one after the other hang together."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BOUND = 0.5  # standard errors above the estimated correlation that the true one may well lie
MOST = 0.99
FOLLOWED = 0.1  # of the values: as far apart as two are compared


def correlation(values: Sequence[float]) -> float:
    """Returns that of neighbours; 0 of fewer than four values, or equal ones.

    Few values make it too small by about 1/n (Kendall 1954), which is added.
    """
    count = len(values)
    middle = math.fsum(values) / count if count else 0.0
    away = [value - middle for value in values]
    spread = math.fsum(value**2 for value in away)
    if count < 4 or spread == 0:
        return 0.0
    return min(math.fsum(first * second for first, second in pairwise(away)) / spread + 1 / count, MOST)


def correlation_bound(*series: Sequence[float]) -> float:
    """Returns what the correlation may well be, from 0 to MOST: few values leave much open. That of several
    series with the same kind of noise is their mean.
    """
    mean = math.fsum(map(correlation, series)) / len(series)
    return min(max(mean + BOUND / math.sqrt(max(sum(map(len, series)), 1)), 0.0), MOST)


def correlation_steps(values: Sequence[float]) -> float:
    """Returns over how many steps a correlation at its bound falls to 1/e; 0 where there is none."""
    bound = correlation_bound(values)
    return -1 / math.log(bound) if bound else 0.0


def independent_share(*series: Sequence[float]) -> float:
    """Returns which share of as many independent values have a mean as uncertain, at the bound."""
    bound = correlation_bound(*series)
    return (1 - bound) / (1 + bound)


def lasting(noise: NDArray[np.float64]) -> float:
    """Returns how many values in a row tell as much as one that is independent, of values with mean 0.

    Correlations count up to the first lag that has none: what comes after it is chance, and would add up.
    """
    spread, total = float(noise @ noise), 0.0
    for lag in range(1, int(FOLLOWED * len(noise)) + 1):
        alike = float(noise[lag:] @ noise[:-lag])
        if alike <= 0:
            break
        total += alike / spread
    return 1 + 2 * total
