"""The exact bound against its own definition, and the counts that are quoted in the docs."""

from fractions import Fraction
from math import comb

import pytest

from harness.stats.binomial import more_often, share_above, trials_needed


def at_least(successes, trials, share):
    return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(successes, trials + 1))


@pytest.mark.parametrize(
    ("successes", "trials"), [(1, 1), (5, 5), (3, 10), (58, 59), (59, 59), (290, 300), (1, 40)]
)
def test_were_the_bound_the_truth_so_many_successes_would_be_rare(successes, trials):
    bound = share_above(successes, trials)
    assert at_least(successes, trials, bound) == pytest.approx(0.05, rel=1e-6)
    assert bound < successes / trials


def test_no_success_bounds_nothing():
    assert share_above(0, 20) == share_above(0, 0) == 0


@pytest.mark.parametrize(
    ("share", "failures", "needed"), [(0.5, 0, 5), (0.95, 0, 59), (0.99, 0, 299), (0.95, 2, 124)]
)
def test_the_fewest_trials_are_enough_and_one_less_is_not(share, failures, needed):
    assert trials_needed(share, failures) == needed
    assert share_above(needed - failures, needed) >= share
    assert share_above(needed - 1 - failures, needed - 1) < share


def as_many_by_chance(count, trials, other, other_trials):
    """The tail of the hypergeometric distribution in whole numbers, over tables of any size."""
    both = count + other
    ways = sum(
        comb(trials, hits) * comb(other_trials, both - hits)
        for hits in range(count, trials + 1)
        if 0 <= both - hits <= other_trials
    )
    return Fraction(ways, comb(trials + other_trials, both))


@pytest.mark.parametrize(
    ("count", "trials", "other", "other_trials"),
    [
        *((3, 10, 1, 10), (10, 10, 0, 10), (1, 10, 3, 10), (0, 5, 4, 20), (2, 3, 5, 7), (5, 5, 5, 5)),
        *((7, 9, 1, 4), (1, 2, 0, 1), (1, 1, 0, 9), (30, 400, 12, 600), (40, 4_000, 25, 5_999)),
    ],
)
def test_the_chance_of_a_table_is_that_of_the_hypergeometric_tail(count, trials, other, other_trials):
    exact = as_many_by_chance(count, trials, other, other_trials)
    assert more_often(count, trials, other, other_trials) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("count", "trials", "other", "other_trials"),
    [(12, 6_000, 3, 6_000), (3, 6_000, 12, 6_000), (0, 8_000, 9, 4_000), (11, 12, 900, 11_000)],
)
def test_many_trials_are_added_in_logarithms_to_the_same_chance(count, trials, other, other_trials):
    exact = as_many_by_chance(count, trials, other, other_trials)
    assert more_often(count, trials, other, other_trials) == pytest.approx(float(exact), rel=1e-7)
    assert more_often(count, trials, other, other_trials) <= 1


def test_a_side_without_trials_proves_nothing():
    assert more_often(0, 0, 3, 10) == more_often(3, 10, 0, 0) == 1
