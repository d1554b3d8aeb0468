import numpy as np
import pytest

from harness.schedule import arrivals, constant, poisson

S = 1_000_000_000


def test_constant_gaps_are_all_equal_and_do_not_drift():
    offsets = constant(3.0, 3001)
    assert offsets[0] == 0
    assert offsets[3000] == 1000 * S
    assert np.diff(offsets).max() - np.diff(offsets).min() <= 1


def test_poisson_has_the_mean_and_the_spread_of_a_poisson_process():
    gaps = np.diff(poisson(50.0, 20_001, seed=7)) / S
    assert gaps.mean() == pytest.approx(1 / 50, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(1.0, abs=0.03)


def test_poisson_counts_are_dispersed_like_poisson_counts():
    offsets = poisson(40.0, 40_000, seed=3) / S
    counts = np.bincount(offsets.astype(int))[:-1]
    # 95 % band of the dispersion index of n counts: 1 ± 1.96 sqrt(2 / n)
    assert abs(counts.var(ddof=1) / counts.mean() - 1) < 1.96 * np.sqrt(2 / len(counts))


def test_arrivals_are_ascending_and_repeat_by_seed_only():
    first = arrivals("poisson", 5.0, 100, seed=1)
    assert (np.diff(first) >= 0).all()
    assert (first == arrivals("poisson", 5.0, 100, seed=1)).all()
    assert not (first == arrivals("poisson", 5.0, 100, seed=2)).all()


def test_a_seed_means_the_same_arrivals_on_every_machine():
    assert arrivals("poisson", 10.0, 3, seed=42).tolist() == [148702582, 206484354, 402099135]
