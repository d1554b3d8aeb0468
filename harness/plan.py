"""Scenario × backends × load points × repeats, as an ordered list of cells. Pure: no clock, no network."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from typing import Literal

from harness.model import LoadPoint
from harness.model.choices import Pairing
from harness.spec.scenario import Load, Prompts, Scenario, SharedPrefix, turns_of


@dataclass(frozen=True, slots=True)
class Probe:
    """The least size of a cell that tries one load of a capacity search."""

    seconds: float  # of an open loop, so that a queue can build
    answers: int  # so that the share of them within a limit has a confidence bound
    waves: int = 10  # of a closed loop, whose queue does not grow with time: answers of each slot


@dataclass(frozen=True, slots=True)
class Cell:
    name: str  # 003-llamacpp-c8-r0: unique in the run, sorts in plan order
    backend: int  # index into the run's backends
    load: LoadPoint
    repeat: int
    probe: Probe | None = None  # the least size, in a capacity search
    start: int | None = None  # of all engines together; None: they are not up together


@dataclass(frozen=True, slots=True)
class Block:
    """Cells of one engine, one after the other, in one life: it is started before the first and stopped after
    the last.

    Blocks of one `start` share the lives of their engines, which are all up together.
    """

    backend: int
    repeat: int
    cells: tuple[Cell, ...]
    start: int | None = None

    @property
    def life(self) -> int:
        """Number of the life, from 0."""
        return self.repeat if self.start is None else self.start


def load_points(load: Load) -> tuple[LoadPoint, ...]:
    if load.working_set:
        return tuple(LoadPoint("working-set", value) for value in load.working_set)
    if load.concurrency:
        return tuple(LoadPoint("concurrency", value) for value in load.concurrency)
    if load.rate:
        return tuple(LoadPoint("rate", value) for value in load.rate)
    return tuple(LoadPoint("trace", value) for value in load.replay_speed)


def highest_load(load: Load) -> LoadPoint:
    """Returns the load point of the largest value, which may stand anywhere in the list."""
    return max(load_points(load), key=lambda point: point.value)


def slots_of(load: Load, point: LoadPoint) -> int | None:
    """Returns the slots of a closed loop; None for an open one."""
    if point.kind == "working-set":
        return load.concurrency[0]
    return int(point.value) if point.kind == "concurrency" else None


def prefixes(scenario: Scenario, point: LoadPoint) -> int:
    """Prefixes that make the working set of this point; 0 if its load is no working set, or if the
    size of the KV cache is not known yet.

    1 at least. Of a working set of 0 each prefix is asked for once: as many as there are requests.
    """
    load, prompts = scenario.load, scenario.prompts
    if point.kind != "working-set" or load.kv_tokens is None or not isinstance(prompts, SharedPrefix):
        return 0
    if not point.value:
        return load.requests + load.warmup_requests
    return max(1, math.floor(point.value * load.kv_tokens / prompts.held_tokens + 1e-9))


def prompts_at(scenario: Scenario, point: LoadPoint) -> Prompts:
    """The prompts of one load point: of a working set with its prefixes."""
    groups = prefixes(scenario, point)
    if not groups or not isinstance(scenario.prompts, SharedPrefix):
        return scenario.prompts
    if not point.value:
        return replace(scenario.prompts, groups=groups, order="cyclic", zipf_exponent=0.0)
    return replace(scenario.prompts, groups=groups)


def warmup_requests(scenario: Scenario, point: LoadPoint) -> int:
    """Requests before the measured ones. In a closed loop they last until its common start is forgotten.

    The first wave begins at one moment and is a burst. Where the start is spread, the second wave leaves over
    the time of one answer, while fewer requests are in flight than slots. Slots that are quicker for it send
    again meanwhile, all together at most as often as a full load answers in that time: a third wave.
    Sessions are warm-up with all their turns, since these stand together in the workload.
    Of a working set every prefix comes once.
    """
    asked = scenario.load.warmup_requests
    if point.kind == "working-set":
        return max(asked, prefixes(scenario, point) if point.value else 0)
    if not asked or point.kind != "concurrency":
        return asked
    slots, turns = int(point.value), turns_of(scenario.prompts)
    spread = slots > 1 and start_of(scenario, point) == "spread"
    sessions = 2 * slots + math.ceil(slots / turns) if spread else slots
    return max(asked, sessions * turns)


SHORTER, SHORT_ANSWERS, SHORT_ANSWER_TIMES = 6, 10, 4
LONG_ANSWERS, LONG_NEEDED, LONG_ANSWER_TIMES = 1200, 6, 12
MOST_LONGER = 5  # times the least seconds of a long probe


@dataclass(frozen=True, slots=True)
class ProbeSizes:
    """Holds how large the probes of a capacity search are: short ones bracket the capacity, long ones decide.

    `answer_s` is the mean time of an answer at the lowest load, 0 where it is not known.
    """

    seconds: float  # of a long probe of an open loop, at least
    needed: int  # answers that the limits need
    requests: int  # of a load point, at least: those of the scenario

    def short(self, point: LoadPoint, answer_s: float = 0.0) -> Probe:
        if point.kind == "concurrency":
            return Probe(self.seconds, max(self.needed, self.requests))
        usual = max(self.seconds / SHORTER, SHORT_ANSWER_TIMES * answer_s, SHORT_ANSWERS / point.value)
        return Probe(min(usual, self.seconds), 1)

    def long(self, point: LoadPoint, answer_s: float = 0.0) -> Probe:
        if point.kind == "concurrency":
            return Probe(self.seconds, max(4 * self.needed, self.requests), waves=40)
        answers = max(LONG_ANSWERS, LONG_NEEDED * self.needed)
        usual = max(self.seconds, LONG_ANSWER_TIMES * answer_s, answers / point.value)
        return Probe(min(usual, MOST_LONGER * self.seconds), max(self.needed, self.requests))

    def most(self, point: LoadPoint) -> Probe:
        """The largest probe of this load, however long its answers are."""
        return self.long(point, math.inf)


def measured_requests(load: Load, point: LoadPoint, probe: Probe | None = None) -> int:
    """Counts requests without warm-up. `probe`: of a capacity search."""
    if probe is None:
        return load.requests
    shape = math.ceil(point.value * probe.seconds) if point.kind == "rate" else probe.waves * int(point.value)
    return max(shape, probe.answers)


def all_requests(scenario: Scenario, point: LoadPoint, probe: Probe | None = None) -> int:
    """Warm-up included."""
    return measured_requests(scenario.load, point, probe) + warmup_requests(scenario, point)


def start_of(scenario: Scenario, point: LoadPoint) -> Literal["spread", "together"] | None:
    """Returns how the slots of a closed loop begin: over the time of one answer, or all at once. None: no
    slots.

    Spread only where the whole first wave is warm-up: until all have begun, fewer requests are in flight.
    """
    if slots_of(scenario.load, point) is None:
        return None
    return "spread" if scenario.load.start == "spread" and scenario.load.warmup_requests else "together"


def most_requests(scenario: Scenario, sizes: ProbeSizes | None = None) -> int:
    """Returns the largest number of any load point, warm-up included."""
    return max(
        all_requests(scenario, point, sizes.most(point) if sizes else None)
        for point in load_points(scenario.load)
    )


# Loads of a capacity search: neighbours are at most 2.3% apart.
GRID_STEPS = 32  # to a doubling
GRID_SPAN = 64


def capacity_grid(load: Load) -> Load:
    """The load with ascending points from the lowest given to the highest, or to 64 times the only one."""
    given = load.concurrency or load.rate
    low, high = min(given), max(given) if len(given) > 1 else min(given) * GRID_SPAN
    steps = max(math.ceil(GRID_STEPS * math.log2(high / low) - 1e-9), 1)
    values = [low * (high / low) ** (index / steps) for index in range(steps + 1)]
    if load.concurrency:
        return replace(load, concurrency=tuple(sorted({round(value) for value in values})))
    return replace(load, rate=tuple(sorted({float(f"{value:.4g}") for value in values})))


def long_probe(cell: Cell, repeats: int, probe: Probe) -> Cell:
    """A second cell of the same load and the same life of the engine, longer and with requests of its own.

    Its `repeat` is beyond those of the plan: modulo `repeats` it is the search's.
    """
    repeat = cell.repeat + repeats
    name = cell.name.rpartition("-")[0] + f"-r{repeat}"
    return replace(cell, name=name, repeat=repeat, probe=probe)


def backend_order(count: int, repeat: int) -> list[int]:
    """ABBA for two, rotated and reversed alternately for more, so that drift does not favour a position."""
    turn = (repeat // 2) % count
    order = [(index + turn) % count for index in range(count)]
    return order[::-1] if repeat % 2 else order


def make_plan(labels: Sequence[str], load: Load, repeats: int) -> tuple[Block, ...]:
    points = load_points(load)
    return tuple(_blocks(labels, points, repeats))


def _blocks(labels: Sequence[str], points: Sequence[LoadPoint], repeats: int) -> Iterator[Block]:
    number, planned = 0, repeats * len(labels) * len(points)
    for repeat in range(repeats):
        for backend in backend_order(len(labels), repeat):
            cells = []
            for point in points:
                name = point.cell_name(labels[backend], repeat, number, planned)
                cells.append(Cell(name, backend, point, repeat))
                number += 1
            yield Block(backend, repeat, tuple(cells))


def make_paired_plan(labels: Sequence[str], load: Load, starts: int, blocks: int) -> tuple[Block, ...]:
    """Engines that are up together take turns: in each of `starts`, so many cells of each at a load point."""
    points, repeats = load_points(load), starts * blocks
    turns = [
        (point, repeat, backend)
        for repeat in range(repeats)
        for point in points
        for backend in backend_order(len(labels), repeat)
    ]
    return tuple(
        Block(backend, repeat, (Cell(name, backend, point, repeat, start=start),), start)
        for number, (point, repeat, backend) in enumerate(turns)
        for name in [point.cell_name(labels[backend], repeat, number, len(turns))]
        for start in [repeat // blocks]
    )


def together(blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """Divides blocks into those between which no engine is stopped."""
    own = count(-1, -1)  # a number of no start
    lives = groupby(blocks, lambda block: next(own) if block.start is None else block.start)
    return (tuple(group) for _, group in lives)


def turns(blocks: Sequence[Block], pairing: Pairing) -> Iterator[tuple[Block, ...]]:
    """Divides blocks into those that are loaded at the same moments."""
    if pairing != "duet":
        return ((block,) for block in blocks)
    cells = (block for block in blocks if block.cells)
    return (tuple(group) for _, group in groupby(cells, lambda block: (block.repeat, block.cells[0].load)))


def one_cell_each(block: Block) -> Iterator[Block]:
    """The engine is started again for every cell."""
    return (replace(block, cells=(cell,)) for cell in block.cells)


def in_one_life(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """All repeats of one backend without a start between them."""
    return (replace(blocks[0], cells=tuple(cell for block in blocks for cell in block.cells)),)


def seed_for(seed: int, dimension: str, *position: object) -> int:
    """One independent stream per dimension (prompts, arrivals, …) and place in the plan.

    Backends are never part of the place: every backend gets the same bytes at the same times.
    """
    text = ":".join(map(str, (seed, dimension, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
