"""Drawn runs of paired engines, through the functions that give the verdicts of `bench run`.

The noise is the model of `pairing_study`: the machine's speed wanders for both engines, that of each by
itself, and a start has a speed of its own.
Minutes are computed from what blocks, runs and starts are given to take; nothing is measured.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from harness.model import CellResult, Load, LoadPoint
from harness.model.choices import Pairing
from harness.plan import backend_order
from harness.verdicts import Rules
from harness.verdicts.run_values import Series
from harness.verdicts.sequential import find_by_looks, looks_between, take_look
from tests.factories.documents import made

METRIC, NAMES, STEP_S = "ttft_ms.p50", ("one", "two"), 0.1
POINT = LoadPoint("concurrency", 1)
BLOCKS = 8
RUNNING = ("servers", "turns")  # whose starts are not drawn: by blocks, and by runs that take turns
_FEW = looks_between(3, 10)
_LOOKS = {"starts": _FEW, "blocks": _FEW, "servers": looks_between(10, 40), "turns": _FEW}


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


def pairing_of(way: str) -> Pairing:
    return "starts" if way in ("starts", "turns") else "blocks"


def decided(
    way: str, slower: float, noise: Noise, times: Times, drawn: np.random.Generator
) -> tuple[str, float]:
    """The word about the first, and the minutes until the run ended."""
    blocks = most = BLOCKS if way == "blocks" else 1
    looks = tuple(look * blocks for look in _LOOKS[way])
    rules = Rules(METRIC, (METRIC,), looks=looks, pairing=pairing_of(way), blocks=blocks)
    measured = _Measured(way, slower, noise, times, drawn, looks[-1])
    for repeat in range(looks[-1]):
        if repeat % blocks < most:
            measured.take(repeat)
        if repeat + 1 in looks:
            rows = {POINT: [Series(name, tuple(measured.cells[name])) for name in NAMES]}
            rules = replace(rules, last_look=repeat + 1)
            now = take_look(rows, rules)
            if not now.needed:
                break
            most = min(now.blocks or blocks, blocks)
    (verdict,) = find_by_looks(rows, rules)
    return verdict.verdict, measured.clock_s / 60


class _Measured:
    """Two engines on one machine. A cell begins when its time is over: only the order counts."""

    def __init__(
        self, way: str, slower: float, noise: Noise, times: Times, drawn: np.random.Generator, repeats: int
    ) -> None:
        self._way, self._slower, self._noise, self._times, self._drawn = way, slower, noise, times, drawn
        self._per_start = {"starts": 1, "blocks": BLOCKS}.get(way, repeats)
        whole = pairing_of(way) == "starts"
        self._all_s = times.run_s if whole else times.block_s
        self._measured_s = times.run_measured_s if whole else times.block_measured_s
        length_s = 2 * repeats * (self._all_s + times.start_s) + 100
        self._machine = Course(noise.machine, noise.machine_s, drawn, length_s)
        self._engines = [Course(noise.own, noise.own_s, drawn, length_s) for _ in NAMES]
        self._own = [0.0, 0.0]
        self.clock_s = 0.0
        self.cells: dict[str, list[CellResult]] = {name: [] for name in NAMES}

    def take(self, repeat: int) -> None:
        for index in backend_order(2, repeat):
            if repeat % self._per_start == 0 and self._way not in RUNNING:
                self.clock_s += self._times.start_s
                self._own[index] = self._drawn.normal(0, self._noise.start)
            self.clock_s += self._all_s
            courses = self._machine, self._engines[index]
            wandered = sum(one.mean(self.clock_s - self._measured_s, self._measured_s) for one in courses)
            log_ms = self._own[index] + wandered + index * math.log(self._slower)
            self.cells[NAMES[index]].append(self._cell(NAMES[index], repeat, log_ms))

    def _cell(self, label: str, repeat: int, log_ms: float) -> CellResult:
        return made(
            CellResult,
            state="saturated",
            load=Load(kind="concurrency", value=1),
            cell=f"{label}-{repeat:03d}",
            label=label,
            repeat=repeat,
            launch="attach" if self._way in RUNNING else "process",
            workload_sha256=f"w{repeat}",
            started_unix_ns=int(self.clock_s * 1e9),
            ttft_ms={"p50": 100 * math.exp(log_ms)},
            client={"wall_s": self._all_s},
            start={"load_s": self._times.start_s},
            **({} if pairing_of(self._way) == "starts" else {"start_number": repeat // self._per_start}),
        )
