"""Says whether values that were measured one after the other hang together."""

import math
from collections.abc import Sequence
from itertools import pairwise

SIGNS = 0.5  # standard errors of a correlation: below it neighbours may be independent


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
    return min(math.fsum(first * second for first, second in pairwise(away)) / spread + 1 / count, 0.99)


def lasts(values: Sequence[float]) -> float:
    """Returns over how many steps a correlation falls to 1/e; 0 where neighbours seem independent."""
    found = correlation(values)
    return -1 / math.log(found) if values and found > SIGNS / math.sqrt(len(values)) else 0.0


def worth(values: Sequence[float]) -> float:
    """Returns which share of as many independent values these are worth: their mean is as uncertain."""
    found = max(correlation(values), 0.0)
    return (1 - found) / (1 + found)
