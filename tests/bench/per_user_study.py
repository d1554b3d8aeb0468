"""How often verdicts at equal speed per user are wrong, and what they find.

    python -m tests.bench.per_user_study                # made-up sweeps through the code of `bench run`
    python -m tests.bench.per_user_study --loads 1,2,4,8,16,32,64
    python -m tests.bench.per_user_study --unit starts   # engines that are up together, 8 blocks a start
    python -m tests.bench.per_user_study --unit blocks --repeats 20    # of one start
    python -m tests.bench.per_user_study --plant NAME   # the same with a bug put in: must fail

An engine's time per output token grows with the requests in flight, in one of these shapes: `even`, by as
much for each request; `late` and `corner`, hardly at first and then as much for each; `early`, most for the
first ones. Rows of one shape differ in speed alone. In `crossing` rows the shapes differ, and the engines are
of equal speed at 16 requests in flight. Noise as in verdict_study: half of the variance of a block is that of
its start, and blocks of one start correlate by 0.5 with the block before. A verdict is false where the ratio
of the true curves at this speed contradicts it: `more` with 2% or less, `same` with 5% or more. Exits with 1
where more than 5% of the sweeps of a row have any.
"""

import dataclasses
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
from msgspec.structs import replace

from harness.model import UNSET, CellResult, Load
from harness.model.per_user import SpeedLevel, SpeedPair
from harness.stats.between import Between, Point, between
from harness.verdicts.per_user import speed_levels
from harness.verdicts.run_values import Unit
from tests.bench.command import options
from tests.bench.verdict_study import _BLANK, FALSE_LIMIT, FLOOR, MARGIN, RULES, VARIATIONS, _none_unequal

TOKENS = 128  # of an answer
TTFT_MS, TTFT_EACH_MS = 50.0, 4.0


@dataclass(frozen=True)
class Engine:
    """Its time per output token is ((alone_ms)^p + (each_ms · n^e)^p)^(1/p) with n in flight."""

    alone_ms: float = 10.0
    each_ms: float = 0.25
    p: float = 1.0
    e: float = 1.0
    slow: float = 1.0

    def tpot_ms(self, n: float) -> float:
        both = self.alone_ms**self.p + (self.each_ms * n**self.e) ** self.p
        return float(self.slow * both ** (1 / self.p))

    def tokens_per_s(self, n: float) -> float:
        ttft_ms = self.slow * (TTFT_MS + TTFT_EACH_MS * n)
        return 1000 * n * TOKENS / (ttft_ms + (TOKENS - 1) * self.tpot_ms(n))

    def at(self, speed: float) -> float:
        """Tokens/s at this speed per user, by bisection over a load that need not be whole."""
        low, high = 1e-6, 1e9
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if 1000 / self.tpot_ms(middle) > speed else (low, middle)
        return self.tokens_per_s(low)


SHAPES = {
    "even": Engine(),
    "late": Engine(p=2.0),
    "corner": Engine(p=4.0),
    "early": Engine(each_ms=2.0, e=0.6),
}
UNITS: tuple[Unit, ...] = ("runs", "starts", "blocks")
BLOCKS = 8  # of a start
NEIGHBOURS = 0.5  # correlation of the noise of blocks of one start
SAME_AT = 16  # requests in flight at which engines of a crossing row are of one speed


def _crossing(first: str, second: str) -> tuple[Engine, ...]:
    engine, other = SHAPES[first], SHAPES[second]
    return engine, dataclasses.replace(other, slow=engine.tpot_ms(SAME_AT) / other.tpot_ms(SAME_AT))


@dataclass(frozen=True)
class Row:
    name: str
    engines: tuple[Engine, ...]


ROWS = (
    *(Row(f"2 equal, {name}", (shape,) * 2) for name, shape in SHAPES.items()),
    Row("5 equal, late", (SHAPES["late"],) * 5),
    *(Row(f"crossing, {a} and {b}", _crossing(a, b)) for a, b in pairwise([*SHAPES, "even"])),
    *(
        Row(f"carries {factor} times, {name}", (shape, dataclasses.replace(shape, each_ms=each)))
        for factor in (1.2, 1.5)
        for name, shape in SHAPES.items()
        for each in [shape.each_ms * factor**shape.e]
    ),
)


def sweep(
    random: np.random.Generator,
    row: Row,
    variation: float,
    repeats: int,
    loads: Sequence[int],
    unit: Unit = "runs",
) -> list[CellResult]:
    engines, blocks = len(row.engines), BLOCKS if unit == "starts" else 1
    shape = (repeats * blocks, len(loads), engines)
    disturbed = np.where(random.random(shape) < 0.05, 3, 1)[..., None]
    own = (random.normal(size=(*shape, 2)) + random.normal(size=(*shape, 1))) / math.sqrt(2)
    own = disturbed * own
    if unit == "starts":
        of_start = random.normal(size=(repeats, 1, engines, 1)).repeat(blocks, axis=0)
        own = (own + of_start) / math.sqrt(2)
    elif unit == "blocks":
        for block in range(1, repeats):
            own[block] = NEIGHBOURS * own[block - 1] + math.sqrt(1 - NEIGHBOURS**2) * own[block]
    common = random.normal(size=(len(own), len(loads), 1, 1))
    slow = np.exp(variation * math.sqrt(0.5) * (common + own))
    given = {} if unit == "runs" else {"launch": "attach" if unit == "blocks" else "process"}
    return [
        replace(
            _BLANK,
            label=f"e{number}",
            cell=f"e{number}-{load}-{repeat}",
            repeat=repeat,
            start_number=UNSET if unit == "runs" else repeat // blocks if unit == "starts" else 0,
            **given,
            load=Load(kind="concurrency", value=load),
            workload_sha256=f"{load}-{repeat}",
            started_unix_ns=100 * repeat + (number if repeat % 2 else -number),
            tpot_ms=replace(_BLANK.tpot_ms, p50=engine.tpot_ms(load) * slow[repeat, point, number, 0]),
            output_tokens_per_s=engine.tokens_per_s(load) / slow[repeat, point, number, 1],
        )
        for repeat in range(len(own))
        for point, load in enumerate(loads)
        for number, engine in enumerate(row.engines)
    ]


@dataclass
class Tally:
    """Over the sweeps of a row; verdicts over its pairs and levels."""

    false: int = 0
    held: list[bool] = field(default_factory=list)  # whether the interval holds the true ratio
    off: list[float] = field(default_factory=list)  # logarithm of the estimate over the true ratio
    equal: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    levels: int = 0


def study(
    row: Row, variation: float, repeats: int, times: int, loads: Sequence[int], unit: Unit = "runs"
) -> Tally:
    random = np.random.default_rng([ROWS.index(row), int(1e4 * variation), repeats])
    tally = Tally()
    for _ in range(times):
        wrong = False
        for level in speed_levels(sweep(random, row, variation, repeats, loads, unit), RULES):
            tally.levels += 1
            for pair in level.pairs:
                wrong |= _judge(row, level, pair, tally)
        tally.false += wrong
    return tally


def _judge(row: Row, level: SpeedLevel, pair: SpeedPair, tally: Tally) -> bool:
    """Counts a verdict; whether it is false."""
    speed = level.tokens_per_s_per_user
    a, b = (row.engines[int(label[1:])].at(speed) for label in (pair.a, pair.b))
    true = math.log(a / b)
    if pair.ratio is not None:
        tally.held.append(pair.ratio.low <= a / b <= pair.ratio.high)
        tally.off.append(math.log(pair.ratio.estimate) - true)
    (tally.equal if abs(true) <= FLOOR else tally.apart)[pair.verdict] += 1
    if pair.verdict in ("more", "fewer"):
        return abs(true) <= FLOOR or (pair.verdict == "more") != (true > 0)
    return pair.verdict == "same" and abs(true) >= MARGIN


def _plant_straight() -> Any:
    """The curve is taken for straight between two loads."""

    def straight(points: Sequence[Point], x: float) -> Between | None:
        found = between(points, x)
        return found and Between(found.middle, found.middle, found.middle)

    return mock.patch("harness.verdicts.speed_curves.between", straight)


def _plant_power() -> Any:
    """The curve is taken for a power law between two loads."""

    def power(points: Sequence[Point], x: float) -> Between | None:
        found = between(points, x)
        return found and Between(found.low, found.low, found.low)

    return mock.patch("harness.verdicts.speed_curves.between", power)


PLANTS: dict[str, Callable[[], Any]] = {"straight": _plant_straight, "power-law": _plant_power}


def report(times: int, repeats: int, rows: Sequence[Row], loads: Sequence[int], unit: Unit) -> list[str]:
    """Prints the table; the rows with too many false verdicts."""
    limit = FALSE_LIMIT + 2 * math.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / times)
    counted = "repeats" if unit == "runs" else unit
    print(f"{times} sweeps a row of {repeats} {counted}, loads {', '.join(map(str, loads))}")
    print("| truth | variation | any false | held | bias | near: same | apart: found | speeds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    bad = []
    for row in rows:
        for variation in VARIATIONS:
            tally = study(row, variation, repeats, times, loads, unit)
            print(
                f"| {row.name} | {variation:.0%} | {tally.false / times:.1%} | {_mean(tally.held):.1%} "
                f"| {_mean(tally.off):+.1%} | {_share(tally.equal, 'same')} "
                f"| {_share(tally.apart, 'more', 'fewer')} | {tally.levels / times:.1f} |",
                flush=True,
            )
            if tally.false / times > limit:
                bad.append(f"{row.name} at {variation:.0%}: {tally.false / times:.1%}")
    return bad


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _share(verdicts: Counter[str], *wanted: str) -> str:
    return f"{sum(verdicts[name] for name in wanted) / verdicts.total():.0%}" if verdicts else ""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--times", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--unit", choices=UNITS, default="runs")
    parser.add_argument("--loads", default="1,4,16,64,256")
    parser.add_argument("--rows", default="", help="only rows whose name begins so, such as 'crossing'")
    parser.add_argument("--plant", choices=sorted(PLANTS), help="put this bug in: the study must fail")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if row.name.startswith(arguments.rows)]
    with ExitStack() as planted:
        # The made-up runs are equal in all but their figures, and looking takes half of the time.
        planted.enter_context(mock.patch("harness.verdicts.comparable.unequal", _none_unequal))
        if arguments.plant:
            planted.enter_context(PLANTS[arguments.plant]())
        loads = [int(load) for load in arguments.loads.split(",")]
        bad = report(arguments.times, arguments.repeats, rows, loads, arguments.unit)
    for line in bad:
        print(f"too many false verdicts: {line}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
