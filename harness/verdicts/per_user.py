"""Compares what backends carry at equal speed per user, from the loads of a sweep.

A backend's curve has a point per load: speed per user, and output tokens/s. It is read per repeat and between
the loads. What shape it has there is not known: a verdict has to hold for all that harness/stats/between has.
docs/verdicts-evidence.md has the error rates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from harness.model import CellResult, Interval, LoadPoint, labels
from harness.model.json_path import number_at
from harness.model.numbers import counted
from harness.model.per_user import Reach, SpeedFigure, SpeedLevel, SpeedPair, SpeedVerdict
from harness.stats.between import Between, Point, between
from harness.stats.runs import Either, Shift, exponential, holm
from harness.stats.student import t_quantile
from harness.verdicts.comparable import obstacles, refusal
from harness.verdicts.evidence import ALL, RATES, doubts, state_of
from harness.verdicts.pairs import MOST_TOGETHER
from harness.verdicts.ratio import rounding
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Series

TPOT, RATE = "tpot_ms.p50", "output_tokens_per_s"
STEADY = ("under load", "saturated")  # a server that falls behind has figures of the length of the run
Kind = Literal["concurrency", "rate"]
Owner = Literal["GPU", "machine"]
KINDS: tuple[Kind, ...] = ("concurrency", "rate")
ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)  # and their multiples by ten
PARTS = (0.25, 0.5, 0.75)  # of the range that the curves share, by ratio
LEAST_RANGE = 1.2  # a narrower one, by ratio, says that the load hardly changes the speed


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` by repeat, from the lowest load on: speed per user, and tokens/s."""

    label: str
    cells: tuple[CellResult, ...]
    points: Mapping[int, tuple[Point, ...]]

    @property
    def range(self) -> Point:
        """The slowest and the fastest speed that every repeat has."""
        low = max(min(x for x, _ in mine) for mine in self.points.values())
        return low, min(max(x for x, _ in mine) for mine in self.points.values())

    def at(self, level: float) -> dict[int, Between]:
        """The tokens/s at this speed by repeat; {} unless every repeat has it."""
        found = {repeat: between(mine, level) for repeat, mine in self.points.items()}
        known = {repeat: value for repeat, value in found.items() if value is not None}
        return known if len(known) == len(found) else {}

    def rounded(self, level: float) -> float:
        """Variance of the logarithm of tokens/s at this speed, by files that print few digits; else 0."""
        row = Series(self.label, self.cells)
        tpots, rates = ([number_at(cell, path) or 0.0 for cell in self.cells] for path in (TPOT, RATE))
        of_speed = rounding(row, [tpots]) * (level / 1000) ** 2
        if not of_speed:
            return 0.0
        slopes = (
            math.log(y2 / y1) / math.log(x1 / x2)
            for mine in self.points.values()
            for (x1, y1), (x2, y2) in pairwise(mine)
            if x1 >= level >= x2 and x1 > x2
        )
        return of_speed * max(slopes, default=1.0) ** 2 + rounding(row, [rates]) / min(rates) ** 2

    def reach(self, level: float) -> Reach:
        if self.at(level):
            return "within"
        speeds = [x for mine in self.points.values() for x, _ in mine]
        if level > max(speeds):
            return "never so fast"
        return "faster at every load" if level < min(speeds) else "not in every repeat"


def gpus_of(cells: Sequence[CellResult]) -> int:
    """The GPUs of the engine; 0 if not known, or if there are none."""
    return min((len(cell.gpu.engine_gpus) if cell.gpu else 0 for cell in cells), default=0)


def speed_levels(cells: Sequence[CellResult], rules: Rules) -> tuple[SpeedLevel, ...]:
    """The `per_user` list of summary.json. All its verdicts are one family.

    A limit of the median TPOT is the speed that was asked for, and is taken instead of chosen ones.
    """
    if rules.pairing != "starts":
        return ()  # repeats are then blocks, which are worth fewer than their number
    asked = dict.fromkeys(1000 / limit for cell in cells for limit in _limits_ms(cell))
    levels = []
    for kind in KINDS:
        if mine := curves(cells, kind):
            pairs = list(_pairs(mine, rules))
            levels += [_Level(kind, speed, mine, pairs, rules) for speed in asked or chosen(mine)]
    tests = [test for level in levels for test in level.tests if test.shift is not None]
    apart, same = holm([test.p_apart for test in tests]), holm([test.p_same for test in tests])
    for test, *adjusted in zip(tests, apart, same, strict=True):
        test.adjusted = tuple(adjusted)
    return tuple(level.entry(_per(cells)) for level in levels)


def _limits_ms(cell: CellResult) -> Iterator[float]:
    for limit in cell.slo.limits if cell.slo else ():
        if f"{limit.metric}.{limit.share}" == TPOT:
            yield limit.limit_ms


def curves(cells: Sequence[CellResult], kind: str) -> list[Curve]:
    """The curve of each backend that has one, with the loads that every one of its repeats measured well."""
    mine = [cell for cell in cells if cell.load.kind == kind]
    if len(labels(mine)) > MOST_TOGETHER:
        return []
    per = _per(cells)
    found = (_curve([cell for cell in mine if cell.label == label], per) for label in labels(mine))
    return [curve for curve in found if curve is not None]


def chosen(found: Sequence[Curve]) -> list[float]:
    """The round numbers nearest to the quarters of the range that most curves share, by ratio.

    Where none of them is in it, its middle to two digits.
    """
    ranges = [curve.range for curve in found]
    shared = [[other for other in ranges if other[0] <= low < other[1]] for low, _ in ranges]
    if not (several := [mine for mine in shared if len(mine) > 1]):
        return []
    ends = [(max(low for low, _ in mine), min(high for _, high in mine), len(mine)) for mine in several]
    low, high, _ = max(ends, key=lambda end: (end[2], end[1] / end[0]))
    if high < LEAST_RANGE * low:
        return []
    levels = dict.fromkeys(_round(low * (high / low) ** part) for part in PARTS)
    return [level for level in levels if low <= level <= high] or [float(f"{math.sqrt(low * high):.2g}")]


def _round(value: float) -> float:
    ten = 10.0 ** math.floor(math.log10(value))
    return min((step * ten for step in (*ROUND, 10)), key=lambda step: abs(math.log(step / value)))


def _per(cells: Sequence[CellResult]) -> Owner:
    by_label = [
        gpus_of([cell for cell in cells if cell.label == label and not cell.invalid])
        for label in labels(cells)
    ]
    return "GPU" if by_label and all(by_label) else "machine"


def _curve(mine: Sequence[CellResult], per: str) -> Curve | None:
    """Loads that another load of the backend beats in both, by the geometric means, are not on its curve."""
    by_load: dict[LoadPoint, dict[int, Point]] = {}
    for load in sorted({cell.point for cell in mine}):
        points = [(cell.repeat, _point(cell, per)) for cell in mine if cell.point == load]
        if all(point is not None for _, point in points):
            by_load[load] = {repeat: point for repeat, point in points if point is not None}
    repeats = sorted(set.intersection(*map(set, by_load.values()))) if by_load else []
    means = (
        {load: _mean([by_load[load][repeat] for repeat in repeats]) for load in by_load} if repeats else {}
    )
    kept = [
        load
        for load, (speed, rate) in means.items()
        if not any(x >= speed and y >= rate and (x, y) != (speed, rate) for x, y in means.values())
    ]
    kept.sort(key=lambda load: -means[load][0])
    if len(kept) < 2:
        return None
    cells = tuple(cell for cell in mine if cell.point in kept)
    return Curve(
        mine[0].label, cells, {repeat: tuple(by_load[load][repeat] for load in kept) for repeat in repeats}
    )


def _point(cell: CellResult, per: str) -> Point | None:
    """None where the cell is no evidence: failed, unsteady, behind its load, or without a figure."""
    tpot, rate = number_at(cell, TPOT), number_at(cell, RATE)
    unsteady = any(metric == ALL for metric, _ in doubts(cell))
    if cell.invalid or unsteady or state_of(cell) not in STEADY or not tpot or not rate:
        return None
    return 1000 / tpot, rate / (gpus_of([cell]) if per == "GPU" else 1)


def _mean(points: Sequence[Point]) -> Point:
    speed, rate = np.exp(np.log(points).mean(axis=0)).tolist()
    return speed, rate


def _figure(curve: Curve, level: float, min_runs: int) -> SpeedFigure:
    found = list(curve.at(level).values())
    if not found:
        return SpeedFigure(label=curve.label, reach=curve.reach(level))
    middle = math.exp(float(np.mean([math.log(value.middle) for value in found])))
    interval = None
    if len(found) >= min_runs:
        logs, rounded = np.log(found), curve.rounded(level)
        middle_first = (1, 0, 2)  # the estimate is of the first way
        ways = [Shift.of_mean(logs[:, way]).of_rounded(rounded) for way in middle_first]
        interval = exponential(Either(tuple(ways)).interval())
    return SpeedFigure(label=curve.label, reach="within", tokens_per_s=middle, interval=interval)


@dataclass(frozen=True, slots=True)
class _Pair:
    sides: tuple[Curve, Curve]
    refused: str | None
    apart: float  # by which share unequal work may move the ratio


def _pairs(found: Sequence[Curve], rules: Rules) -> Iterator[_Pair]:
    for a, b in combinations(found, 2):
        shared = {cell.point for cell in a.cells} & {cell.point for cell in b.cells}
        sides = [
            Series(curve.label, tuple(cell for cell in curve.cells if cell.point in shared))
            for curve in (a, b)
        ]
        stands = obstacles(sides[0], sides[1], rules, None)
        # A rate that the load set is still what was carried at the speed that users had.
        reasons = {key: why for key, why in stands.refusals.items() if key != RATES}
        refused = next(filter(None, (refusal(reasons, metric) for metric in (RATE, TPOT))), None)
        if not shared:
            refused = "no load is on both curves"
        apart = max(stands.apart.get(name, 0.0) for name in (RATE, "tpot_ms"))
        yield _Pair((a, b), refused, apart)


class _Level:
    def __init__(
        self, kind: Kind, speed: float, found: Sequence[Curve], pairs: Sequence["_Pair"], rules: Rules
    ) -> None:
        self.kind, self.speed, self.curves, self.min_runs = kind, speed, found, rules.min_runs
        self.tests = [
            _Test(pair, speed, rules) for pair in pairs if all(curve.at(speed) for curve in pair.sides)
        ]

    def entry(self, per: Owner) -> SpeedLevel:
        return SpeedLevel(
            kind=self.kind,
            tokens_per_s_per_user=self.speed,
            per=per,
            figures=tuple(_figure(curve, self.speed, self.min_runs) for curve in self.curves),
            pairs=tuple(test.verdict() for test in self.tests),
        )


class _Test:
    """One pair at one speed. `adjusted`: p by Holm of `more` or `fewer`, and of `same`."""

    adjusted: tuple[float, ...] = ()

    def __init__(self, pair: _Pair, speed: float, rules: Rules) -> None:
        self.pair, self.rules = pair, rules
        a, b = (curve.at(speed) for curve in pair.sides)
        self.repeats = sorted(a.keys() & b.keys())
        self.shift: Either | None = None
        if pair.refused is None and len(self.repeats) >= rules.min_runs:
            logs = np.log([[*a[repeat], *b[repeat]] for repeat in self.repeats])
            # Paired by repeat: both then ran within the same hour of the same machine.
            ways = ((1, 4), (0, 5), (2, 3))  # the middles, and each low end against the other high end
            least = math.fsum(curve.rounded(speed) for curve in pair.sides)
            self.shift = Either(
                tuple(Shift.paired(logs[:, i], logs[:, j]).of_rounded(least) for i, j in ways)
            )

    @property
    def floor(self) -> float:
        labels_here = [curve.label for curve in self.pair.sides]
        loads = {cell.point.label for curve in self.pair.sides for cell in curve.cells}
        own = max(self.rules.floor_of(labels_here, load, RATE) for load in loads)
        return (1 + own) * (1 + self.pair.apart) - 1

    @property
    def p_apart(self) -> float:
        edge = math.log1p(self.floor)
        return self.shift.p_beyond(-edge, edge) if self.shift else 1.0

    @property
    def p_same(self) -> float:
        margin = (1 + self.rules.same_within) / (1 + self.pair.apart) - 1
        if self.shift is None or self.floor > margin:
            return 1.0
        edge = math.log1p(margin)
        return self.shift.p_outside(-edge, edge)

    def verdict(self) -> SpeedPair:
        a, b = (curve.label for curve in self.pair.sides)
        found: SpeedVerdict = "undecided"
        why, ratio, alpha = "", None, self.rules.look_alpha
        if self.pair.refused:
            found, why = "not comparable", self.pair.refused
        elif self.shift is None:
            why = f"{counted(len(self.repeats), 'repeat')} with both curves, {self.rules.min_runs} are needed"
        else:
            ratio = exponential(self.shift.interval(1 - alpha))
            p_apart, p_same = self.adjusted
            if p_apart < alpha:
                found = "more" if ratio.estimate > 1 else "fewer"
            elif p_same < alpha:
                found = "same"
            else:
                why = self._undecided(ratio)
        return SpeedPair(
            a=a, b=b, verdict=found, ratio=ratio, p_holm=next(iter(self.adjusted), None), why=why
        )

    def _undecided(self, ratio: Interval) -> str:
        """More loads where the shape between loads is the larger error, else more repeats."""
        assert self.shift is not None
        middle, low, high = self.shift.ways
        shape = high.estimate - low.estimate
        noise = 2 * t_quantile(1 - self.rules.look_alpha / 2, middle.freedom) * middle.error
        if shape > noise:
            return "loads between those measured would say more"
        return "more repeats would say more"
