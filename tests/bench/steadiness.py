"""How often the test of a steady course is wrong, and what it calls a ramp, a drift, a step and a stall.

    python -m tests.bench.steadiness [--page]     # a minute of one core
    python -m tests.bench.steadiness --limits     # LIMITS of harness/metrics/steady.py from chance alone

With --page the table goes into tests/bench/tried.md. Exits with 1 where a steady course is doubted more
often than a row allows (1% of cells, where noise lasts more), or a plain shape does not get its name in nine
of ten.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.steady import LIMITS, Course, batches_of, scores_of, shapes_of
from harness.workload.arrivals import arrivals
from tests.bench.chaos.page import Table
from tests.bench.command import options

Floats = NDArray[np.float64]
Random = np.random.Generator
Draw = Callable[[Random], Floats]

COURSES = 3000
LEAST_NAMED = 0.9


@dataclass(frozen=True)
class Row:
    name: str
    draw: Draw  # what each batch of a cell took
    form: str | None = None  # what it is; None: steady
    alarms: float = 0.01  # of steady courses, the most that may be doubted


def limit(count: int, draws: int = 100_000) -> float:
    """The share of the variance that the best shape exceeds once in 2,000 courses of independent batches."""
    random, contrasts = np.random.default_rng(count), shapes_of(count)[1]
    best = []
    for _ in range(draws // 1000):
        scores = np.array([scores_of(drawn) for drawn in random.standard_normal((1000, count))])
        best.append(((scores @ contrasts.T) ** 2).max(axis=1))
    return float(np.quantile(np.concatenate(best), 1 - 1 / 2000))


def noise(share: float, batches: int = 40, lasting: float = 0.0) -> Draw:
    """Independent, or each batch keeps the share `lasting` of the deviation of the one before."""

    def draw(random: Random) -> Floats:
        away = random.standard_normal(batches)
        for batch in range(1, batches):
            away[batch] = lasting * away[batch - 1] + np.sqrt(1 - lasting**2) * away[batch]
        return np.exp(share * away)

    return draw


def queue(load: float, requests: int, service_sd: float = 0.0) -> Draw:
    """An open loop at this share of what one server serves: mean times in system of up to 40 batches."""

    def draw(random: Random) -> Floats:
        due = arrivals("poisson", load, requests, int(random.integers(2**62))) / 1e9
        took, free = np.empty(requests), 0.0
        for number, service in enumerate(np.exp(service_sd * random.standard_normal(requests)).tolist()):
            free = max(float(due[number]), free) + service
            took[number] = free - due[number]
        return np.array(
            [batch.mean() for batch in np.array_split(took, batches_of(requests, open_loop=True))]
        )

    return draw


def stalling(stall_s: float, every_s: float, requests: int, answer_s: float = 0.25, slots: int = 4) -> Draw:
    """A closed loop whose server stands still for `stall_s` every `every_s`: batches of answer times."""

    def clock(worked_s: Floats) -> Floats:
        return worked_s + stall_s * np.floor(worked_s / (every_s - stall_s))

    def draw(random: Random) -> Floats:
        sent = random.uniform(0, every_s) + np.arange(requests) * answer_s / slots
        took = (clock(sent + answer_s) - clock(sent)) * np.exp(0.01 * random.standard_normal(requests))
        return np.array(
            [batch.mean() for batch in np.array_split(took, batches_of(requests, open_loop=False))]
        )

    return draw


def shaped(factors: Floats, share: float = 0.05) -> Draw:
    around = noise(share, len(factors))
    return lambda random: factors * around(random)


def _level(start: int, stop: int, factor: float, batches: int = 40) -> Floats:
    factors = np.ones(batches)
    factors[start:stop] = factor
    return factors


ROWS = (
    *(Row(f"steady, noise {share:.1%}", noise(share)) for share in (0.001, 0.05, 0.3, 1.0)),
    *(Row(f"steady, noise 30%, {count} batches", noise(0.3, count)) for count in (8, 12, 20)),
    Row("steady, noise 10% that lasts, 0.3", noise(0.1, lasting=0.3)),
    Row("steady, noise 10% that lasts, 0.6", noise(0.1, lasting=0.6), alarms=0.02),
    Row("steady, noise 10% that lasts, 0.8", noise(0.1, lasting=0.8), alarms=0.1),
    *(
        Row(f"open loop at {u:.0%}, {n} requests", queue(u, n, 0.3), alarms=0.02)
        for u in (0.5, 0.8)
        for n in (32, 100, 1000)
    ),
    *(
        Row(f"{stall:g} s of stall every {every:g} s, {n} answers", stalling(stall, every, n), alarms=0.02)
        for stall, every, n in ((0.9, 5.0, 160), (0.9, 5.0, 320), (2.0, 10.0, 320))
    ),
    Row("ramp: first 6 of 40 batches +30%", shaped(_level(0, 6, 1.3)), "ramp"),
    Row("ramp: first 4 of 16 batches +50%", shaped(_level(0, 4, 1.5, 16)), "ramp"),
    Row("ramp: +60% that is gone after 12 batches", shaped(np.maximum(1.6 - np.arange(40) / 20, 1)), "ramp"),
    Row("drift: +28% over the cell", shaped(np.linspace(1, 1.28, 40)), "drift"),
    Row("drift: +37% over the cell", shaped(np.linspace(1, 1.37, 40)), "drift"),
    Row("drift: +40%, 24 batches", shaped(np.linspace(1, 1.4, 24)), "drift"),
    Row("step: +30% from two thirds on", shaped(_level(27, 40, 1.3)), "step"),
    Row("step: +30% from two fifths on", shaped(_level(16, 40, 1.3)), "step"),
    Row("step: +50% for the middle half", shaped(_level(10, 30, 1.5)), "step"),
    Row("stall: 4 of 40 batches twice as slow", shaped(_level(20, 24, 2.0)), "stall"),
)


def study(row: Row) -> Counter[str | None]:
    random, found = np.random.default_rng(1), Counter[str | None]()
    for _ in range(COURSES):
        values = row.draw(random)
        one = Course("x", "X", np.arange(len(values)), np.log(values)).find()
        found[None if one is None else one.form] += 1
    return found


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--limits", action="store_true", help="the table of limits, and nothing else")
    parser.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
    arguments = parser.parse_args()
    if arguments.limits:
        for count in LIMITS:
            print(f"{count}: {limit(count):.3f}", flush=True)
        return 0
    shown, wrong = {}, 0
    for row in ROWS:
        found = study(row)
        doubted = sum(found[form] for form in ("ramp", "drift", "step")) / COURSES
        named = found[row.form] / COURSES if row.form else None
        wrong += doubted > row.alarms if named is None else named < LEAST_NAMED
        others = ", ".join(
            f"{form or 'nothing'} {n / COURSES:.1%}" for form, n in found.most_common() if form != row.form
        )
        shown[row.name] = [
            f"doubted {doubted:.1%}" if named is None else f"{row.form} {named:.1%}",
            others or "–",
        ]
        print(row.name, *shown[row.name], sep="  ", flush=True)
    table = Table("steadiness", ("course", "found", "else"), tuple(row.name for row in ROWS))
    table.publish(shown, arguments)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
