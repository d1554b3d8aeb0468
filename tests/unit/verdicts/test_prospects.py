"""Whether more repeats may decide a pair, against what simulated repeats do."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from harness.stats.runs import Shift
from harness.stats.student import t_quantile
from harness.verdicts.prospects import Prospect

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


@pytest.mark.parametrize(("samples", "t"), [(1, 2.2010), (2, 2.0739)])
def test_an_estimate_at_the_edge_is_a_verdict_as_often_as_not(samples, t):
    """Three runs of twelve, and two degrees of freedom, which halve the spread.

    The error comes to 0.04 × ½ × √(3 / 12) = 0.01, that of what is still to come is 0.04 × √(9 / 12). Edges
    are as many 0.01 away as t at 97.5% with 11 degrees of freedom, or with 22 of two samples.
    """
    edge = 0.02 + 0.01 * t
    found = Prospect(0.02, None, 0.05, 0.01).chance(Shift(edge, 0.04, 2), 3, 12, samples)
    other_side = NormalDist().cdf(-2 * edge / (0.04 * 0.75**0.5))
    assert found == pytest.approx(0.5 + other_side, abs=1e-4)


def test_the_chance_of_a_difference_and_that_of_none_add_up():
    """As above, of equals: t of 11 degrees is 2.2010 at 5% and 3.1058 at 1%."""
    later = NormalDist(0, 0.04 * 0.75**0.5)
    apart = 2 * later.cdf(-0.04201)
    same = 1 - 2 * later.cdf(-(0.06 - 0.031058))
    equal = Shift(0.0, 0.04, 2)
    assert Prospect(0.02, None, 0.05, 0.01).chance(equal, 3, 12, 1) == pytest.approx(apart, abs=1e-4)
    assert Prospect(0.02, 0.06, 0.05, 0.01).chance(equal, 3, 12, 1) == pytest.approx(apart + same, abs=1e-4)
    assert Prospect(0.02, 0.03, 0.05, 0.01).chance(equal, 3, 12, 1) == pytest.approx(apart, abs=1e-4)
    assert Prospect(0.02, 0.2, 0.05, 0.01).chance(equal, 3, 12, 1) == 1.0
