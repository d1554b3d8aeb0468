"""Where a share crosses its target: steps, slopes, and what a clear excess says."""

import numpy as np
import pytest

from harness.stats.crossing import Count, above, places


def quantile(at, sure, probability):
    return at[np.count_nonzero(sure >= 1 - probability) - 1]


def test_nothing_known_is_an_equal_chance_of_every_place():
    at = places(1, 16)
    sure = above(at, [], 0.05)
    assert sure[0] == 1
    assert quantile(at, sure, 0.5) == pytest.approx(4, rel=0.02)
    assert (at[0], at[-1], len(at)) == (1, pytest.approx(16), 513)


def test_a_step_lies_between_the_loads_that_kept_and_failed():
    at = places(8, 32)
    sure = above(at, [Count(15, 0, 200), Count(17, 200, 200)], 0.05)
    assert 14.8 < quantile(at, sure, 0.025) < quantile(at, sure, 0.975) < 17.2


def test_counts_on_a_slope_are_read_at_the_target():
    """Log odds 14 times the logarithm of the load, 5% at 16."""
    at, counts = places(8, 32), []
    for load in (14.0, 15.0, 17.0):
        odds = np.log(0.05 / 0.95) + 14 * np.log(load / 16)
        counts.append(Count(load, 2000 / (1 + np.exp(-odds)), 2000))
    sure = above(at, counts, 0.05)
    assert quantile(at, sure, 0.5) == pytest.approx(16, rel=0.01)
    assert quantile(at, sure, 0.95) < 1.05 * quantile(at, sure, 0.05)


def test_a_share_that_does_not_grow_says_nothing_of_a_crossing_where_it_may_be_a_floor():
    """3% at each load up to 10: without a floor it had to grow, and the crossing was near."""
    at, counts = places(1, 64), [Count(load, 8, 250) for load in (2.0, 4.0, 6.0, 8.0, 10.0)]
    assert quantile(at, above(at, counts, 0.05), 0.975) < 16
    sure = above(at, counts, 0.05, (0.0, 0.2, 0.4, 0.6, 0.8))
    assert quantile(at, sure, 0.025) > 10
    assert quantile(at, sure, 0.975) > 48


def test_what_grows_above_a_floor_is_read_at_the_target():
    """3% at every load, and the rest of 5% by log odds 14 times the logarithm of the load at 16."""
    at, counts = places(8, 32), []
    for load in (11.0, 14.0, 15.0, 16.0, 17.0):
        odds = np.log(0.02 / 0.95) + 14 * np.log(load / 16)
        counts.append(Count(load, 2000 * (0.03 + 0.97 / (1 + np.exp(-odds))), 2000))
    sure = above(at, counts, 0.05, (0.0, 0.2, 0.4, 0.6, 0.8))
    assert quantile(at, sure, 0.5) == pytest.approx(16, rel=0.01)


def test_how_far_beyond_the_target_a_load_is_does_not_move_the_crossing():
    at, below = places(8, 32), Count(15, 2, 200)
    medians = [
        quantile(at, above(at, [below, Count(20, beyond, 200)], 0.05), 0.5) for beyond in (40, 120, 200)
    ]
    assert medians[0] == medians[1] == medians[2]
    assert 15 < medians[0] < 20


def test_more_trials_make_it_narrower():
    at = places(8, 32)
    widths = []
    for trials in (20, 200):
        sure = above(at, [Count(15, 0.03 * trials, trials), Count(17, 0.07 * trials, trials)], 0.05)
        widths.append(quantile(at, sure, 0.9) / quantile(at, sure, 0.1))
    assert widths[1] < widths[0]
