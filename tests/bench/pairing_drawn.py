"""Drawn runs of paired engines, through the functions that give the verdicts of `bench run`.

The noise is the model of `pairing_study`: the machine's speed wanders for both engines, that of each by
itself, and a start has a speed of its own.
Minutes are computed from what blocks, runs and starts are given to take; nothing is measured.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from harness.model import CellResult, Load, LoadPoint
from harness.plan import backend_order
from harness.verdicts import Rules
from harness.verdicts.run_values import Series
from harness.verdicts.sequential import find_by_looks, looks_between, stand
from tests.factories.documents import made

METRIC, NAMES, STEP_S = "ttft_ms.p50", ("one", "two"), 0.1
POINT = LoadPoint("concurrency", 1)
BLOCKS = 8
_BLANK = made(CellResult, state="saturated", load=Load(kind="concurrency", value=1))
_LOOKS = {"starts": looks_between(3, 10), "blocks": looks_between(3, 10), "servers": looks_between(7, 40)}


@dataclass(frozen=True)
class Noise:
    """Spreads of the speed: of the machine, of each engine, of a start; and how long two of them last."""

    machine: float
    machine_s: float
    own: float
    own_s: float
    start: float

    @property
    def words(self) -> str:
        parts = [
            f"machine {self.machine:.0%} for {self.machine_s:g} s" if self.machine else "",
            f"each {self.own:.0%} for {self.own_s:g} s",
            f"start {self.start:.0%}" if self.start else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Times:
    """Seconds of a block and of a run, all in all, of the measured part of each, and of a start."""

    block_s: float = 8.0
    block_measured_s: float = 4.0
    run_s: float = 27.0
    run_measured_s: float = 22.0
    start_s: float = 20.0


class Course:
    """A speed that wanders."""

    def __init__(self, spread: float, lasts_s: float, drawn: np.random.Generator, seconds: float) -> None:
        steps = int(seconds / STEP_S) + 1
        kept = math.exp(-STEP_S / lasts_s)
        shocks = drawn.normal(0, math.sqrt(1 - kept**2), steps)
        shocks[0] = drawn.normal()
        for step in range(1, steps):
            shocks[step] += kept * shocks[step - 1]
        self._sums = np.concatenate([[0.0], np.cumsum(spread * shocks)])

    def mean(self, begin_s: float, lasts_s: float) -> float:
        first, last = int(begin_s / STEP_S), int((begin_s + lasts_s) / STEP_S)
        return float(self._sums[last] - self._sums[first]) / (last - first)


def decided(
    way: str, slower: float, noise: Noise, times: Times, drawn: np.random.Generator
) -> tuple[str, float]:
    """The word about the first, and the minutes until the run ended."""
    blocks = BLOCKS if way == "blocks" else 1
    looks = tuple(look * blocks for look in _LOOKS[way])
    rules = Rules(
        METRIC,
        (METRIC,),
        looks=looks,
        pairing="starts" if way == "starts" else "blocks",
        blocks=blocks,
    )
    cells: dict[str, list[CellResult]] = {name: [] for name in NAMES}
    ended_s, last = [], 0
    for index, cell in _cells(way, slower, noise, times, drawn, looks[-1]):
        name, clock_s = NAMES[index], cell.started_unix_ns / 1e9
        cells[name].append(cell)
        if (repeats := min(map(len, cells.values()))) in looks and repeats > last:
            last = repeats
            ended_s.append(clock_s)
            at_look = replace(rules, last_look=repeats)
            rows = {POINT: [Series(name, tuple(cells[name])) for name in NAMES]}
            if not stand(rows, at_look).needed:
                break
    (verdict,) = find_by_looks(rows, at_look)
    return verdict.verdict, ended_s[-1] / 60


def _cells(
    way: str, slower: float, noise: Noise, times: Times, drawn: np.random.Generator, repeats: int
) -> Iterator[tuple[int, CellResult]]:
    """In the order of their measurement. Begun when its time is over: only the order counts."""
    long = way == "starts"
    all_s, measured_s = (
        (times.run_s, times.run_measured_s) if long else (times.block_s, times.block_measured_s)
    )
    per_start = {"starts": 1, "blocks": BLOCKS, "servers": repeats}[way]
    length_s = 2 * repeats * (all_s + times.start_s) + 100
    courses = [Course(noise.own, noise.own_s, drawn, length_s) for _ in NAMES]
    machine = Course(noise.machine, noise.machine_s, drawn, length_s)
    clock_s, own = 0.0, [0.0, 0.0]
    for repeat in range(repeats):
        for index in backend_order(2, repeat):
            if repeat % per_start == 0 and way != "servers":
                clock_s += times.start_s
                own[index] = drawn.normal(0, noise.start)
            clock_s += all_s
            wandered = sum(one.mean(clock_s - measured_s, measured_s) for one in (machine, courses[index]))
            log_ms = own[index] + wandered + index * math.log(slower)
            yield index, _cell(NAMES[index], way, repeat, per_start, clock_s, log_ms)


def _cell(label: str, way: str, repeat: int, per_start: int, clock_s: float, log_ms: float) -> CellResult:
    return made(
        CellResult,
        state="saturated",
        load=Load(kind="concurrency", value=1),
        cell=f"{label}-{repeat:03d}",
        label=label,
        repeat=repeat,
        launch="attach" if way == "servers" else "process",
        workload_sha256=f"w{repeat}",
        started_unix_ns=int(clock_s * 1e9),
        ttft_ms={"p50": 100 * math.exp(log_ms)},
        client={"wall_s": 4.0},
        **({} if way == "starts" else {"start_number": repeat // per_start}),
    )
