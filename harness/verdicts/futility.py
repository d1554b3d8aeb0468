"""Estimates whether the repeats that are still allowed may decide a pair, so as to give up hopeless ones.

Giving up can only take verdicts away, so the error rates of the looks stay as they are.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from harness.stats.runs import Either, Shift
from harness.stats.student import t_quantile

LEAST_CHANCE = 0.2  # of a verdict; below it a pair is given up


@dataclass(frozen=True, slots=True)
class Prospect:
    """Logarithms of the limits of one comparison, and the levels at which its family tests it."""

    floor: float
    same: float | None  # None: nothing can be shown to be the same
    level_apart: float
    level_same: float

    def chance(self, shift: Shift | Either, runs: int, last: int, samples: int) -> float:
        """Chance of a verdict after `last` runs, if the estimate changes only by chance.

        The spread is taken one standard error smaller than it looks: that of three or four runs is easily too
        large, and giving up wrongly costs a verdict. `samples` is 1 if runs are paired, else 2.
        """
        shrinkage = 1 - 1 / math.sqrt(2 * shift.freedom)
        error = shrinkage * shift.error * (runs / last) ** 0.5
        later_estimate = NormalDist(shift.estimate, max(shift.error * (1 - runs / last) ** 0.5, 1e-12))
        freedom = samples * (last - 1)
        edge = self.floor + t_quantile(1 - self.level_apart / 2, freedom) * error
        probability = later_estimate.cdf(-edge) + 1 - later_estimate.cdf(edge)
        if self.same is not None:
            inside = self.same - t_quantile(1 - self.level_same / 2, freedom) * error
            probability += max(later_estimate.cdf(inside) - later_estimate.cdf(-inside), 0.0)
        return min(probability, 1.0)
