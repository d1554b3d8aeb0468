"""Levels of series by hand and by simulation: how often a change is seen that is none, and one that is."""

import itertools

import numpy as np
import pytest

from harness.stats import steps
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


def test_equal_values_that_were_rounded_are_as_sure_as_what_was_rounded():
    """Six equal values are two levels at once; rounded ones could be a tenth of their step apart."""
    assert bounds([8.0] * 3 + [7.0] * 3) == [(0, 3), (3, 6)]
    assert bounds([8.0] * 3 + [7.0] * 3, rounded_to=1.0) == [(0, 6)]
    assert bounds([8.0] * 12 + [7.0] * 3, rounded_to=1.0) == [(0, 12), (12, 15)]
    assert bounds([8.0] * 3 + [5.0] * 3, rounded_to=1.0) == [(0, 3), (3, 6)]


def test_a_step_that_is_known_halves_the_false_levels_of_rounded_values():
    """Values around the middle between two whole numbers, as of a server that carries 11.4 requests."""
    random = np.random.default_rng(0)
    series = np.round(random.normal(11.4, 0.3, (300, 12)))
    split = [[len(bounds(values, rounded_to=step)) > 1 for values in series] for step in (0.0, 1.0)]
    unaware, aware = map(np.mean, split)
    assert 0 < 2 * aware < unaware


def test_two_odd_values_are_no_level():
    assert bounds([1.0, 1.1, 0.9, 1.0, 1.1, 0.9, 1.0, 1.0, 3.0, 3.0]) == [(0, 10)]


@pytest.mark.parametrize("end", [(1.0, 1.0, 0.06), (0.06, 1.0, 1.0), (1.0, 1.0, 0.07, 0.05)], ids=str)
def test_two_odd_values_are_no_level_with_a_third_that_is_a_bit_high(end):
    assert bounds([*np.tile([0.0, 0.03, -0.03, 0.01, -0.01], 6), *end]) == [(0, 30 + len(end))]


def test_two_odd_values_hide_no_step_of_three_deviations():
    values = np.repeat([0.0, 0.1], [40, 4]) + np.random.default_rng(3).normal(0, 0.03, 44)
    values[[10, 20]] += 1.1
    assert bounds(values) == [(0, 40), (40, 44)]


def test_an_odd_value_next_to_a_step_is_the_first_after_it():
    values = np.repeat([0.0, 0.15], [40, 4]) + np.random.default_rng(5).normal(0, 0.03, 44)
    values[40] += 1.1
    assert bounds(values) == [(0, 40), (40, 44)]


def test_odd_values_are_no_level_in_a_series_of_any_length():
    split = []
    for lengths in itertools.product([5, 20, 60, 200], [1, 2], [0, 1, 2, 3, 20]):
        noise = np.random.default_rng(3).normal(0, 0.01, sum(lengths))
        if len(bounds(np.repeat([0.0, 0.5, 0.0], lengths) + noise)) != 1:
            split.append(lengths)
    assert split == []


@pytest.mark.parametrize("odd", [0.2, 1.0, -1.0, 5.0])
@pytest.mark.parametrize("place", [10, 21, 22])
def test_an_odd_value_hides_no_step(odd, place):
    """Its square would be most of the spread; three values of a new level are enough with and without it."""
    noise = np.random.default_rng(7).normal(0, 0.01, 24)
    values = np.repeat([0.0, 0.1], [20, 4]) + noise
    assert bounds(values) == [(0, 20), (20, 24)]
    values[place] += odd
    assert bounds(values) == [(0, 20), (20, 24)]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_odd_value_hides_no_step_of_a_young_series(place):
    values = np.repeat([0.0, 0.1], [4, 3]) + np.random.default_rng(7).normal(0, 0.01, 7)
    assert bounds(values) == [(0, 4), (4, 7)]
    values[place] += 0.5
    assert bounds(values) == [(0, 4), (4, 7)]


def test_an_odd_value_moves_no_level():
    noise = np.random.default_rng(9).normal(0, 0.01, 40)
    values = np.repeat([0.0, 0.1], [20, 20]) + noise
    values[30] = 5.0
    assert [level.mean for level in levels(values)] == pytest.approx([0.0, 0.1], abs=0.01)


def test_values_of_which_many_are_odd_are_as_they_are():
    """A seventh is no exception: the mean is that of all."""
    values = np.tile([0.0, 0.01, -0.01, 0.0, 0.01, -0.01, 3.0], 6)
    (level,) = levels(values)
    assert level.mean == pytest.approx(values.mean())


def test_a_long_level_may_have_odd_values():
    noise = np.random.default_rng(6).normal(0, 0.01, 45)
    values = np.repeat([0.0, 0.5], [20, 25]) + noise
    values[[30, 36, 37]] = [0.0, 1.0, 1.0]
    assert bounds(values) == [(0, 20), (20, 45)]


@pytest.mark.parametrize("lengths", [(40, 20, 60), (40, 10, 20), (40, 5, 10), (20, 20, 20)])
def test_a_level_between_two_that_are_alike_stays_as_these_grow(lengths):
    """A side of the first split holds two levels, and most of its values may lie on neither side of it."""
    noise = np.random.default_rng(11).normal(0, 0.01, sum(lengths))
    values = np.repeat([0.0, -0.3, 0.0], lengths) + noise
    first, second, third = np.cumsum(lengths)
    assert bounds(values) == [(0, first), (first, second), (second, third)]


@pytest.mark.parametrize(
    "lengths", [(3, 3, 3), (5, 5, 10), (10, 10, 8), (10, 10, 10), (30, 10, 30), (60, 20, 60)]
)
def test_a_level_is_found_where_the_one_around_it_is_as_long_on_both_sides(lengths):
    """No single split tells them apart: each of its sides holds as much of both levels as the other."""
    noise = np.random.default_rng(12).normal(0, 0.01, sum(lengths))
    values = np.repeat([0.0, -0.1, 0.0], lengths) + noise
    first, second, third = np.cumsum(lengths)
    assert bounds(values) == [(0, first), (first, second), (second, third)]


def test_up_and_down_again():
    noise = np.tile([0.0, 0.1, -0.1], 6)
    assert bounds(np.repeat([1.0, 4.0, 2.0], 6) + noise) == [(0, 6), (6, 12), (12, 18)]


def test_changes_that_are_none_are_seen_in_about_one_of_a_hundred():
    random = np.random.default_rng(1)
    seen = sum(len(levels(random.normal(0, 0.02, 30))) > 1 for _ in range(150))
    assert seen <= 3  # more than 5.2 in a hundred would be seen 95 times in a hundred


def test_a_step_of_two_and_a_half_deviations_is_seen_after_four_runs():
    random = np.random.default_rng(2)
    series = (np.concatenate([random.normal(0, 1, 20), random.normal(3, 1, 4)]) for _ in range(100))
    assert sum(len(levels(values)) > 1 for values in series) >= 80


def test_a_step_is_as_sure_as_a_t_test_of_both_sides_together(monkeypatch):
    """Two runs of three, each a spread of 2: t is the difference over 0.816, at 4 degrees of freedom.

    In a table, 4.604 is what chance exceeds once in a hundred: a difference of 3.76; 2.776 once in 20: 2.27.
    """
    low = np.array([0.0, 1.0, 2.0])
    assert bounds([*low, *(low + 3.72)]) == [(0, 6)]
    assert bounds([*low, *(low + 3.80)]) == bounds([*low, *(low - 3.80)]) == [(0, 3), (3, 6)]
    monkeypatch.setattr(steps, "ALPHA", 0.05)
    assert bounds([*low, *(low + 2.23)]) == [(0, 6)]
    assert bounds([*low, *(low + 2.31)]) == [(0, 3), (3, 6)]


def test_more_places_to_split_ask_for_more_certainty():
    """t is 5.14 at 4 degrees of freedom, and 5.598 is what chance exceeds once in 200: too little for the
    once in 300 that each of three places has to be."""
    low = np.array([0.0, 1.0, 2.0])
    assert bounds([*low, *(low + 4.2)]) == [(0, 3), (3, 6)]
    assert bounds([*low, *(low + 4.2)], least=2) == [(0, 6)]


def test_a_side_counts_by_its_length():
    """Squares of 5 and 2, 5 degrees of freedom: the error is √(7/5 · 7/12) = 0.904. Of two places each has to
    be as rare as once in 200, which is 4.773 in a table: a difference of 4.31."""
    four, three = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5])
    assert bounds([*four, *(three + 4.25)]) == [(0, 7)]
    assert bounds([*four, *(three + 4.4)]) == [(0, 4), (4, 7)]


@pytest.mark.parametrize(("before", "after", "step"), [(400, 50, 0.25), (200, 200, 0.2), (500, 500, 0.05)])
def test_a_step_in_a_long_series_is_one_and_where_it_is(before, after, step):
    """Its p is below what a float can hold, here and at the splits around it."""
    noise = np.random.default_rng(4).normal(0, 0.005, before + after)
    values = np.repeat([0.0, step], [before, after]) + noise
    assert bounds(values) == [(0, before), (before, before + after)]
