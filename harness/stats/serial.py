"""Says whether values that were measured one after the other hang together."""

import math
from collections.abc import Sequence
from itertools import pairwise

SIGNS = 1.0  # standard errors of a correlation, above chance: below it neighbours count as independent


def lasts(values: Sequence[float]) -> float:
    """Returns over how many steps a correlation falls to 1/e; 0 where neighbours seem independent.

    From the correlation of neighbours, which few values make too small by about 1/n (Kendall 1954).
    """
    count = len(values)
    middle = math.fsum(values) / count if count else 0.0
    away = [value - middle for value in values]
    spread = math.fsum(value**2 for value in away)
    if count < 4 or spread == 0:
        return 0.0
    neighbours = math.fsum(first * second for first, second in pairwise(away)) / spread
    correlation = min(neighbours + 1 / count, 0.99)
    return -1 / math.log(correlation) if correlation > SIGNS / math.sqrt(count) else 0.0
