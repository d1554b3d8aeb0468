"""Whether more repeats may decide a pair, against what simulated repeats do."""

import math

import numpy as np
import pytest

from harness.stats.runs import Shift
from harness.stats.student import t_quantile
from harness.verdicts.futility import Prospect

EDGES = Prospect(math.log1p(0.02), math.log1p(0.05), 0.01, 0.01)


def test_large_differences_and_calm_equals_are_likely_and_wild_equals_are_not():
    assert EDGES.chance(Shift(0.3, 0.05, 3), 4, 10, 1) > 0.9
    assert EDGES.chance(Shift(0.0, 0.01, 3), 4, 10, 1) > 0.9
    assert EDGES.chance(Shift(0.0, 0.05, 3), 4, 10, 1) < 0.1
    no_same = Prospect(EDGES.floor, None, 0.01, 0.01)
    assert no_same.chance(Shift(0.0, 0.01, 3), 4, 10, 1) < 0.1


def test_without_spread_it_is_certain():
    assert EDGES.chance(Shift(0.0, 0.0, 2), 3, 10, 1) == pytest.approx(1)


@pytest.mark.parametrize(("truth", "spread"), [(0.06, 0.03), (0.0, 0.03), (0.03, 0.05)])
def test_it_is_the_share_of_simulated_experiments_with_that_spread(truth, spread):
    """Of many freedoms the spread is known, and the rest is the luck of the runs to come."""
    random = np.random.default_rng(1)
    runs, last, freedom = 40, 100, 39
    shift = Shift(truth, spread / runs**0.5, freedom)
    hopeful = spread * (1 - 1 / math.sqrt(2 * freedom))
    more = random.normal(truth, spread, (4000, last - runs)).sum(axis=1)
    means = (truth * runs + more) / last
    reach = t_quantile(1 - 0.01 / 2, last - 1) * hopeful / last**0.5
    found = (np.abs(means) > EDGES.floor + reach) | (np.abs(means) < EDGES.same - reach)
    assert EDGES.chance(shift, runs, last, 1) == pytest.approx(found.mean(), abs=0.05)
