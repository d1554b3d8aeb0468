"""Distribution function of gamma, and limits of variance over mean from chi-square."""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_TERMS = 10_000


def gamma_cdf(shape: float, values: Floats) -> Floats:
    """P(X ≤ value) at scale 1, by the series of the lower incomplete gamma function. No value may be NaN."""
    values = np.minimum(values, shape + 40 * math.sqrt(shape) + 40)  # the function is 1 above
    term, total = np.full(len(values), 1 / shape), np.full(len(values), 1 / shape)
    # The terms of the largest value shrink last, so they alone tell when the series is over.
    largest, last, whole = float(values.max(initial=0.0)), 1 / shape, 1 / shape
    step = 0
    while step < _MOST_TERMS and last > whole * 1e-12:
        step += 1
        term *= values
        term /= shape + step
        total += term
        last = last * largest / (shape + step)
        whole += last
    with np.errstate(divide="ignore"):
        log = shape * np.log(values) - values - math.lgamma(shape)
    below: Floats = np.minimum(total * np.exp(log), 1.0)
    return below


def dispersion_limits(freedom: int, z: float) -> tuple[float, float]:
    """Limits of variance over mean of independent counts, `z` standard normal deviations to either side.

    They are those of chi-square over its degrees of freedom, by Wilson and Hilferty (1931).
    """
    spread = math.sqrt(2 / (9 * freedom))
    low, high = ((1 - spread**2 + deviation * spread) ** 3 for deviation in (-z, z))
    return low, high
