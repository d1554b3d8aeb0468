"""How often a nightly gate fails where nothing changed, and how many nights it takes to see a step.

    python -m tests.bench.nights_study [--series 200] [--nights 90] [--before 30] [--bad 0] [--noise 0.03]
                                       [--floor 0.05] [--seed 0]

Draws series of one figure with a deviation of --noise, in which each night has the correlation of its row
with the night before. One night of each, before the step if there is one, is worse by --bad. The gate judges
after every night, from the sixth on. Prints a Markdown table.
"""

import argparse

import numpy as np

from harness.stats.runs import Floats
from harness.stats.steps import apart, levels

CORRELATIONS = (0.0, 0.3, 0.5, 0.7)
FIRST = 6  # nights, from which a level can be judged
AFTER, STEP = 30, 0.1


def drawn(random: np.random.Generator, nights: int, correlation: float) -> Floats:
    """Values of deviation 1, each of which has this correlation with the next one."""
    values = random.normal(size=nights)
    for night in range(1, nights):
        values[night] = correlation * values[night - 1] + (1 - correlation**2) ** 0.5 * values[night]
    return values


def fails(values: Floats, floor: float) -> bool:
    """As the gate: the last level is worse than the best one by more than the floor."""
    means = [level.mean for level in levels(values)]
    return bool(np.expm1(means[-1] - min(means)) > floor)


def holds(values: Floats) -> bool:
    """Whether the interval of the last level holds the step, on the night that it is seen."""
    found = levels(values)
    low, _, high = apart(found[-1], min(found, key=lambda level: level.mean)).interval()
    return low <= STEP <= high


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--nights", type=int, default=90)
    parser.add_argument("--before", type=int, default=30)
    parser.add_argument("--bad", type=float, default=0.0)
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--floor", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(
        "| correlation | fails without a change | step seen in 3 nights | in 10 | in 30 | interval holds it |"
    )
    print("|---|---|---|---|---|---|")
    for correlation in CORRELATIONS:
        random, bad_nights = (np.random.default_rng(seed) for seed in (asked.seed, asked.seed + 1))
        failed, waited, held = 0, [], []
        for _ in range(asked.series):
            same = asked.noise * drawn(random, asked.nights, correlation)
            same[bad_nights.integers(asked.nights)] += asked.bad
            failed += any(fails(same[:night], asked.floor) for night in range(FIRST, asked.nights + 1))
            worse = asked.noise * drawn(random, asked.before + AFTER, correlation)
            worse[asked.before :] += STEP
            worse[bad_nights.integers(asked.before)] += asked.bad
            seen = (
                night for night in range(1, AFTER + 1) if fails(worse[: asked.before + night], asked.floor)
            )
            waited.append(next(seen, AFTER + 1))
            if waited[-1] <= AFTER:
                held.append(holds(worse[: asked.before + waited[-1]]))
        seen_in = [sum(wait <= nights for wait in waited) for nights in (3, 10, AFTER)]
        found = [*(count / asked.series for count in (failed, *seen_in)), np.mean(held)]
        shares = " | ".join(f"{share:.0%}" for share in found)
        print(f"| {correlation} | {shares} |")


if __name__ == "__main__":
    main()
