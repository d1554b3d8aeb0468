"""How far neighbours of a series hang together, of series whose sums can be done on paper."""

import math

import numpy as np
import pytest

from harness.stats.serial import correlation, correlation_bound, correlation_steps, independent_share, lasting

RISING = [1.0, 2.0, 3.0, 4.0]  # 1.5, 0.5, 0.5, 1.5 away: 1.25 of neighbours over a spread of 5, and 1/4
SWINGING = [6.0, 4.0, 6.0, 4.0]  # 1 away, each against the next: -3 over 4, and 1/4


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (RISING, 0.25 + 0.25),
        (SWINGING, -0.75 + 0.25),
        ([1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0], 1 / 8 + 1 / 8),  # four pairs alike, three not, over eight
        ([5.0] * 6, 0.0),
        ([1.0, 2.0, 3.0], 0.0),
        ([], 0.0),
    ],
)
def test_neighbours_hang_together_as_far_as_they_are_on_one_side(values, expected):
    assert correlation(values) == pytest.approx(expected)


def test_a_level_and_a_unit_change_nothing():
    assert correlation([1000 + 7 * value for value in RISING]) == pytest.approx(0.5)


def test_a_long_slope_hangs_together_as_much_as_anything_may():
    slope = [float(value) for value in range(400)]
    assert correlation(slope) == correlation_bound(slope) == 0.99


def test_the_bound_is_half_a_standard_error_above_and_never_below_zero():
    assert correlation_bound(RISING) == pytest.approx(0.5 + 0.5 / 2)
    assert correlation_bound(SWINGING) == 0
    assert correlation_bound([5.0] * 25) == pytest.approx(0.5 / 5)
    assert correlation_bound([]) == 0.5


def test_series_of_one_kind_of_noise_say_more_together():
    assert correlation_bound(RISING, RISING) == pytest.approx(0.5 + 0.5 / math.sqrt(8))
    assert correlation_bound(RISING, SWINGING) == pytest.approx(0.5 / math.sqrt(8))
    assert independent_share(RISING, SWINGING) == pytest.approx((1 - 0.176777) / (1 + 0.176777), rel=1e-5)


def test_it_fades_over_as_many_steps_as_its_bound_takes_to_fall_to_a_third():
    steps = correlation_steps(RISING)
    assert 0.75**steps == pytest.approx(1 / math.e)
    assert correlation_steps(SWINGING) == 0


def test_a_course_hangs_together_for_as_many_steps_as_it_is_made_of():
    drawn = np.random.default_rng(0).normal(0, 1, 400)
    assert correlation_steps(drawn.tolist()) < 0.5
    course = np.convolve(drawn, 0.8 ** np.arange(60))[:400]
    assert correlation_steps(course.tolist()) == pytest.approx(-1 / np.log(0.8), rel=0.4)


def test_values_that_hang_together_count_for_fewer():
    assert independent_share(RISING) == pytest.approx(1 / 7)  # 0.25 / 1.75
    assert independent_share(SWINGING) == 1
    assert independent_share([float(value) for value in range(400)]) == pytest.approx(0.01 / 1.99)


def test_few_values_that_seem_independent_may_not_be():
    """The correlation of n independent values is uncertain by 1/√n, so their share comes to 1 slowly."""
    drawn = np.random.default_rng(0)

    def share(count):
        return np.mean([independent_share(drawn.normal(0, 1, count).tolist()) for _ in range(500)])

    assert 0.6 < share(10) < 0.75 < share(40) < 0.9 < share(1000) < 1


@pytest.mark.parametrize(("alike", "sums"), [(2, 1), (4, 21 + 2)])
def test_values_last_as_long_as_those_that_follow_are_alike(alike, sums):
    """Of 40 values in pairs, 20 neighbours are equal and 19 opposite, and 38 of those two apart are opposite.

    In fours 30 neighbours are equal and 9 opposite; 20 and 18 of those two apart; 10 and 27 of the next.
    """
    values = np.repeat(np.resize([1.0, -1.0], 40 // alike), alike)
    assert lasting(values) == pytest.approx(1 + 2 * sums / 40)


@pytest.mark.parametrize("values", [np.resize([1.0, -1.0], 40), np.zeros(40), np.repeat([1.0, -1.0], 4)])
def test_no_value_lasts_where_the_next_is_unlike_or_too_few_are_known(values):
    assert lasting(values) == 1


def test_what_is_alike_by_chance_further_on_does_not_add_up():
    noise = np.random.default_rng(1).normal(size=2000)
    assert lasting(noise - noise.mean()) < 1.3
