"""Typical arrivals: a draw of the same process whose bursts are those of the long run."""

import numpy as np
import pytest

from harness.workload.arrivals import NS, arrivals
from harness.workload.typical import DRAWS, _waits, typical_seed


def test_waits_are_those_of_a_queue_with_one_server():
    """Services of 0.8; the second request comes during the first, the fourth finds an empty queue."""
    waits = _waits(np.array([0.0, 0.5, 1.0, 4.0]), 0.8)
    assert waits == pytest.approx([0.0, 0.3, 0.6, 0.0])


def test_the_choice_is_one_of_the_draws_and_always_the_same():
    chosen = typical_seed("poisson", 500, 7)
    assert 7 <= chosen < 7 + DRAWS
    assert typical_seed("poisson", 500, 7) == chosen
    assert typical_seed("constant", 500, 7) == 7
    assert typical_seed("poisson", 1, 7) == 7


@pytest.mark.parametrize(("process", "burstiness", "wait"), [("poisson", 1.0, 12.5), ("gamma", 0.5, 26.0)])
def test_shares_beyond_a_wait_vary_less_between_typical_draws(process, burstiness, wait):
    """At a utilisation that the choice does not look at; 5% wait so long in the long run."""

    def beyond(seed):
        waits = _waits(arrivals(process, 1.0, 2000, seed, burstiness=burstiness) / NS, 0.9)
        return float((waits > wait).mean())

    seeds = range(0, 600, DRAWS)
    plain = [beyond(seed) for seed in seeds]
    typical = [beyond(typical_seed(process, 2000, seed, burstiness)) for seed in seeds]
    assert np.std(typical) < 0.45 * np.std(plain)  # by chance alone 5 (Poisson) to 13 in 100 times
    assert abs(np.mean(typical) - np.mean(plain)) < 2.3 * np.std(plain) / len(seeds) ** 0.5
