import math

import numpy as np
import pytest

from harness.stats.runs import Either, Shift, exponential, holm, holm_levels, middle
from harness.stats.student import t_cdf, t_quantile


# Two-sided 95% and 99% points as printed in any table of Student's t.
@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [(0.975, 1, 12.706), (0.975, 2, 4.303), (0.975, 4, 2.776), (0.995, 4, 4.604), (0.975, 9, 2.262),
     (0.95, 30, 1.697), (0.975, 1e5, 1.95999)],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(probability, freedom, value):
    assert t_quantile(probability, freedom) == pytest.approx(value, abs=6e-4)
    assert t_quantile(1 - probability, freedom) == pytest.approx(-value, abs=6e-4)
    assert t_cdf(t_quantile(probability, freedom), freedom) == pytest.approx(probability, abs=1e-9)


def test_two_degrees_of_freedom_have_a_closed_form():
    for t in (-8.0, -1.0, 0.0, 0.3, 20.0):
        assert t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-13)


@pytest.mark.parametrize("t", [1e100, 1e200, math.inf])
def test_beyond_any_number_lies_nothing(t):
    assert (t_cdf(t, 3.5), t_cdf(-t, 3.5)) == (1, 0)


@pytest.mark.parametrize("freedom", [3.5, 4, 250])
def test_half_lies_below_the_middle(freedom):
    assert t_cdf(0.0, freedom) == 0.5


def test_an_interval_by_hand():
    made = Shift.of_mean(np.array([1.0, 2.0, 3.0])).interval()
    reach = 4.30265 / math.sqrt(3)
    assert (made.low, made.estimate, made.high) == pytest.approx((2 - reach, 2, 2 + reach), abs=1e-4)
    low, middle, high = (math.log(x) for x in (1.0, 10.0, 100.0))
    logs = Shift.of_mean(np.log([1.0, 10.0, 100.0])).interval()
    assert exponential(logs).estimate == pytest.approx(10)
    assert (low + high) / 2 == pytest.approx(middle)


def test_pairing_takes_out_what_both_runs_had_in_common():
    work = np.array([10.0, 30.0, 20.0, 50.0])
    one, two = work + np.array([1.0, 1.1, 0.9, 1.0]), work
    assert Shift.paired(one, two).error < 0.1 < 5 < Shift.welch(one, two).error


def test_welch_with_equal_spread_and_size_is_the_pooled_test():
    shift = Shift.welch(np.array([1.0, 2.0, 3.0]), np.array([11.0, 12.0, 13.0]))
    assert shift.estimate == -10
    assert shift.freedom == pytest.approx(4)
    assert shift.error == pytest.approx(math.sqrt(2 / 3))


def test_a_p_value_is_one_inside_the_floor_and_half_a_percent_at_the_half_percent_point():
    shift = Shift(0.03, 0.001, 4)
    assert shift.p_beyond(-0.05, 0.05) == 1
    assert shift.p_beyond(-0.03, 0.03) == 1
    edge = 0.03 - t_quantile(0.995, 4) * 0.001
    assert shift.p_beyond(-edge, edge) == pytest.approx(0.01)
    assert Shift(-0.03, 0.001, 4).p_beyond(-edge, edge) == pytest.approx(0.01)


def test_without_any_spread_only_the_floor_decides():
    same = Shift.paired(np.full(3, 1.5), np.full(3, 1.5))
    assert same.p_beyond(-0.02, 0.02) == 1
    apart = Shift.welch(np.full(3, 2.0), np.full(5, 1.0))
    assert (apart.p_beyond(-0.02, 0.02), apart.freedom) == (0, 2)


def test_what_is_detectable_grows_with_the_noise_and_the_power():
    quiet, loud = Shift(0, 0.01, 4), Shift(0, 0.03, 4)
    assert loud.detectable() == pytest.approx(3 * quiet.detectable())
    assert quiet.detectable(power=0.9) > quiet.detectable(power=0.8) > quiet.interval().high


def test_the_middle_is_geometric_unless_a_value_is_not_above_zero():
    assert middle(np.array([1.0, 10.0, 100.0])) == pytest.approx(10)
    assert middle(np.array([0.0, 1.0, 5.0])) == 2
    assert middle(np.array([-1.0, 1.0])) == 0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 30, 99])
def test_the_finite_sum_of_whole_degrees_meets_the_fraction(freedom):
    """A degree of freedom beside a whole one goes another way."""
    for t in (-9.0, -2.5, -0.1, 0.7, 4.0):
        beside = (t_cdf(t, freedom - 1e-7) + t_cdf(t, freedom + 1e-7)) / 2
        assert t_cdf(t, freedom) == pytest.approx(beside, rel=1e-6)


def test_outside_is_rejected_where_the_whole_interval_lies_inside():
    shift = Shift(0.01, 0.009, 4)
    for alpha in (0.001, 0.01, 0.05, 0.2):
        interval = shift.interval(1 - alpha)
        assert (shift.p_outside(-0.05, 0.05) < alpha) == (interval.low > -0.05 and interval.high < 0.05)
    assert Shift(0.06, 0.001, 4).p_outside(-0.05, 0.05) == 1.0
    assert Shift(0.0, 0.0, 4).p_outside(-0.05, 0.05) == 0.0


def test_the_levels_of_holm_give_its_words():
    values = [0.004, 0.03, 0.012, 0.6]
    levels = holm_levels(values, 0.05)
    assert levels == pytest.approx([0.05 / 4, 0.05 / 2, 0.05 / 3, 0.05 / 2])
    assert [p < level for p, level in zip(values, levels, strict=True)] == [p < 0.05 for p in holm(values)]
    assert holm_levels([], 0.05) == []


def test_either_way_is_said_only_what_holds_in_both():
    near, far = Shift(0.04, 0.001, 4), Shift(0.08, 0.004, 6)
    both = Either((near, far))
    assert (both.estimate, both.error, both.freedom) == (0.04, 0.004, 4)
    assert both.p_beyond(-0.02, 0.02) == max(one.p_beyond(-0.02, 0.02) for one in (near, far))
    assert both.p_outside(-0.05, 0.05) == far.p_outside(-0.05, 0.05) == 1
    assert (both.interval().low, both.interval().high) == (near.interval().low, far.interval().high)
    assert both.detectable() == far.detectable()


def test_beyond_opposite_ends_is_no_difference():
    apart = Either((Shift(0.1, 0.001, 4), Shift(-0.1, 0.001, 4)))
    assert apart.p_beyond(-0.02, 0.02) == 1
    assert apart.p_outside(-0.05, 0.05) == 1


def test_beyond_one_end_is_as_sure_as_the_less_sure_way():
    sure, less = Shift(-0.1, 0.001, 4), Shift(-0.03, 0.004, 4)
    both = Either((sure, less))
    assert both.p_beyond(-0.02, 0.02) == less.p_beyond(-0.02, 0.02) > sure.p_beyond(-0.02, 0.02)
    assert Either((less, sure)).p_beyond(-0.02, 0.02) == both.p_beyond(-0.02, 0.02)


@pytest.mark.parametrize("estimate", [-0.1, 0.1])
def test_a_way_without_a_difference_leaves_none(estimate):
    assert Either((Shift(estimate, 0.001, 4), Shift(0.0, 0.001, 4))).p_beyond(0.0, 0.0) == 1


def test_a_shift_of_fewer_values_has_a_larger_error_and_less_freedom():
    found = Shift(0.05, 0.01, 5).of_fewer(0.5)
    assert (found.estimate, found.error, found.freedom) == (0.05, pytest.approx(0.01 * 2**0.5), 2)
    assert Shift(0.05, 0.01, 5).of_fewer(0.1).freedom == 1
