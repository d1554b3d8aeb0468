"""Finds where a share grows beyond its target as a load does, from counts at several loads.

The share is taken as a logistic function of the logarithm of the load. Its place and slope are not known: all
places of a range and all slopes of SLOPES from USUAL on are equally likely before the first count, lower ones
by the square of their part of it. Bayes' rule weighs them by the counts (the adaptive staircases of
psychophysics do the same: Watson and Pelli, Perception & Psychophysics 33, 1983).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLOPES = np.geomspace(2, 300, 15)  # of the log odds, per unit of the logarithm of the load
USUAL = 6.0  # slopes from which on all are equally likely: a share that grows more slowly is less usual
STEPS = 128  # places to a doubling of the load
CLEAR = 3.0  # times the target: a share above it only shows that the crossing is below


class Count(NamedTuple):
    load: float
    beyond: float
    independent: float  # trials, of which neighbours share nothing


def places(low: float, high: float) -> Floats:
    """Ascending loads at which the crossing may be."""
    return np.geomspace(low, high, max(math.ceil(STEPS * math.log2(high / low)), 1) + 1)


def above(at: Floats, counts: Iterable[Count], target: float) -> Floats:
    """Probability that the crossing is at each of `at` or above it."""
    likely = np.zeros((len(at), len(SLOPES)))
    logs, own = np.log(at)[:, None], math.log(target / (1 - target))
    cap = min(CLEAR * target, 0.5)
    for count in counts:
        odds = own + SLOPES * (math.log(count.load) - logs)
        hit, missed = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
        measured = count.beyond / count.independent
        share = min(measured, cap)
        log_likelihood = share * hit + (1 - share) * missed
        if measured >= cap:
            most = share * math.log(share) + (1 - share) * math.log1p(-share)
            log_likelihood = np.where(hit >= math.log(cap), most, log_likelihood)
        likely += count.independent * log_likelihood
    before = np.minimum(SLOPES / USUAL, 1.0) ** 2
    weights: Floats = np.exp(likely - likely.max()) @ before
    above_each: Floats = np.cumsum(weights[::-1])[::-1]
    above_each /= above_each[0]
    return above_each
