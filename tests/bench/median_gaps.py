"""How often a sample of latencies has a gap that its median lies in or next to.

    python -m tests.bench.median_gaps

Exits with 1 where more than 2% of smooth samples have one, or fewer than 90% of those of two equal groups.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import latency_stats
from harness.model import known

SAMPLES = (32, 100, 500)
_MOST, _LEAST = 0.02, 0.9
_MARGIN = 0.01  # of the simulation

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _two_groups(low_share: float) -> Draw:
    """Latencies around 1 and around 2, with a standard deviation of 5%."""
    return lambda random, size: np.where(random.random(size) < low_share, 1, 2) * random.normal(1, 0.05, size)


SMOOTH: dict[str, Draw] = {
    "lognormal, sigma 1": lambda random, size: random.lognormal(0, 1, size),
    "exponential": lambda random, size: random.exponential(1, size),
    "uniform": lambda random, size: random.random(size),
    "Pareto, exponent 1.5": lambda random, size: random.pareto(1.5, size) + 1,
}
GROUPS: dict[str, Draw] = {"two groups, 50%": _two_groups(0.5)}
FAR: dict[str, Draw] = {"two groups, 20%": _two_groups(0.2)}


def share(draw: Draw, samples: int, times: int) -> float:
    random = np.random.default_rng(samples)
    found = (latency_stats(draw(random, samples))[0] for _ in range(times))
    return sum(known(stats.p50_gap) is not None for stats in found) / times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=4000, help="simulated cells per case")
    times, bad = parser.parse_args().times, False
    print(f"{'latencies':>20} {'samples':>8}  with a gap")
    for name, draw in (SMOOTH | GROUPS | FAR).items():
        for samples in SAMPLES:
            found = share(draw, samples, times)
            print(f"{name:>20} {samples:>8}  {found:>10.1%}", flush=True)
            bad |= name in SMOOTH and found > _MOST + _MARGIN
            bad |= name in GROUPS and found < _LEAST - _MARGIN
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
