"""Curves of backends over the loads of a sweep: output tokens/s against speed per user.

A curve has a point per load and run, or start of several blocks, and is read between the loads. What shape it
has there is not known: what is read holds for all that harness/stats/between has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from harness.model import CellResult, LoadPoint, known, labels
from harness.model.grouping import grouped
from harness.model.json_path import number_at
from harness.model.per_user import Reach
from harness.stats.between import Between, Point, between, stretch
from harness.validity import blame, spoiled
from harness.verdicts.evidence import ALL, doubts, state_of
from harness.verdicts.pairs import MOST_TOGETHER
from harness.verdicts.ratio import rounding
from harness.verdicts.run_values import MOST_OUT, Series, Unit

TPOT, RATE = "tpot_ms.p50", "output_tokens_per_s"
STEADY = ("under load", "saturated")  # a server that falls behind has figures of the length of the run
Kind = Literal["concurrency", "rate"]
KINDS: tuple[Kind, ...] = ("concurrency", "rate")
Owner = Literal["GPU", "machine"]


@dataclass(frozen=True, slots=True)
class Curve:
    """`points` by repeat, or by start where it has several blocks: speed per user and tokens/s at each of the
    `loads`, from the lowest on.
    """

    label: str
    cells: tuple[CellResult, ...]
    loads: tuple[LoadPoint, ...]
    points: Mapping[int, tuple[Point, ...]]
    unit: Unit

    @property
    def range(self) -> Point:
        """The slowest and the fastest speed that every unit has."""
        low = max(min(x for x, _ in mine) for mine in self.points.values())
        return low, min(max(x for x, _ in mine) for mine in self.points.values())

    def at(self, speed: float) -> dict[int, Between]:
        """The tokens/s at this speed by unit; {} unless every unit has it."""
        read = {unit: between(mine, speed) for unit, mine in self.points.items()}
        found = {unit: value for unit, value in read.items() if value is not None}
        return found if len(found) == len(read) else {}

    def around(self, speed: float) -> tuple[LoadPoint, ...]:
        """The loads between which the tokens/s at this speed are read, in any unit."""
        if not self.at(speed):
            return ()
        first = {stretch(mine, speed) for mine in self.points.values()}
        return tuple(load for index, load in enumerate(self.loads) if {index, index - 1} & first)

    def rounded(self, speed: float) -> float:
        """Variance of the logarithm of tokens/s at this speed, by files that print few digits; else 0."""
        row = Series(self.label, self.cells)
        tpots, rates = ([number_at(cell, path) or 0.0 for cell in self.cells] for path in (TPOT, RATE))
        of_speed = math.sqrt(rounding(row, [tpots])) * speed / 1000
        if not of_speed:
            return 0.0
        slopes = (
            math.log(y2 / y1) / math.log(x1 / x2)
            for mine in self.points.values()
            for (x1, y1), (x2, y2) in pairwise(mine)
            if x1 >= speed >= x2 and x1 > x2
        )
        of_rate = math.sqrt(rounding(row, [rates])) / min(rates)
        return math.hypot(of_speed * max(map(abs, slopes), default=1.0), of_rate) ** 2

    def reach(self, speed: float) -> Reach:
        if self.at(speed):
            return "within"
        speeds = [x for mine in self.points.values() for x, _ in mine]
        if speed > max(speeds):
            return "never so fast"
        return "faster at every load" if speed < min(speeds) else "not in every repeat"


def gpus_of(cells: Sequence[CellResult]) -> int:
    """The GPUs of the engine; 0 if not known, or if there are none."""
    return min((len(cell.gpu.engine_gpus) if cell.gpu else 0 for cell in cells), default=0)


def owner_of(cells: Sequence[CellResult]) -> Owner:
    """Says whose tokens/s the curves have: those of a GPU where each engine's GPUs are known."""
    return "GPU" if gpus_of([cell for cell in cells if not cell.invalid]) else "machine"


def curves(cells: Sequence[CellResult], kind: Kind) -> list[Curve]:
    """The curve of each backend that has one, with the loads that every one of its repeats measured well."""
    mine = [cell for cell in cells if cell.load.kind == kind]
    if len(labels(mine)) > MOST_TOGETHER:
        return []
    owner = owner_of(cells)
    found = (_curve([cell for cell in mine if cell.label == label], owner) for label in labels(mine))
    return [curve for curve in found if curve is not None]


def _curve(mine: Sequence[CellResult], owner: Owner) -> Curve | None:
    """Loads that another load of the backend beats in both, by the geometric means, are not on its curve."""
    by_load = {
        load: found
        for load in sorted({cell.point for cell in mine})
        if (found := _at_load([cell for cell in mine if cell.point == load], owner))
    }
    units = sorted(set.intersection(*map(set, by_load.values()))) if by_load else []
    if not units:
        return None
    means = {load: _mean([points[unit] for unit in units]) for load, points in by_load.items()}
    kept = [
        load
        for load, (speed, rate) in means.items()
        if not any(x >= speed and y >= rate and (x, y) != (speed, rate) for x, y in means.values())
    ]
    kept.sort(key=lambda load: -means[load][0])
    if len(kept) < 2:
        return None
    cells = tuple(cell for cell in mine if cell.point in kept and not cell.invalid)
    points = {unit: tuple(by_load[load][unit] for load in kept) for unit in units}
    return Curve(mine[0].label, cells, tuple(kept), points, _unit(cells))


def _at_load(cells: Sequence[CellResult], owner: Owner) -> dict[int, Point]:
    """The point of each unit at one load, of a start the mean of its blocks; {} where a cell is no evidence.

    Blocks that the client or the machine spoiled, up to a third, are gaps instead.
    """
    unit = _unit(cells)
    kept = [cell for cell in cells if unit == "runs" or not _spoiled(cell)]
    found = [(cell, point) for cell in kept if (point := _point(cell, owner)) is not None]
    if len(found) < len(kept) or len(cells) - len(kept) > MOST_OUT * len(cells):
        return {}
    by_unit = grouped((_start_of(cell) if unit == "starts" else cell.repeat, point) for cell, point in found)
    return {number: _mean(points) for number, points in by_unit.items()}


def _unit(cells: Sequence[CellResult]) -> Unit:
    return Series(cells[0].label, tuple(cells)).unit


def _start_of(cell: CellResult) -> int:
    start = known(cell.start_number)
    return cell.repeat if start is None else start


def _spoiled(cell: CellResult) -> bool:
    blamed = blame(cell.validity) if cell.invalid else None
    return blamed is not None and spoiled(blamed[0])


def _point(cell: CellResult, owner: Owner) -> Point | None:
    """None where the cell is no evidence: failed, unsteady, behind its load, or without a figure."""
    tpot, rate = number_at(cell, TPOT), number_at(cell, RATE)
    unsteady = any(metric == ALL for metric, _ in doubts(cell))
    if cell.invalid or unsteady or state_of(cell) not in STEADY or not tpot or not rate:
        return None
    return 1000 / tpot, rate / (gpus_of([cell]) if owner == "GPU" else 1)


def _mean(points: Sequence[Point]) -> Point:
    speed, rate = np.exp(np.log(points).mean(axis=0)).tolist()
    return speed, rate
