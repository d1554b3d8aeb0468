import numpy as np
import pytest

from harness.metrics.distribution import ascending, joined, latency_stats
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


@pytest.mark.parametrize("seed", range(200))
def test_the_gap_is_the_widest_between_two_samples_of_the_middle_half(seed):
    drawn = np.random.default_rng(seed)
    count = int(drawn.integers(32, 90))
    groups = drawn.choice([1.0, drawn.uniform(1, 4)], count)
    samples = np.sort(groups * drawn.uniform(1, 1.5, count).round(int(drawn.integers(0, 4))))
    middle = samples[count // 4 : count - count // 4]
    widest = int(np.argmax(np.diff(middle)))
    low, high = middle[widest], middle[widest + 1]
    near = abs(count // 4 + widest + 1 - count / 2) <= 2.576 * np.sqrt(count) / 2
    wide = 2 * (high - low) > middle[-1] - middle[0] and high >= 1.25 * low
    assert gap(drawn.permutation(samples)) == ((low, high) if near and wide else UNSET)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0, 2.0, np.inf]])
def test_values_in_order_are_not_copied(values):
    """As many gaps as a cell has tokens."""
    given = np.array(values)
    assert ascending(given) is given
    shuffled = given[::-1]
    assert ascending(shuffled).tolist() == values


def test_parts_are_joined_in_their_order():
    parts = ([3.0, 1.0], [], [2.0])
    assert joined(map(np.array, parts), 5).tolist() == [3, 1, 2]
    assert joined([], 0).tolist() == []
