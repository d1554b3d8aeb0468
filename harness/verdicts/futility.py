"""Tells whether the repeats that are still allowed may decide a pair: what they hardly can is not worth
its time.

Giving up can only take words away, so it leaves the error rates of the looks as they are.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from harness.stats.runs import Either, Shift
from harness.stats.student import t_quantile

LEAST_CHANCE = 0.2  # of a word; below it a pair is given up


@dataclass(frozen=True, slots=True)
class Prospect:
    """Prospect of one comparison: logarithms of its limits, and the levels at which its family tests it."""

    floor: float
    same: float | None  # None: nothing can be shown to be the same
    level_apart: float
    level_same: float

    def chance(self, shift: Shift | Either, runs: int, last: int, samples: int) -> float:
        """Returns the chance of a word after `last` runs, were the estimate to stay where it is but for
        chance.

        The spread is taken one standard error smaller than it looks: that of three or four runs is easily
        too large, and a pair given up wrongly costs a word. `samples`: 1 where runs are paired, else 2.
        """
        hopeful = 1 - 1 / math.sqrt(2 * shift.freedom)
        error = hopeful * shift.error * (runs / last) ** 0.5
        strays = NormalDist(shift.estimate, max(shift.error * (1 - runs / last) ** 0.5, 1e-12))
        freedom = samples * (last - 1)
        edge = self.floor + t_quantile(1 - self.level_apart / 2, freedom) * error
        probability = strays.cdf(-edge) + 1 - strays.cdf(edge)
        if self.same is not None:
            inside = self.same - t_quantile(1 - self.level_same / 2, freedom) * error
            probability += max(strays.cdf(inside) - strays.cdf(-inside), 0.0)
        return min(probability, 1.0)
