"""The exact bound against its own definition, and the counts that are quoted in the docs."""

from math import comb

import pytest

from harness.stats.binomial import share_above, trials_needed


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
