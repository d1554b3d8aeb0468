"""How often a 95% interval holds the truth, on requests that hang together within runs that differ.

    python -m tests.bench.coverage

Latencies are lognormal; runs differ from each other by `between` and requests follow the one before them
with correlation `rho`. The truth of a percentile is that of all requests of all possible runs. Exits with 1
when the method in use leaves 93 to 97%, the margin of the simulation itself added.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from harness.stats.bootstrap import RESAMPLES, Pool, log_quantile
from harness.stats.runs import Shift

WITHIN = 0.5  # of the logarithms of latencies
LOW, HIGH = 0.93, 0.97
Runs = np.ndarray  # a row per run

# runs, requests of each, between, rho, share
CASES = [
    (runs, requests, between, rho, share)
    for runs in (3, 5, 10)
    for requests, between, rho, share in (
        (64, 0.05, 0.0, 0.5),
        (64, 0.20, 0.0, 0.5),
        (64, 0.00, 0.0, 0.5),
        (64, 0.05, 0.6, 0.9),
        (128, 0.10, 0.3, 0.9),
    )
]


def simulate(random: np.random.Generator, runs: int, requests: int, between: float, rho: float) -> Runs:
    noise = random.normal(size=(runs, requests))
    for column in range(1, requests):
        noise[:, column] = rho * noise[:, column - 1] + math.sqrt(1 - rho**2) * noise[:, column]
    return np.exp(random.normal(0, between, (runs, 1)) + WITHIN * noise)


def in_use(made: Runs, share: float, _random: np.random.Generator) -> tuple[float, float]:
    """Pooled requests, runs drawn whole, Student's t."""
    shift = log_quantile(Pool.of(list(made)), share, 2000)
    assert shift is not None
    interval = shift.interval()
    return interval.low, interval.high


def per_run(made: Runs, share: float, _random: np.random.Generator) -> tuple[float, float]:
    """One number per run, Student's t: of what one run has, not of all requests."""
    interval = Shift.of_mean(np.log(np.quantile(made, share, axis=1))).interval()
    return interval.low, interval.high


def two_stages(made: Runs, share: float, random: np.random.Generator) -> tuple[float, float]:
    """The textbook's percentiles of draws of runs and of requests inside them."""
    runs, requests = made.shape
    drawn = made[random.integers(0, runs, (400, runs))]
    inner = random.integers(0, requests, drawn.shape)
    found = np.quantile(np.take_along_axis(drawn, inner, 2).reshape(400, -1), share, axis=1)
    low, high = np.quantile(np.log(found), (0.025, 0.975))
    return float(low), float(high)


def covered(method: Callable[..., tuple[float, float]], case: tuple, times: int, seed: int) -> float:
    runs, requests, between, rho, share = case
    random = np.random.default_rng(seed)
    normal = NormalDist().inv_cdf(share)
    truth = normal * (WITHIN if method is per_run else math.hypot(WITHIN, between))
    hits = 0
    for _ in range(times):
        low, high = method(simulate(random, runs, requests, between, rho), share, random)
        hits += low <= truth <= high
    return hits / times


def ratio_covered(runs: int, how: str, times: int, seed: int) -> float:
    """Of one number per run of two engines; paired runs had the same work, which also moves them.

    `drift`: paired, on a machine whose speed walks at random from each run to the next, A B, B A, A B.
    """
    random = np.random.default_rng(seed)
    hits = 0
    for _ in range(times):
        common = np.zeros((2, runs))
        if how == "paired":
            common[:] = random.normal(0, 0.1, runs)
        elif how == "drift":
            common[:] = random.normal(0, 0.05, 2 * runs).cumsum().reshape(runs, 2).T
            common[:, 1::2] = common[::-1, 1::2]
        a, b = common + random.normal(0, 0.02, (2, runs))
        interval = (Shift.welch if how == "not paired" else Shift.paired)(a, b).interval()
        hits += interval.low <= 0 <= interval.high
    return hits / times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=400, help="simulated experiments per case")
    arguments = parser.parse_args()
    margin = 2 * math.sqrt(0.95 * 0.05 / arguments.times)
    began, bad = time.perf_counter(), []
    print(f"{'runs':>4} {'requests':>8} {'between':>7} {'rho':>4} {'share':>5}   in use  per run  two stages")
    for number, case in enumerate(CASES):
        found = [covered(method, case, arguments.times, number) for method in (in_use, per_run, two_stages)]
        runs, requests, between, rho, share = case
        print(f"{runs:>4} {requests:>8} {between:>7.2f} {rho:>4.1f} {share:>5.2f}   "
              f"{found[0]:>6.1%}  {found[1]:>7.1%}  {found[2]:>10.1%}", flush=True)  # fmt: skip
        if not LOW - margin <= found[0] <= HIGH + margin:
            bad.append(case)
    for runs in (3, 5, 10):
        for how in ("paired", "not paired", "drift"):
            share = ratio_covered(runs, how, 10 * arguments.times, runs)
            print(f"ratio of two engines, {runs} runs, {how}: {share:.1%}")
            if not LOW <= share <= HIGH:
                bad.append((runs, how))
    for runs in (5, 10):
        made = list(simulate(np.random.default_rng(0), runs, 100_000 // runs, 0.1, 0.0))
        began_one = time.perf_counter()
        log_quantile(Pool.of(made), 0.99)
        took_s = time.perf_counter() - began_one
        print(f"p99 of 100,000 requests in {runs} runs, {RESAMPLES:,} draws: {took_s:.2f} s")
    print(f"margin of the simulation ±{margin:.1%}; {time.perf_counter() - began:.0f} s")
    if bad:
        print(f"outside {LOW:.0%} to {HIGH:.0%}: {bad}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
