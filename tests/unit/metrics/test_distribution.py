import numpy as np
import pytest

from harness.metrics.distribution import latency_stats
from harness.model import UNSET

RANDOM = np.random.default_rng(7)


def gap(values):
    stats, _ = latency_stats(np.asarray(values, float))
    return stats.p50_gap


def around(low, high, low_count, high_count):
    return [low + 0.1 * i for i in range(low_count)] + [high + 0.1 * i for i in range(high_count)]


def test_a_median_between_two_groups_has_both_ends_of_the_gap():
    assert gap(around(97, 218, 16, 16)) == (98.5, 218)
    assert gap(around(97, 218, 14, 18)) == (98.3, 218)
    assert gap(around(97, 218, 18, 14)) == (98.7, 218)


def test_a_gap_that_the_median_cannot_reach_is_none():
    assert gap(around(97, 218, 40, 60)) != UNSET
    assert gap(around(97, 218, 400, 600)) == UNSET
    assert gap(around(97, 218, 4, 28)) == UNSET


def test_a_small_step_is_none():
    assert gap(around(97, 115, 16, 16)) == UNSET


def test_few_requests_have_none():
    assert gap(around(97, 218, 15, 16)) == UNSET


def test_requests_that_never_got_there_are_no_group():
    assert gap([*around(97, 98, 16, 0), *[np.inf] * 16]) == UNSET
    assert gap([*around(97, 218, 15, 15), np.inf, np.inf]) == (98.4, 218)


@pytest.mark.parametrize("draw", [RANDOM.lognormal, RANDOM.exponential, RANDOM.random])
def test_smooth_distributions_hardly_ever_have_one(draw):
    samples = (draw(size=32) for _ in range(1000))
    assert sum(gap(sample) != UNSET for sample in samples) <= 20
