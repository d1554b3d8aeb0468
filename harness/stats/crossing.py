"""Finds where a share grows beyond its target as a load does, from counts at several loads.

The share is taken as a logistic function of the logarithm of the load. Its place and slope are not known: all
places of a range and all slopes of SLOPES from USUAL on are equally likely before the first count, lower ones
by the square of their part of it. Bayes' rule weighs them by the counts (the adaptive staircases of
psychophysics do the same: Watson and Pelli, Perception & Psychophysics 33, 1983). A part of the share may be
the same at every load, a floor: it is one more unknown.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOPES = np.geomspace(2, 300, 15)  # of the log odds, per unit of the logarithm of the load
USUAL = 6.0  # slopes from which on all are equally likely: a share that grows more slowly is less usual
STEPS = 128  # places to a doubling of the load
TINY = 1e-12  # no share is surely so small, or so near to all
CLEAR = 3.0  # times the target: a share above it only shows that the crossing is below


class Count(NamedTuple):
    load: float
    beyond: float
    independent: float  # trials, of which neighbours share nothing


def places(low: float, high: float) -> Floats:
    """Ascending loads at which the crossing may be."""
    return np.geomspace(low, high, max(math.ceil(STEPS * math.log2(high / low)), 1) + 1)


def above(
    at: Floats, counts: Iterable[Count], target: float, floors_of_target: Sequence[float] = (0.0,)
) -> Floats:
    """Probability that the crossing is at each of `at` or above it.

    `floors_of_target`: parts of the target that may be beyond it at every load, equally likely.
    """
    floors = target * np.array(floors_of_target)
    own = np.log((target - floors) / (1 - target))  # log odds, at the crossing, of what is not of the floor
    logs = np.log(at)[:, None, None]
    likely = np.zeros((len(at), len(SLOPES), len(floors)))
    cap = min(CLEAR * target, 0.5)
    for count in counts:
        odds = own + SLOPES[:, None] * (math.log(count.load) - logs)
        expected = np.clip(floors + (1 - floors) * (1 + np.tanh(odds / 2)) / 2, TINY, 1 - TINY)
        measured = count.beyond / count.independent
        share = min(measured, cap)
        log_likelihood = share * np.log(expected) + (1 - share) * np.log1p(-expected)
        if measured >= cap:
            most = share * math.log(share) + (1 - share) * math.log1p(-share)
            log_likelihood = np.where(expected >= cap, most, log_likelihood)
        likely += count.independent * log_likelihood
    before = np.minimum(SLOPES / USUAL, 1.0)[:, None] ** 2
    weights: Floats = (np.exp(likely - likely.max()) * before).sum(axis=(1, 2))
    above_each: Floats = np.cumsum(weights[::-1])[::-1]
    above_each /= above_each[0]
    return above_each
