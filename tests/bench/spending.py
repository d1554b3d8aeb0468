"""Other plans of looks: what each takes to decide, at the same chance of 5% of any false word.

    python -m tests.bench.spending

The same made-up runs as in verdict_study, but only their arithmetic: paired t tests, Holm inside a look, many
experiments at once. A plan is (repeats, level) per look. Engines and load points of decided pairs are
measured no more; nothing is given up. Printed are experiments with any false word, pairs decided, and the
mean cells per engine and load point.
"""

import math
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from harness.stats.student import t_cdf
from tests.bench.sequential_study import ROWS
from tests.bench.verdict_study import FLOOR, MARGIN, VARIATIONS, Row

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Plan = tuple[tuple[int, float], ...]

PLANS: MappingProxyType[str, Plan] = MappingProxyType(
    {
        "3 to 10, equal": tuple((look, 0.01) for look in (3, 4, 5, 7, 10)),
        "3 to 10, early": ((3, 0.025), (4, 0.01), (5, 0.005), (7, 0.005), (10, 0.005)),
        "2 to 10, equal": tuple((look, 0.05 / 6) for look in (2, 3, 4, 5, 7, 10)),
        "2 to 10, early": ((2, 0.025), (3, 0.01), (4, 0.005), (5, 0.005), (7, 0.0025), (10, 0.0025)),
        "2 alone": ((2, 0.05),),
    }
)
SHOWN = ("2 × 2 equal", "2 × 2, 10% apart", "2 × 2, 30% apart", "5 × 3, each 30% slower than the last")
TIMES = 1000


@lru_cache
def _tails(freedom: int) -> tuple[Floats, Floats]:
    """Values of t, and the logarithms of P(T > t)."""
    values = np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 3000)])
    return values, np.array([math.log(max(t_cdf(-float(value), freedom), 1e-300)) for value in values])


def _two_sided(t: Floats, freedom: int) -> Floats:
    values, logs = _tails(freedom)
    return np.where(t > 0, np.minimum(2 * np.exp(np.interp(t, values, logs)), 1.0), 1.0)


def _rejected(p: Floats, level: float) -> Bools:
    """Holm, over the pairs of each experiment."""
    order = np.argsort(p, axis=1)
    members = p.shape[1]
    below = np.take_along_axis(p, order, 1) * (members - np.arange(members)) < level
    found = np.zeros_like(below)
    np.put_along_axis(found, order, np.cumprod(below, axis=1).astype(bool), 1)
    return found


def experiments(row: Row, variation: float, plan: Plan) -> tuple[float, float, float]:
    """Shares with any false word and of pairs decided, and the mean cells per engine and load point."""
    random = np.random.default_rng([ROWS.index(row), int(1e4 * variation)])
    engines, last = len(row.speeds), plan[-1][0]
    shape = (TIMES, last, row.points, engines)
    own = np.where(random.random(shape) < 0.05, 3, 1) * random.normal(size=shape)
    slow = (
        np.log(row.speeds) + variation * math.sqrt(1 - row.shared) * own
    )  # a repeat's part cancels in pairs
    pairs = [(point, a, b) for point in range(row.points) for a, b in combinations(range(engines), 2)]
    apart = np.stack([slow[:, :, point, a] - slow[:, :, point, b] for point, a, b in pairs], -1)
    words = np.zeros((TIMES, len(pairs)))  # -1 and 1: faster and slower; 2: same
    needed, before = np.ones((TIMES, row.points, engines), bool), 0
    cells = np.zeros(needed.shape)
    for repeats, level in plan:
        cells += needed * (repeats - before)
        before = repeats
        new = _words(apart[:, :repeats], level)
        words = np.where(words == 0, new, words)
        needed = np.zeros_like(needed)
        for place, (point, a, b) in enumerate(pairs):
            needed[:, point, [a, b]] |= (words[:, place] == 0)[:, None]
    truth = np.array([math.log(row.speeds[a] / row.speeds[b]) for _, a, b in pairs])
    false = (np.abs(words) == 1) & ((np.abs(truth) <= FLOOR) | (np.sign(truth) != words))
    false |= (words == 2) & (np.abs(truth) >= MARGIN)
    return float(false.any(axis=1).mean()), float((words != 0).mean()), float(cells.mean())


def _words(apart: Floats, level: float) -> Floats:
    runs = apart.shape[1]
    middle, error = apart.mean(axis=1), apart.std(axis=1, ddof=1) / math.sqrt(runs)
    found = _rejected(_two_sided((np.abs(middle) - FLOOR) / error, runs - 1), level)
    same = _rejected(_two_sided((MARGIN - np.abs(middle)) / error, runs - 1), level)
    return np.where(found, np.sign(middle), np.where(same, 2, 0))


def main() -> None:
    print(f"{TIMES} experiments: any false, decided, repeats")
    print(f"| truth | variation | {' | '.join(PLANS)} |")
    print("|---|---:|" + "---:|" * len(PLANS))
    for row in (row for row in ROWS if row.name in SHOWN):
        for variation in VARIATIONS:
            figures = (experiments(row, variation, plan) for plan in PLANS.values())
            shown = (f"{false:.1%}, {decided:.0%}, {repeats:.2f}" for false, decided, repeats in figures)
            print(f"| {row.name} | {variation:.0%} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
