"""The bootstrap against plain numpy on small samples. Its coverage is measured in tests/bench/coverage.py."""

import numpy as np
import pytest

from harness.stats.bootstrap import RESAMPLES, Pool, draws_of, log_quantile, log_quantile_ratio
from harness.stats.runs import Shift

RANDOM = np.random.default_rng(0)
RUNS = [
    np.exp(RANDOM.normal(place, 0.3, size)) for place, size in ((3.0, 40), (3.1, 55), (2.9, 70), (3.0, 64))
]


def plain_quantile(runs, counts, share):
    values = np.sort(np.concatenate([np.repeat(run, count) for run, count in zip(runs, counts, strict=True)]))
    return values[int(np.ceil(share * len(values) - 1e-9)) - 1]


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_of_draws_are_those_of_repeated_values(share):
    draws, _ = draws_of(len(RUNS), 200)
    found = Pool.of(RUNS).quantiles(share, draws)
    assert found == pytest.approx([plain_quantile(RUNS, draw, share) for draw in draws])


def test_ties_and_infinite_values_keep_their_place():
    pool = Pool.of([np.array([1.0, 1.0, 1.0]), np.array([1.0, np.inf])])
    draws = np.array([[1, 1], [2, 0], [0, 2]])
    assert pool.quantiles(0.5, draws).tolist() == [1.0, 1.0, 1.0]
    assert pool.quantiles(0.9, draws).tolist() == [np.inf, 1.0, np.inf]
    assert log_quantile(pool, 0.9) is None


def test_draws_are_seeded_and_ten_thousand():
    distinct, shares = draws_of(5)
    assert RESAMPLES == 10_000
    assert (distinct.sum(axis=1) == 5).all()
    assert shares.sum() == pytest.approx(1)
    assert len(distinct) == 126  # ways to draw five of five
    again, _ = draws_of.__wrapped__(5)
    assert (again == distinct).all()


def test_of_equal_runs_the_mean_s_error_comes_out():
    """A quantile that is one number per run: the bootstrap's error is the textbook's."""
    values = np.array([1.0, 1.2, 0.9, 1.1, 1.3, 0.8])
    single = log_quantile(Pool.of([np.array([value]) for value in values]), 0.5)
    assert single is not None
    assert single.freedom == 5
    assert single.estimate == pytest.approx(np.log(1.0))
    # Of the means of draws the spread is known; medians of single values scatter more.
    assert single.error > Shift.of_mean(np.log(values)).error * 0.8


def test_the_spread_of_a_quantile_is_that_of_its_draws():
    values = [np.array([float(place)]) for place in range(1, 11)]
    one = log_quantile(Pool.of(values), 0.5, 500)
    assert one == log_quantile(Pool.of(values), 0.5, 500)
    assert one.error != log_quantile(Pool.of(values), 0.5, 600).error
    draws, shares = draws_of(10, 500)
    logs = np.log(Pool.of(values).quantiles(0.5, draws))
    spread = np.average((logs - np.average(logs, weights=shares)) ** 2, weights=shares)
    assert one.error == pytest.approx((spread * 10 / 9) ** 0.5)


def test_pairing_follows_the_runs():
    """Twice as slow in every run, whatever else the runs did: the paired ratio has no spread."""
    slower = [2 * run for run in RUNS]
    paired = log_quantile_ratio(Pool.of(slower), Pool.of(RUNS), 0.9, paired=True)
    apart = log_quantile_ratio(Pool.of(slower), Pool.of(RUNS), 0.9, paired=False)
    assert paired is not None
    assert apart is not None
    assert (paired.estimate, paired.error) == pytest.approx((np.log(2), 0), abs=1e-12)
    assert apart.error > 0.01
    assert 3 < apart.freedom <= 6
    assert paired == log_quantile_ratio(Pool.of(slower), Pool.of(RUNS), 0.9, paired=True)


@pytest.mark.parametrize("paired", [True, False])
def test_a_ratio_with_an_unknown_side_is_unknown(paired):
    pool, unknown = Pool.of(RUNS), Pool.of([np.full(3, np.inf)] * len(RUNS))
    assert log_quantile_ratio(pool, unknown, 0.9, paired=paired) is None
    assert log_quantile_ratio(unknown, pool, 0.9, paired=paired) is None
