"""Loads that a sweep lacks for a verdict at equal speed per user. Knows no output format."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from harness.model import Summary
from harness.model.per_user import SpeedLevel
from harness.report.findings.per_user_words import speed_words, why_no_speed
from harness.report.wording import are, listing
from harness.verdicts.per_user import LEAST_RANGE, MORE_LOADS, asked_speeds
from harness.verdicts.speed_curves import KINDS, Curve, Kind, curves

BEYOND = 1.1  # times the TPOT that is wanted: repeats differ, and each has to reach it
MOST_TIMES = 64  # the highest load that was measured: farther a line through two loads says nothing


class Lacking(NamedTuple):
    """`loads`: those of the run with those to add."""

    why: str
    kind: Kind
    loads: tuple[float, ...]


def missing_loads(summary: Summary) -> Iterator[Lacking]:
    """Nothing of a capacity search, whose loads nobody chose, nor loads beyond those of an open loop: at more
    requests/s than a server keeps up with it has no steady speed.
    """
    for kind in () if summary.capacity else KINDS:
        found, levels = curves(summary.cells, kind), [each for each in summary.per_user if each.kind == kind]
        if kind == "concurrency" and asked_speeds(summary.cells):
            for level in levels:
                yield from _outside(level, found)
        elif kind == "concurrency" and (why := why_no_speed(found)):
            yield from _apart(found, why)
        yield from _between(levels, kind, found)


def _apart(found: Sequence[Curve], why: str) -> Iterator[Lacking]:
    """What makes every backend as slow as the slowest one is at its best."""
    fastest = min(curve.range[1] for curve in found)
    if added := _higher(
        [curve for curve in found if LEAST_RANGE * curve.range[0] > fastest], fastest / LEAST_RANGE
    ):
        yield Lacking(why, "concurrency", _with(found, added))


def _outside(level: SpeedLevel, found: Sequence[Curve]) -> Iterator[Lacking]:
    """Backends that are faster or slower than the speed at every load, in some repeat at least."""
    part = " of some repeat" if any(each.reach == "not in every repeat" for each in level.figures) else ""
    speed, words = level.tokens_per_s_per_user, f"{speed_words(level)} at every load{part}"
    faster = [curve for curve in found if curve.range[0] > speed]
    if added := _higher(faster, speed):
        yield Lacking(f"{_who(faster)} faster than {words}", "concurrency", _with(found, added))
    slower = [curve for curve in found if curve.range[1] < speed and curve.loads[0].value > 1]
    if slower:
        lowest = min(curve.loads[0].value for curve in slower)
        added = [1.0, float(round(math.sqrt(lowest)))]
        yield Lacking(f"{_who(slower)} slower than {words}", "concurrency", _with(found, added))


def _who(found: Sequence[Curve]) -> str:
    return f"{listing([curve.label for curve in found])} {are(len(found))}"


def _higher(faster: Sequence[Curve], speed: float) -> list[float]:
    """Doubled loads up to that at which the line through the two highest has this speed for each; none if it
    is too far.
    """
    most = max((curve.loads[-1].value for curve in faster), default=0.0)
    wanted = max((_load_at(curve, BEYOND * 1000 / speed) for curve in faster), default=0.0)
    times = math.ceil(math.log2(wanted / most)) if 0 < most < wanted <= MOST_TIMES * most else 0
    return [most * 2**power for power in range(1, times + 1)]


def _load_at(curve: Curve, tpot_ms: float) -> float:
    (low, low_ms), (high, high_ms) = _ends(curve)
    each_ms = (high_ms - low_ms) / (high - low)
    return high + (tpot_ms - high_ms) / each_ms if each_ms > 0 else math.inf


def _ends(curve: Curve) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two highest loads with their TPOT, over all units."""
    speeds = [
        math.exp(math.fsum(math.log(mine[index][0]) for mine in curve.points.values()) / len(curve.points))
        for index in (-2, -1)
    ]
    first, second = zip(curve.loads[-2:], speeds, strict=True)
    return (first[0].value, 1000 / first[1]), (second[0].value, 1000 / second[1])


def _between(levels: Sequence[SpeedLevel], kind: Kind, found: Sequence[Curve]) -> Iterator[Lacking]:
    """The middle of the loads whose shape in between is the larger error of a pair."""
    read = [
        figure.loads
        for level in levels
        for pair in level.pairs
        for figure in level.figures
        if pair.why == MORE_LOADS and figure.label in (pair.a, pair.b)
    ]
    middles = {_middle(low.value, high.value, kind) for loads in read for low, high in pairwise(loads)}
    loads = _with(found, middles)
    if len(loads) > len(_with(found, ())):
        yield Lacking("loads between those measured would say more at equal speed per user", kind, loads)


def _middle(low: float, high: float, kind: Kind) -> float:
    middle = math.sqrt(low * high)
    return float(round(middle)) if kind == "concurrency" else float(f"{middle:.2g}")


def _with(found: Sequence[Curve], added: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted({*(load.value for curve in found for load in curve.loads), *added}))
