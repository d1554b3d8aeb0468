"""Chooses the next probe in the search for the highest load that keeps the limits."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.model import CellResult
from harness.model.load import LoadKind
from harness.plan import Block, Cell, ProbeSizes, long_probe
from harness.verdicts.crossing import (
    Bracket,
    bracket,
    contradictions,
    crossing,
    refuted_at,
    short_and_long,
    undisturbed,
)
from harness.verdicts.slo_check import is_spoiled, time_in_system_s

BRACKET = 1.25  # ratio of the loads that short probes leave to the long ones
UNKEPT = 0.05  # probability that the capacity is below the load that follows two failed long probes
HOPELESS = 0.99  # probability that the capacity is below the lowest load, which ends a search there
LOW_END = 0.025  # probability that the capacity is below the low end of its interval
MOST_LONG = 5  # long probes of a search over all its starts, if it has no more starts
MOST_AGAIN = 2  # more of them, at loads where the probes contradict each other


class Next(NamedTuple):
    load_index: int  # in the ascending loads
    long: bool  # a probe that decides


def next_probe(
    loads: Sequence[float], start: int, starts: int, tried: Sequence[CellResult], first: int = 0
) -> Next | None:
    """The next load to try in this start of the engine; None at its end.

    `tried`: the probes so far, of all starts. Short ones double the load from that of the index `first` until
    one fails, and halve what lies between. They halve the load while none has kept the limits, and where the
    capacity may be below all that was tried. Long ones go to the load at which the capacity is as likely
    above as below, and to a lower one after two while none has kept the limits. There is one in each start,
    and more in the last one while the answer is far below the estimate, or where only a short one has failed.
    One goes to a load at which the probes contradict each other, before all others. A search ends where it
    surely fails at the lowest load.
    """
    short, long = short_and_long(tried, starts)
    counted = undisturbed(short, long)
    left = bracket(short, counted)
    kept = refuted_at(counted) == math.inf
    if (kept or left.failed is None) and (index := _next_short(loads, left, first)) is not None:
        return Next(index, False)
    against = list(contradictions(short, long))
    last, most = start == starts - 1, max(MOST_LONG, starts) + (MOST_AGAIN if against else 0)
    disputed = next((at.load for at in against if at.open), None)
    if disputed is not None and len(long) < (most if last else start + 1):
        return Next(loads.index(disputed), True)
    found = crossing(short, counted)
    lowest = min(cell.load.value for cell in short)
    if counted and lowest > loads[0] and (left.unrefuted is None or found.quantile(LOW_END) < lowest):
        return Next(_half(loads, lowest), False)
    if long and found.quantile(HOPELESS) <= loads[0] and not any(map(is_spoiled, counted)):
        return None
    inside = found.quantile(0.9) > loads[0] and found.quantile(0.5) < loads[-1]
    more = last and inside and not (found.narrow and left.sure) and len(long) < most
    if len(long) > start and not more:
        # All kept the limits: it was a short one that ended the search.
        walled = last and left.failed is not None and kept and len(long) < most
        return Next(loads.index(left.failed), True) if walled else None
    here = {cell.load.value for cell in long if cell.repeat % starts == start}
    wanted = math.log(found.quantile(0.5 if left.sure or len(counted) < 2 else UNKEPT))
    free = [index for index, load in enumerate(loads) if load not in here]
    nearest = min(free, key=lambda index: abs(math.log(loads[index]) - wanted), default=None)
    return None if nearest is None else Next(nearest, True)


def usually_at_most(loads: Sequence[float], starts: int) -> int:
    """Probes of a search: those that double the load, two that halve what lies between, and the long ones.

    A long probe that contradicts a short one, and one that the client spoiled, can add some.
    """
    return math.ceil(math.log2(loads[-1] / loads[0])) + 3 + max(MOST_LONG, starts)


def _next_short(loads: Sequence[float], found: Bracket, first: int) -> int | None:
    if found.kept is None:
        if found.failed is None:
            return first
        return _half(loads, found.failed) if found.failed > loads[0] else None
    if found.kept == loads[-1]:
        return None
    if found.too_much is None:
        doubled = (index for index, load in enumerate(loads) if load >= 2 * found.kept)
        return next(doubled, len(loads) - 1)
    between = [index for index, load in enumerate(loads) if found.kept < load < found.too_much]
    if not between or found.too_much <= BRACKET * found.kept:
        return None
    return between[(len(between) - 1) // 2]


def _half(loads: Sequence[float], load: float) -> int:
    return max((index for index, lower in enumerate(loads) if lower <= load / 2), default=0)


def first_load(loads: Sequence[float], kind: LoadKind) -> int:
    """Index of the load with which a search begins: the lowest, or of a closed loop the middle one.

    There the same number of answers takes longest at the lowest load, and too many slots only wait.
    """
    middle = math.log(loads[0] * loads[-1]) / 2
    distances = [abs(math.log(load) - middle) for load in loads]
    return distances.index(min(distances)) if kind == "concurrency" else 0


def probes(
    block: Block, starts: int, sizes: ProbeSizes, measured: Callable[[], Sequence[CellResult]]
) -> Iterator[Cell]:
    """Yields the cells that a search still needs; each must be measured before the next is taken.

    `measured` returns the summaries of this backend's cells so far.
    """
    points = [cell.load for cell in block.cells]
    loads = [point.value for point in points]
    first = first_load(loads, points[0].kind)
    tried: list[CellResult] = []
    for start in range(block.repeat + 1):
        while (wanted := next_probe(loads, start, starts, tried, first)) is not None:
            load = loads[wanted.load_index]
            repeat = repeat_of(load, start, starts, tried) if wanted.long else start
            results = {(result.load.value, result.repeat): result for result in measured()}
            result = results.get((load, repeat))
            if result is not None:
                tried.append(result)
            elif start < block.repeat:
                break
            else:
                answer_s = _answer_s(tried, loads[0], starts)
                cell, point = block.cells[wanted.load_index], points[wanted.load_index]
                if wanted.long:
                    yield long_probe(cell, repeat - start, sizes.long(point, answer_s))
                else:
                    yield replace(cell, probe=sizes.short(point, answer_s))


def repeat_of(load: float, start: int, starts: int, tried: Sequence[CellResult]) -> int:
    """The repeat of the next long probe of a load. It is `start` by modulo, and no earlier one has it."""
    before = [cell for cell in tried if cell.load.value == load and cell.repeat % starts == start]
    return start + starts * (1 + sum(cell.repeat >= starts for cell in before))


def _answer_s(tried: Sequence[CellResult], lowest: float, starts: int) -> float:
    """Mean time of an answer in the first short probe of the lowest load, in s; 0 if there is none."""
    short, _ = short_and_long(tried, starts)
    backlogs = (cell.backlog for cell in short if cell.load.value == lowest)
    return next((time_in_system_s(backlog) for backlog in backlogs if backlog), 0.0)
