"""Cluster bootstrap: intervals of statistics of pooled requests, when runs differ from each other.

Runs are drawn with replacement and taken whole. Drawing requests inside them as well would count their spread
twice (Davison and Hinkley 1997, 3.8), and percentiles of the draws are too narrow for few runs. So the spread
of the draws, corrected for few runs, is used with Student's t on logarithms. tests/bench/coverage.py measures
both claims, and the coverage of this method.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from harness.stats.runs import Floats, Shift

RESAMPLES = 10_000
_SEED = 0

Draws = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pool:
    """Values of several runs, ready for quantiles under any weights of the runs.

    `values` is ascending. `ranks` has the positions of the values of each run in it.
    """

    values: Floats
    ranks: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, runs: Sequence[Floats]) -> Self:
        """Pools values, which may be infinite. No run may be empty."""
        values = np.concatenate(runs)
        order = np.argsort(values, kind="stable")
        owner = np.repeat(np.arange(len(runs)), [len(run) for run in runs])[order]
        return cls(values[order], tuple(np.flatnonzero(owner == index) for index in range(len(runs))))

    def quantiles(self, share: float, draws: Draws) -> Floats:
        """Smallest value in each draw that at least `share` of its requests do not exceed."""
        wanted = share * (draws * np.array([len(ranks) for ranks in self.ranks])).sum(axis=1) - 1e-9
        low = np.zeros(len(draws), np.int64)
        high = np.full(len(draws), len(self.values) - 1, np.int64)
        while (low < high).any():
            middle = (low + high) // 2
            reached = np.zeros(len(draws))
            for column, ranks in enumerate(self.ranks):
                reached += draws[:, column] * np.searchsorted(ranks, middle, side="right")
            enough = reached >= wanted
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        return self.values[low]


@lru_cache(maxsize=64)
def draws_of(runs: int, resamples: int = RESAMPLES) -> tuple[Draws, Floats]:
    """How often each run is in each distinct draw, and the share of all draws that are equal to it."""
    counts = np.random.Generator(np.random.PCG64(_SEED)).multinomial(runs, np.full(runs, 1 / runs), resamples)
    distinct, repeated = np.unique(counts, axis=0, return_counts=True)
    return distinct, repeated / resamples


def log_quantile(pool: Pool, share: float, resamples: int = RESAMPLES) -> Shift | None:
    """The logarithm of a quantile; None if it is infinite or not above 0 in a draw. Needs two runs."""
    return _log_shift(_all_and_draws(pool, share, resamples), len(pool.ranks), resamples)


def log_quantile_ratio(a: Pool, b: Pool, share: float, *, paired: bool) -> Shift | None:
    """The logarithm of the ratio a over b. Paired, both take the same runs in every draw."""
    if paired:
        of_a, of_b = (_all_and_draws(pool, share) for pool in (a, b))
        with np.errstate(invalid="ignore"):
            return _log_shift(of_a / of_b, len(a.ranks))
    first, second = (log_quantile(pool, share) for pool in (a, b))
    return None if first is None or second is None else Shift.between(first, second)


def _all_and_draws(pool: Pool, share: float, resamples: int = RESAMPLES) -> Floats:
    """The quantile of all runs, then those of the draws."""
    runs = len(pool.ranks)
    draws, _ = draws_of(runs, resamples)
    return pool.quantiles(share, np.vstack([np.ones(runs, np.int64), draws]))


def _log_shift(logs: Floats, runs: int, resamples: int = RESAMPLES) -> Shift | None:
    if not np.isfinite(logs).all() or (logs <= 0).any():
        return None
    estimate, *drawn = np.log(logs)
    _, shares = draws_of(runs, resamples)
    mean = float(np.average(drawn, weights=shares))
    variance = float(np.average((np.asarray(drawn) - mean) ** 2, weights=shares))
    return Shift(float(estimate), (variance * runs / (runs - 1)) ** 0.5, runs - 1)
