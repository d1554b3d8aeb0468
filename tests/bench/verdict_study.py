"""How often verdicts are wrong, and what they find.

    python -m tests.bench.verdict_study                 # made-up runs through the code of `bench run`
    python -m tests.bench.verdict_study --plant NAME    # the same with a bug put in: must fail
    python -m tests.bench.verdict_study --sequential    # runs that stop once all pairs are decided
    python -m tests.bench.verdict_study --needed        # how many repeats each word takes
    python -m tests.bench.verdict_study --wire 4        # whole `bench run`s of scripted servers

An experiment is a run of 5 engines at 3 loads (or of 2 at 1), five repeats, the default metrics. Its
variation is the standard deviation of one run: half of the variance is common to all engines of a repeat
(the work, the machine's drift), half is a run's own, and one run in twenty is disturbed by three times as
much. A false word is faster or slower where the engines differ by no more than the floor, same where they
differ by 5% or more, and faster or same of an engine of which runs failed. Exits with 1 where more than 5%
of the experiments of a row have any in a family.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any
from unittest import mock

import numpy as np
from msgspec.structs import replace

from harness.model import CellResult, Load, PairVerdict, Reason, Unequal, Validity
from harness.model.metric_table import VERDICT_METRICS
from harness.spec.scenario import Verdict
from harness.stats.student import t_quantile
from harness.verdicts import Rules
from harness.verdicts.pairs import find
from harness.verdicts.run_values import loads, series
from tests.bench.command import options
from tests.factories.documents import made

DECLARED = Verdict()
RULES = Rules(primary=DECLARED.primary, metrics=DECLARED.metrics)
FALSE_LIMIT = 0.05
VARIATIONS = (0.01, 0.02, 0.05, 0.1)
_FAILED = Validity.of([Reason("failed-requests", "INVALID", "", "", "")])
_UNSTEADY = Validity.of([Reason("not-steady", "SUSPECT", "", "", "")])
_BLANK = made(CellResult, state="saturated")


@dataclass(frozen=True)
class Row:
    """`speeds`: how many times as slow as the fastest each is. `shared`: of the variance, by a repeat."""

    name: str
    speeds: tuple[float, ...]
    points: int = 3
    shared: float = 0.5
    failing: float = 0.0  # of the slowest runs of the first engine, the share that fails
    unsteady: float = 0.0  # of its runs, the share that is not steady
    by: str = "slow"  # which: slow or odd ones by its own doing, or any by chance
    off: float = 1.0  # by what the figure of such a run is wrong


FIVE = (1.0,) * 5
ROWS = (
    Row("5 equal", FIVE),
    Row("5 equal, pairs hang together", FIVE, shared=0.9),
    Row("5 equal, slow runs of one fail", FIVE, failing=0.4),
    Row("5, all 2% apart: the floor", (1.0, 1.02, 1.0, 1.02, 1.0)),
    Row("5, one 5% slower", (1.0, 1.0, 1.0, 1.0, 1.05)),
    Row("5, each 5% slower than the last", tuple(1.05**place for place in range(5))),
    Row("5, one 20% slower", (1.0, 1.0, 1.0, 1.0, 1.2)),
    Row("2 equal", (1.0, 1.0), points=1),
    Row("2 equal, slow runs of one fail", (1.0, 1.0), points=1, failing=0.4),
    Row("2, 2% apart: the floor", (1.02, 1.0), points=1),
    Row("2, 5% apart", (1.05, 1.0), points=1),
    Row("2, 10% apart", (1.1, 1.0), points=1),
    Row("2, 20% apart", (1.2, 1.0), points=1),
    Row("2, 2% apart, slow runs of the faster not steady", (1.0, 1.02), points=1, unsteady=0.3),
    Row("2, 2% apart, odd runs of one not steady", (1.0, 1.02), points=1, unsteady=0.3, by="odd"),
    Row("2, 2% apart, runs not steady by chance, 10% off", (1.0, 1.02), 1, unsteady=0.3, by="any", off=0.9),
    Row("2, 5% apart, slow runs of the slower not steady", (1.05, 1.0), points=1, unsteady=0.3),
)


def experiment(random: np.random.Generator, row: Row, variation: float, repeats: int) -> list[CellResult]:
    """Cells as summary.json has them."""
    engines, metrics = len(row.speeds), len(RULES.metrics)
    shape = (repeats, row.points, engines)
    disturbed = np.where(random.random(shape) < 0.05, 3, 1)[..., None]
    # One run's metrics go together: half of its own part is the same for all.
    own = (random.normal(size=(*shape, metrics)) + random.normal(size=(*shape, 1))) / math.sqrt(2)
    common = random.normal(size=(repeats, row.points, 1, 1))
    noise = math.sqrt(row.shared) * common + math.sqrt(1 - row.shared) * disturbed * own
    slow = np.array(row.speeds)[None, None, :, None] * np.exp(variation * noise)
    failing = _largest(slow[:, :, 0, 0], row.failing)
    unsteady = _largest(_reason(random, row, (disturbed * own)[:, :, 0, 0]), row.unsteady)
    slow[:, :, 0][unsteady] *= row.off

    def validity(repeat: int, point: int, engine: int) -> Validity:
        if engine == 0 and failing[repeat, point]:
            return _FAILED
        return _UNSTEADY if engine == 0 and unsteady[repeat, point] else _BLANK.validity

    return [
        _cell((engine, point, repeat), slow[repeat, point, engine], validity(repeat, point, engine))
        for repeat in range(repeats)
        for point in range(row.points)
        for engine in (range(engines) if repeat % 2 else reversed(range(engines)))
    ]


def _largest(values: np.ndarray, share: float) -> np.ndarray:
    """Which runs of a load point. An engine that fails when it is slow: what is left of it looks fast."""
    count = round(share * len(values))
    return np.argsort(np.argsort(-values, axis=0), axis=0) < count


def _reason(random: np.random.Generator, row: Row, own: np.ndarray) -> np.ndarray:
    """What makes a run not steady: the larger, the rather."""
    if row.by == "any":
        return random.random(own.shape)
    return np.abs(own) if row.by == "odd" else own


def _cell(place: tuple[int, int, int], slow: np.ndarray, validity: Validity) -> CellResult:
    engine, point, repeat = place
    figures: dict[str, Any] = {}
    for metric, value in zip(RULES.metrics, slow, strict=True):
        name, _, statistic = metric.partition(".")
        figure = float(100 * value if VERDICT_METRICS[metric] == "lower" else 100 / value)
        before = figures.get(name, _BLANK.ttft_ms)
        figures[name] = replace(before, **{statistic: figure}) if statistic else figure
    return replace(
        _BLANK,
        label=f"e{engine}",
        cell=f"e{engine}-{point}-{repeat}",
        repeat=repeat,
        load=Load(kind="concurrency", value=4**point),
        workload_sha256=f"{point}-{repeat}",
        started_unix_ns=100 * repeat + (engine if repeat % 2 else -engine),
        validity=validity,
        **figures,
    )


@dataclass
class Tally:
    """Over the experiments of a row."""

    false_primary: int = 0  # experiments with any false word of the primary metric
    false_others: int = 0
    equal: Counter[str] = field(default_factory=Counter)  # words of primary pairs within the floor
    apart: Counter[str] = field(default_factory=Counter)  # and of those that differ by more


def study(row: Row, variation: float, repeats: int, times: int) -> Tally:
    random = np.random.default_rng([ROWS.index(row), int(1e4 * variation), repeats])
    tally = Tally()
    for _ in range(times):
        cells = experiment(random, row, variation, repeats)
        wrong = {True: False, False: False}
        for one in find({load: series(cells, load, {}) for load in loads(cells)}, RULES):
            wrong[one.primary] |= is_false(row, one)
            if one.primary:
                (tally.equal if _distance(row, one) <= FLOOR else tally.apart)[one.verdict] += 1
        tally.false_primary += wrong[True]
        tally.false_others += wrong[False]
    return tally


FLOOR = math.log1p(RULES.floor) + 1e-9
MARGIN = math.log1p(RULES.same_within) - 1e-9


def _distance(row: Row, one: PairVerdict) -> float:
    """Logarithm of how many times as slow a is as b."""
    a, b = (row.speeds[int(label[1:])] for label in (one.a, one.b))
    return abs(math.log(a / b))


def is_false(row: Row, one: PairVerdict) -> bool:
    a, b = (row.speeds[int(label[1:])] for label in (one.a, one.b))
    distance = _distance(row, one)
    if row.failing and one.verdict in ("same", "faster" if one.a == "e0" else "slower"):
        return "e0" in (one.a, one.b)  # a failed run ranks worst
    if one.verdict in ("faster", "slower"):
        return distance <= FLOOR or one.verdict != ("faster" if a < b else "slower")
    return one.verdict == "same" and distance >= MARGIN


def _plant_survivors() -> list[Any]:
    """A failed run is left out as if it had not been."""
    return [mock.patch("harness.verdicts.run_values.blame", return_value=None)]


def _plant_only_steady() -> list[Any]:
    """What the steady runs say is enough, however the others were."""
    return [mock.patch("harness.verdicts.ratio.Either", lambda ways: ways[0])]


def _plant_one_pair() -> list[Any]:
    """Each pair at each load is a family of its own."""
    from harness.verdicts import pairs

    whole = pairs.decide

    def alone(pairings: Sequence[Any], alpha: float | None = None) -> list[Any]:
        return [found for pairing in pairings for found in whole([pairing], alpha)]

    return [mock.patch("harness.verdicts.pairs.decide", alone)]


def _plant_wide_same() -> list[Any]:
    """`same` from the point estimate: a wide interval is taken for agreement."""
    from harness.stats.runs import Shift

    def p_outside(self: Shift, below: float, above: float) -> float:
        return 0.0 if below < self.estimate < above else 1.0

    return [mock.patch.object(Shift, "p_outside", p_outside)]


def _plant_pairing() -> list[Any]:
    """Runs of other work are taken for partners, and each is counted with every one of them."""
    from harness.verdicts import ratio

    right = ratio.aligned

    def crossed(a: Any, b: Any, starts: Any, least: int) -> Any:
        one, two, _ = right(a, b, starts, least)
        both = list(product(one, two))
        return {(x, y): one[x] for x, y in both}, {(x, y): two[y] for x, y in both}, True

    return [mock.patch("harness.verdicts.ratio.aligned", crossed)]


def _plant_edge() -> list[Any]:
    """A rate counts n waves over n - 1 periods, and n is not the same for every engine."""

    def biased(cells: Sequence[CellResult]) -> Iterator[CellResult]:
        for cell in cells:
            waves = 8 + 8 * int(cell.label[1:])
            yield replace(cell, output_tokens_per_s=cell.output_tokens_per_s * waves / (waves - 1))

    made = experiment
    return [mock.patch(f"{__name__}.experiment", lambda *given: list(biased(made(*given))))]


def _plant_two_speeds() -> list[Any]:
    """No bug: half of the starts are 10% slow, as by how their memory lies. No t of three runs knows."""

    def halved(random: np.random.Generator, *given: Any) -> list[CellResult]:
        cells = made(random, *given)
        starts = sorted({(cell.label, cell.repeat) for cell in cells})
        slow = {start for start in starts if random.random() < 0.5}
        return [_slowed(cell) if (cell.label, cell.repeat) in slow else cell for cell in cells]

    made = experiment
    return [mock.patch(f"{__name__}.experiment", halved)]


def _slowed(cell: CellResult) -> CellResult:
    slow = {name: getattr(cell, name) for name in ("ttft_ms", "tpot_ms", "e2e_ms")}
    times = {name: replace(value, p50=1.1 * value.p50) for name, value in slow.items()}
    return replace(cell, output_tokens_per_s=cell.output_tokens_per_s / 1.1, **times)


def _plant_every_look() -> list[Any]:
    """Each look of a run decides at the whole level."""
    return [mock.patch.object(Rules, "look_alpha", property(lambda rules: rules.alpha))]


PLANTS: MappingProxyType[str, Callable[[], list[Any]]] = MappingProxyType(
    {
        "survivors": _plant_survivors,
        "only-steady": _plant_only_steady,
        "one-pair-families": _plant_one_pair,
        "wide-same": _plant_wide_same,
        "pairing": _plant_pairing,
        "edge": _plant_edge,
        "two-speeds": _plant_two_speeds,
        "every-look": _plant_every_look,  # of --sequential
    }
)


def report(times: int, repeats: int, rows: Sequence[Row]) -> list[str]:
    """Prints the table; the rows with too many false words."""
    limit = FALSE_LIMIT + 2 * math.sqrt(FALSE_LIMIT * (1 - FALSE_LIMIT) / times)
    print(f"{times} experiments a row, {repeats} repeats, metrics {', '.join(RULES.metrics)}")
    print("| truth | variation | any false word: primary | others | near: same | apart: found | undecided |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    bad = []
    for row in rows:
        for variation in VARIATIONS:
            tally = study(row, variation, repeats, times)
            primary, others = tally.false_primary / times, tally.false_others / times
            found = _share(tally.apart, "faster", "slower")
            print(
                f"| {row.name} | {variation:.0%} | {primary:.1%} | {others:.1%} "
                f"| {_share(tally.equal, 'same')} | {found} "
                f"| {_share(tally.apart, 'not enough runs')} |",
                flush=True,
            )
            if max(primary, others) > limit:
                bad.append(f"{row.name} at {variation:.0%}: {primary:.1%}, {others:.1%}")
    return bad


def needed(variation: float, comparisons: int, distance: float | None) -> int:
    """Repeats with which four of five experiments find `distance`, or equals to be the same (None)."""
    room = (
        math.log1p(RULES.same_within) if distance is None else math.log1p(distance) - math.log1p(RULES.floor)
    )
    # Of equals both ends of the interval have to lie inside.
    power = 0.9 if distance is None else 0.8
    for runs in range(RULES.min_runs, 1000):
        reach = t_quantile(1 - RULES.alpha / 2 / comparisons, runs - 1) + t_quantile(power, runs - 1)
        if reach * variation / runs**0.5 <= room:
            return runs
    raise ValueError(f"no number of runs finds {distance} at {variation}")


def print_needed() -> None:
    print("| variation | comparisons | 5% apart | 10% apart | 20% apart | same |")
    print("|---:|---:|---:|---:|---:|---:|")
    for variation in VARIATIONS:
        for comparisons in (1, 30):
            runs = [needed(variation, comparisons, distance) for distance in (0.05, 0.1, 0.2, None)]
            print(f"| {variation:.0%} | {comparisons} | {' | '.join(map(str, runs))} |")


def _share(words: Counter[str], *wanted: str) -> str:
    return f"{sum(words[word] for word in wanted) / words.total():.0%}" if words else ""


def _made_up(arguments: argparse.Namespace) -> list[str]:
    def chosen(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if row.name.startswith(arguments.rows)]

    if not arguments.sequential:
        return report(arguments.times, arguments.repeats, chosen(ROWS))
    from tests.bench import sequential_study

    sequential_study.print_head(arguments.times)
    return sequential_study.report(arguments.times, chosen(sequential_study.ROWS))


def _none_unequal(_cells: Sequence[CellResult]) -> tuple[Unequal, ...]:
    """No mock, which would keep the cells of every call."""
    return ()


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--times", type=int, default=400, help="simulated experiments per row (400 or more)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", default="", help="only rows whose name begins so, such as '2'")
    parser.add_argument("--plant", choices=sorted(PLANTS), help="put this bug in: the study must fail")
    parser.add_argument("--wire", type=int, metavar="N", help="N runs of scripted servers instead")
    parser.add_argument("--sequential", action="store_true", help="runs that stop once all is decided")
    parser.add_argument("--needed", action="store_true", help="how many repeats each word takes instead")
    arguments = parser.parse_args()
    if arguments.needed:
        print_needed()
        return 0
    if arguments.wire:
        from tests.bench.verdict_wire import wire

        bad = wire(arguments.wire)
    else:
        with ExitStack() as planted:
            # The made-up runs are equal in all but their figures, and looking takes half of the time.
            planted.enter_context(mock.patch("harness.verdicts.comparable.unequal", _none_unequal))
            for patch in PLANTS[arguments.plant]() if arguments.plant else ():
                planted.enter_context(patch)
            bad = _made_up(arguments)
    for line in bad:
        print(f"too many false words: {line}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
