"""What more runs can decide: whether those that are allowed may, and how many blocks in how many starts.

Giving up a hopeless pair can only take verdicts away, so the error rates of the looks stay as they are.

Blocks and starts: Kalibera and Jones, Rigorous Benchmarking in Reasonable Time (ISMM 2013). A start costs
time of its own, and its blocks share its conditions, so more blocks narrow an interval only down to the
spread between starts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.model import Levels
from harness.stats.runs import Either, Shift
from harness.stats.student import t_quantile

MOST_BLOCKS, MOST_STARTS, LEAST_STARTS = 32, 50, 3
LEAST_CHANCE = 0.2  # of a verdict; below it a pair is given up


@dataclass(frozen=True, slots=True)
class Costs:
    """Time of one block of both engines, and of one start of both."""

    block_s: float
    start_s: float


def levels(
    blocks: Sequence[Sequence[float]], costs: Costs, room: float, alpha: float, most: int = MOST_STARTS
) -> Levels | None:
    """Spread at both levels, and the plan that decides soonest; None unless two starts have two blocks.

    `blocks` are logarithms of the ratios of blocks, by start. `room` is the distance from the estimate to the
    limit that an interval at `alpha` has to clear, and `most` the number of starts that are allowed.
    """
    starts = [np.array(start) for start in blocks if len(start) > 1]
    if len(starts) < 2:
        return None
    within = float(np.mean([start.var(ddof=1) for start in starts]))
    of_means = float(np.var([start.mean() for start in starts], ddof=1))
    between = max(of_means - within * float(np.mean([1 / len(start) for start in starts])), 0.0)
    best = min(_plans(within, between, costs, room, alpha, most), default=None)
    return Levels(
        within=within**0.5,
        between=between**0.5,
        blocks=best[2] if best else None,
        starts=best[1] if best else None,
        seconds=best[0] if best else None,
    )


def _plans(
    within: float, between: float, costs: Costs, room: float, alpha: float, most: int
) -> list[tuple[float, int, int]]:
    """Plans as (seconds, starts, blocks): for each number of blocks, the fewest starts that decide."""
    plans = []
    for blocks in range(2, MOST_BLOCKS + 1, 2):
        error = (between + within / blocks) ** 0.5
        for starts in range(LEAST_STARTS, most + 1):
            if t_quantile(1 - alpha / 2, starts - 1) * error / math.sqrt(starts) < room:
                plans.append((starts * (costs.start_s + blocks * costs.block_s), starts, blocks))
                break
    return plans


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
