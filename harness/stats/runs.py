"""Intervals and tests from one number per run, since requests of a run depend on each other.

Means over runs use Student's t, ratios their logarithms. Two samples are paired if run i of both had the same
work, else compared by Welch. An interval needs two runs.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from harness.model import Interval
from harness.stats.student import t_cdf, t_quantile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shift:
    """An estimated difference with its standard error: a mean, of paired differences or of two samples."""

    estimate: float
    error: float
    freedom: float
    least: float = 0.0  # part of the error that more values do not lessen

    @classmethod
    def of_mean(cls, values: Floats) -> Self:
        """Needs two values or more."""
        numbers, count = values.tolist(), len(values)  # for few runs, numpy takes ten times as long
        mean = math.fsum(numbers) / count
        variance = math.fsum((value - mean) ** 2 for value in numbers) / (count - 1)
        return cls(mean, (variance / count) ** 0.5, count - 1)

    @classmethod
    def paired(cls, a: Floats, b: Floats) -> Self:
        return cls.of_mean(a - b)

    @classmethod
    def welch(cls, a: Floats, b: Floats) -> Self:
        """Needs two values or more on both sides."""
        return cls.between(cls.of_mean(a), cls.of_mean(b))

    @classmethod
    def between(cls, first: Self, second: Self) -> Self:
        """The difference of independent estimates, with the degrees of freedom of Welch and Satterthwaite."""
        variance = first.error**2 + second.error**2
        spread = first.error**4 / first.freedom + second.error**4 / second.freedom
        # Without spread on both sides, the smaller sample decides.
        freedom = variance**2 / spread if spread > 0 else min(first.freedom, second.freedom)
        return cls(first.estimate - second.estimate, variance**0.5, freedom)

    def of_fewer(self, share: float) -> Self:
        """Corrects for correlation: the values tell as much as a `share` of them would if independent."""
        freedom = max((self.freedom + 1) * share - 1, 1.0)
        return replace(self, error=self.error / math.sqrt(share), freedom=freedom)

    def of_rounded(self, variance: float) -> Self:
        """Has at least the error of rounded values: equal ones show none of their spread.

        `variance` is of the rounding error of the estimate.
        """
        least = math.sqrt(variance)
        return replace(self, error=max(self.error, least), least=least)

    def interval(self, confidence: float = 0.95) -> Interval:
        reach = t_quantile((1 + confidence) / 2, self.freedom) * self.error
        return Interval(self.estimate - reach, self.estimate, self.estimate + reach)

    def p_beyond(self, below: float, above: float) -> float:
        """p of the hypothesis that the true value is within [below, above], which includes 0.

        It is two-sided and tests the nearer end. For an estimate at or inside an end it is 1.
        """
        return self._p_of(max(below - self.estimate, self.estimate - above))

    def p_outside(self, below: float, above: float) -> float:
        """p of the hypothesis that the true value is outside [below, above].

        Two one-sided tests (Schuirmann 1987), doubled: it is below α if the whole interval at 1 - α is
        inside.
        """
        return self._p_of(min(above - self.estimate, self.estimate - below))

    def _p_of(self, distance: float) -> float:
        """The two-sided p of an estimate that is so far from the nearer end, on the side that is tested."""
        if distance <= 0:
            return 1.0
        return 2 * t_cdf(-distance / self.error, self.freedom) if self.error else 0.0

    def detectable(self, power: float = 0.8, alpha: float = 0.05) -> float:
        """Distance beyond the tested end at which a share `power` of repeated experiments would find it.

        Uses the unbiased estimate of the spread, since the spread of few runs is more often too small than
        too large.
        """
        half = self.freedom / 2
        bias = math.sqrt(1 / half) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))
        reach = t_quantile(1 - alpha / 2, self.freedom) + t_quantile(power, self.freedom)
        return reach * self.error / bias


@dataclass(frozen=True, slots=True)
class Either:
    """One difference estimated in several ways, of which one is right: a finding has to hold for each.

    The estimate is that of the first way. p is the largest (an intersection-union test: Berger 1982).
    """

    ways: tuple[Shift, ...]

    @property
    def estimate(self) -> float:
        return self.ways[0].estimate

    @property
    def error(self) -> float:
        return max(way.error for way in self.ways)

    @property
    def freedom(self) -> float:
        return min(way.freedom for way in self.ways)

    @property
    def least(self) -> float:
        return max(way.least for way in self.ways)

    def interval(self, confidence: float = 0.95) -> Interval:
        return hull([way.interval(confidence) for way in self.ways])

    def p_beyond(self, below: float, above: float) -> float:
        """The largest p; 1 if the ways differ in direction, since each must be beyond the same end."""
        if min(way.estimate for way in self.ways) < 0 < max(way.estimate for way in self.ways):
            return 1.0
        return max(way.p_beyond(below, above) for way in self.ways)

    def p_outside(self, below: float, above: float) -> float:
        return max(way.p_outside(below, above) for way in self.ways)

    def detectable(self, power: float = 0.8, alpha: float = 0.05) -> float:
        return max(way.detectable(power, alpha) for way in self.ways)


def hull(intervals: Sequence[Interval]) -> Interval:
    """The interval from the lowest end to the highest, with the estimate of the first."""
    low, high = min(interval.low for interval in intervals), max(interval.high for interval in intervals)
    return Interval(low, intervals[0].estimate, high)


def middle(values: Floats) -> float:
    """The geometric mean, or the mean if not all values are above 0: the estimate in their interval."""
    return float(np.exp(np.log(values).mean()) if (values > 0).all() else values.mean())


def exponential(interval: Interval) -> Interval:
    """Turns an interval of logarithms into one of values.

    No end is 0 or infinite: JSON has no infinity, and ratios are turned round.
    """
    return Interval(_exp(interval.low), _exp(interval.estimate), _exp(interval.high))


def _exp(value: float) -> float:
    try:
        return max(math.exp(value), sys.float_info.min)
    except OverflowError:
        return sys.float_info.max


def holm(p_values: list[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: those below α are findings of a family at level α."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = reached
    return adjusted


def holm_levels(p_values: list[float], alpha: float) -> list[float]:
    """Levels at which Holm's procedure tests each p; those after the first that fails share its level."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels, stopped = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        level = stopped or alpha / (len(p_values) - rank)
        stopped = stopped or (level if p_values[index] >= level else 0.0)
        levels[index] = level
    return levels
