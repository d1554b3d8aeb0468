"""The height of a curve between two points: a straight line, and the ends of other shapes."""

import pytest

from harness.stats.between import between

POINTS = [(80.0, 100.0), (40.0, 300.0), (20.0, 400.0)]  # on 500 - 5x below 40 and above


def test_a_point_of_the_curve_is_its_own_height():
    for x, y in POINTS:
        assert between(POINTS, x) == pytest.approx((y, y, y))


def test_the_middle_is_a_straight_line_and_the_low_end_a_power_law():
    found = between([(80.0, 100.0), (20.0, 400.0)], 40.0)
    assert found is not None
    assert found.middle == pytest.approx(300)
    assert found.low == pytest.approx(200)  # as much less speed as more of the other: xy is 8,000


def test_without_a_neighbouring_stretch_the_high_end_is_the_higher_point():
    found = between([(80.0, 100.0), (20.0, 400.0)], 40.0)
    assert found is not None
    assert found.high == 400


def test_a_curve_that_bends_downwards_stays_below_the_lines_next_to_it():
    bent = [(80.0, 100.0), (60.0, 280.0), (30.0, 400.0), (20.0, 420.0)]
    found = between(bent, 50.0)
    assert found is not None
    # 280 + 9 * 10 from the left, 400 - 2 * 20 from the right
    assert found.high == pytest.approx(360)
    assert found.middle == pytest.approx(320)
    assert between(bent[:3], 50.0).high == pytest.approx(370)
    assert between(bent[1:], 50.0).high == pytest.approx(360)


def test_a_stretch_that_falls_has_the_line_as_its_low_end():
    """A repeat may have less of both at a load: the power law through 10 and 8 runs above the line."""
    assert between([(10.0, 10.0), (5.0, 8.0)], 7.0) == pytest.approx((8.8, 8.8, 10.0))


def test_the_high_end_of_a_straight_curve_is_the_line_itself():
    straight = [(x, 500 - 5 * x) for x in (90.0, 70.0, 40.0, 10.0)]
    found = between(straight, 50.0)
    assert found is not None
    assert found.high == pytest.approx(found.middle) == pytest.approx(250)


def test_a_curve_that_bends_upwards_has_the_line_as_its_high_end():
    found = between([(80.0, 100.0), (60.0, 110.0), (30.0, 300.0), (20.0, 600.0)], 50.0)
    assert found is not None
    assert found.high == found.middle > found.low


@pytest.mark.parametrize("x", [19.9, 80.1])
def test_outside_there_is_no_height(x):
    assert between(POINTS, x) is None


def test_two_points_above_each_other_have_the_height_of_the_better():
    above = [(50.0, 100.0), (50.0, 300.0), (20.0, 400.0)]
    assert between(above, 50.0) == (100, 300, 300)
    assert between(above, 40.0).high == 400, "no line goes through both"
    assert between([(50.0, 100.0)], 50.0) is None
