"""Levels of series by hand and by simulation: how often a change is seen that is none, and one that is."""

import numpy as np

from harness.stats.steps import levels


def bounds(values, **settings):
    return [(level.start, level.stop) for level in levels(np.asarray(values, float), **settings)]


def test_a_constant_series_is_one_level():
    assert bounds([1.0] * 20) == [(0, 20)]
    assert bounds([]) == []
    assert bounds([1.0, 5.0]) == [(0, 2)]


def test_an_exact_step_is_found_where_it_is():
    made = levels(np.array([1.0] * 5 + [2.0] * 4))
    assert [(level.start, level.stop, level.mean) for level in made] == [(0, 5, 1.0), (5, 9, 2.0)]


def test_three_values_are_a_level_of_their_own():
    assert bounds([1.0] * 6 + [2.0] * 3) == [(0, 6), (6, 9)]


def test_two_odd_values_are_no_level():
    assert bounds([1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0, 3.0, 3.0]) == [(0, 10)]


def test_up_and_down_again():
    noise = np.tile([0.0, 0.1, -0.1], 6)
    assert bounds(np.repeat([1.0, 4.0, 2.0], 6) + noise) == [(0, 6), (6, 12), (12, 18)]


def test_changes_that_are_none_are_seen_in_about_one_of_a_hundred():
    random = np.random.default_rng(1)
    seen = sum(len(levels(random.normal(0, 0.02, 30))) > 1 for _ in range(300))
    assert seen <= 9


def test_a_step_of_two_and_a_half_deviations_is_seen_after_four_runs():
    random = np.random.default_rng(2)
    series = (np.concatenate([random.normal(0, 1, 20), random.normal(3, 1, 4)]) for _ in range(100))
    assert sum(len(levels(values)) > 1 for values in series) >= 80
