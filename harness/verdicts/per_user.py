"""Compares what backends carry at equal speed per user, from the loads of a sweep.

docs/verdict-rules.md has the rules, docs/verdicts-evidence.md the error rates.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from harness.model import CellResult, LoadPoint
from harness.model.numbers import counted
from harness.model.per_user import SpeedFigure, SpeedLevel, SpeedPair, SpeedVerdict
from harness.stats.between import Between
from harness.stats.runs import Either, Floats, Shift, exponential, holm
from harness.stats.serial import independent_share
from harness.stats.student import t_quantile
from harness.verdicts.comparable import obstacles, refusal
from harness.verdicts.evidence import RATES
from harness.verdicts.pairs import LEAST_INDEPENDENT
from harness.verdicts.ratio import Limits
from harness.verdicts.rules import Rules
from harness.verdicts.run_values import Series, Unit
from harness.verdicts.speed_curves import KINDS, RATE, TPOT, Curve, Kind, curves, owner_of

ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10)  # and their multiples by ten
PARTS = (0.25, 0.5, 0.75)  # of the range that the curves share, by ratio
LEAST_RANGE = 1.2  # a narrower one, by ratio, says that the load hardly changes the speed
MORE_LOADS = "more loads between those measured would say more"
_NAMES: dict[Unit, str] = {"runs": "repeat", "starts": "start", "blocks": "block"}


class _Pair(NamedTuple):
    sides: tuple[Curve, Curve]
    refused: str | None
    apart: float  # by which share unequal work may move the ratio
    independent: float  # share of blocks of one start, by those of all loads; 1 of other units

    @property
    def unit(self) -> Unit:
        units = {side.unit for side in self.sides}
        return "blocks" if "blocks" in units else min(units)


@dataclass(frozen=True, eq=False, slots=True)
class _Test:
    """One pair at one speed. `shift`: of the logarithm of the ratio; None if not tested, for `lacks`."""

    pair: _Pair
    lacks: str = ""
    shift: Either | None = None
    p_apart: float = 1.0
    p_same: float = 1.0


class _Level(NamedTuple):
    kind: Kind
    speed: float
    curves: Sequence[Curve]
    tests: Sequence[_Test]


def speed_levels(cells: Sequence[CellResult], rules: Rules) -> tuple[SpeedLevel, ...]:
    """The `per_user` list of summary.json. All its verdicts are one family.

    A limit of the median TPOT is the speed that was asked for, and is taken instead of chosen ones.
    """
    (levels,) = levels_of_each([(cells, rules)])
    return levels


def levels_of_each(sweeps: Sequence[tuple[Sequence[CellResult], Rules]]) -> list[tuple[SpeedLevel, ...]]:
    """The same of several sweeps, whose verdicts are one family all together."""
    found = [list(_levels(*sweep)) for sweep in sweeps]
    tests = [test for levels in found for level in levels for test in level.tests if test.shift is not None]
    p_apart, p_same = holm([test.p_apart for test in tests]), holm([test.p_same for test in tests])
    judged = dict(zip(tests, zip(p_apart, p_same, strict=True), strict=True))
    return [
        _judged(levels, cells, rules, judged) for levels, (cells, rules) in zip(found, sweeps, strict=True)
    ]


def _judged(
    levels: Sequence[_Level],
    cells: Sequence[CellResult],
    rules: Rules,
    judged: Mapping[_Test, tuple[float, float]],
) -> tuple[SpeedLevel, ...]:
    return tuple(
        SpeedLevel(
            kind=level.kind,
            tokens_per_s_per_user=level.speed,
            per=owner_of(cells),
            figures=tuple(_figure(curve, level.speed, rules.min_runs) for curve in level.curves),
            pairs=tuple(_verdict(test, judged.get(test), rules) for test in level.tests),
        )
        for level in levels
    )


def _levels(cells: Sequence[CellResult], rules: Rules) -> Iterator[_Level]:
    asked = asked_speeds(cells)
    for kind in KINDS:
        found = curves(cells, kind)
        speeds = (asked or chosen(found)) if found else ()
        pairs = [_pair(sides, rules) for sides in combinations(found, 2)] if speeds else []
        for speed in speeds:
            tests = (_test(pair, speed, rules) for pair in pairs)
            yield _Level(kind, speed, found, [test for test in tests if test is not None])


def asked_speeds(cells: Sequence[CellResult]) -> list[float]:
    """The speeds per user that limits of the median TPOT ask for."""
    limits = (limit for cell in cells if cell.slo for limit in cell.slo.limits)
    return [*dict.fromkeys(1000 / each.limit_ms for each in limits if f"{each.metric}.{each.share}" == TPOT)]


def chosen(found: Sequence[Curve]) -> list[float]:
    """The round numbers nearest to the quarters of the range that most curves share, by ratio.

    Where none of them is in it, its middle to two digits.
    """
    ranges = [curve.range for curve in found]
    shared = []
    for low, _ in ranges:
        ends = [high for other, high in ranges if other <= low < high]
        if len(ends) > 1:
            shared.append((len(ends), min(ends) / low, low))
    _, ratio, low = max(shared, default=(0, 0.0, 0.0))
    if ratio < LEAST_RANGE:
        return []
    levels = dict.fromkeys(_round(low * ratio**part) for part in PARTS)
    return [level for level in levels if low <= level <= low * ratio] or [float(f"{low * ratio**0.5:.2g}")]


def _round(value: float) -> float:
    ten = 10.0 ** math.floor(math.log10(value))
    return min((step * ten for step in ROUND), key=lambda step: abs(math.log(step / value)))


def _pair(sides: tuple[Curve, Curve], rules: Rules) -> _Pair:
    """What stands between both at any load that they share."""
    shared = sorted(set.intersection(*({cell.point for cell in curve.cells} for curve in sides)))
    refused, apart = None if shared else "no load is on both curves", 0.0
    blocks = (
        [list(_at_load(sides, load)) for load in shared] if "blocks" in {side.unit for side in sides} else []
    )
    for load in shared:
        a, b = (
            Series(curve.label, tuple(cell for cell in curve.cells if cell.point == load)) for curve in sides
        )
        stands = obstacles(a, b, rules, None)
        # A rate that the load set is still what was carried at the speed that users had.
        reasons = {key: why for key, why in stands.refusals.items() if key != RATES}
        refused = refused or refusal(reasons, RATE) or refusal(reasons, TPOT)
        apart = max(apart, *(stands.apart.get(name, 0.0) for name in (RATE, "tpot_ms")))
    return _Pair(sides, refused, apart, independent_share(*blocks) if blocks else 1.0)


def _at_load(sides: tuple[Curve, Curve], load: LoadPoint) -> Iterator[float]:
    """Yields how far apart both are at a load in each unit, in speed and tokens/s together, as logarithms."""
    a, b = ({unit: mine[side.loads.index(load)] for unit, mine in side.points.items()} for side in sides)
    yield from (math.log(math.prod(a[unit]) / math.prod(b[unit])) for unit in sorted(a.keys() & b.keys()))


def _test(pair: _Pair, speed: float, rules: Rules) -> _Test | None:
    """None where a curve does not hold the speed."""
    a, b = (curve.at(speed) for curve in pair.sides)
    if not a or not b:
        return None
    shared = sorted(a.keys() & b.keys())
    # Paired by repeat or start: both then ran within the same hour of the same machine.
    mine, other = (_logarithms([curve[number] for number in shared]) for curve in (a, b))
    ways = (mine[1] - other[1], mine[0] - other[2], mine[2] - other[0])
    lacks = _lacks(ways[0], pair, rules)
    if pair.refused or lacks:
        return _Test(pair, lacks)
    shift = _shift(ways, pair.unit, sum(curve.rounded(speed) for curve in pair.sides), pair.independent)
    loads = {cell.point.label for curve in pair.sides for cell in curve.cells}
    limits = Limits.of_work(rules, [curve.label for curve in pair.sides], loads, RATE, pair.apart)
    return _Test(pair, "", shift, limits.p_apart(shift), limits.p_same(shift))


def _logarithms(found: Sequence[Between]) -> Floats:
    """Rows of the low ends, the middles and the high ends."""
    return np.log([(each.low, each.middle, each.high) for each in found]).reshape(-1, 3).T


def _lacks(values: Floats, pair: _Pair, rules: Rules) -> str:
    """A sentence if there are too few values, or blocks of one start are too much alike; else ""."""
    count = len(values)
    if count < rules.min_runs:
        return f"{counted(count, _NAMES[pair.unit])} with both curves, {rules.min_runs} are needed"
    independent = count * min(independent_share(values.tolist()), pair.independent)
    if pair.unit != "blocks" or independent >= LEAST_INDEPENDENT:
        return ""
    return f"{count} blocks are worth {independent:.2g} independent ones, {LEAST_INDEPENDENT} are needed"


def _shift(ways: Sequence[Floats], unit: Unit, rounded: float, independent: float = 1.0) -> Either:
    """The mean over units. `ways`: the middle of what may lie between two loads first, then its ends.

    `independent`: which share of blocks of one start may be so at the most.
    """
    shares = [
        min(independent_share(values.tolist()), independent) if unit == "blocks" else 1.0 for values in ways
    ]
    shifts = (Shift.of_mean(values).of_rounded(rounded) for values in ways)
    return Either(tuple(shift.of_fewer(share) for shift, share in zip(shifts, shares, strict=True)))


def _figure(curve: Curve, speed: float, min_runs: int) -> SpeedFigure:
    found = curve.at(speed)
    if not found:
        return SpeedFigure(label=curve.label, reach=curve.reach(speed))
    low, middle, high = _logarithms(list(found.values()))
    interval = None
    if len(found) >= min_runs:
        interval = exponential(_shift((middle, low, high), curve.unit, curve.rounded(speed)).interval())
    return SpeedFigure(
        label=curve.label,
        reach="within",
        loads=curve.around(speed),
        tokens_per_s=math.exp(middle.mean()),
        interval=interval,
    )


def _verdict(test: _Test, judged: tuple[float, float] | None, rules: Rules) -> SpeedPair:
    """`judged`: p of a difference, and of `same`, as members of the family."""
    a, b = (curve.label for curve in test.pair.sides)
    if test.pair.refused:
        return SpeedPair(a=a, b=b, verdict="not comparable", why=test.pair.refused)
    if test.shift is None or judged is None:
        return SpeedPair(a=a, b=b, verdict="undecided", why=test.lacks)
    alpha, (p_apart, p_same) = rules.look_alpha, judged
    ratio = exponential(test.shift.interval(1 - alpha))
    found: SpeedVerdict = "undecided"
    if p_apart < alpha:
        found = "more" if ratio.estimate > 1 else "fewer"
    elif p_same < alpha:
        found = "same"
    why = _would_help(test.pair.unit, test.shift, alpha) if found == "undecided" else ""
    return SpeedPair(a=a, b=b, verdict=found, ratio=ratio, p_holm=p_apart, why=why)


def _would_help(unit: Unit, shift: Either, alpha: float) -> str:
    """More loads where the shape between loads is the larger error, else more repeats."""
    middle, low, high = shift.ways
    noise = 2 * t_quantile(1 - alpha / 2, middle.freedom) * middle.error
    return MORE_LOADS if high.estimate - low.estimate > noise else f"more {_NAMES[unit]}s would say more"
