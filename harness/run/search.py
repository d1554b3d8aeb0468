"""Chooses the next probe in the search for the highest load that keeps the limits."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.model import CellResult
from harness.model.load import LoadKind
from harness.plan import Block, Cell, ProbeSizes, long_probe
from harness.verdicts.crossing import (
    AGAIN,
    Bracket,
    Contradiction,
    bracket,
    contradictions,
    crossing,
    of_starts,
    refuted_at,
    short_and_long,
    slow_starts,
    undisturbed,
)
from harness.verdicts.slo_check import is_spoiled, kept_limits, time_in_system_s

BRACKET = 1.25  # ratio of the loads that short probes leave to the long ones
UNKEPT = 0.05  # probability that the capacity is below the load that follows two failed long probes
HOPELESS = 0.99  # probability that the capacity is below the lowest load, which ends a search there
LOW_END = 0.025  # probability that the capacity is below the low end of its interval
MOST_LONG = 5  # long probes of a search over all its starts, if it has no more starts
MOST_AGAIN = 2  # more of them, at loads where the probes contradict each other
MOST_SLOW = 4  # long probes of a start that leave nothing to count, or of a slow one that has kept none


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
    One goes to a load at which the probes contradict each other, before all others, and again in the start
    whose probe is contradicted. A start that is slow each time has a search of its own. A later start ends
    with a short probe of the end of the bracket that is new to it. A search ends where it surely fails at the
    lowest load.
    """
    slow = slow_starts(*short_and_long(tried, starts), starts)
    alike = [other for other in range(starts) if (other in slow) == (start in slow)]
    probes = of_starts(tried, starts, alike)
    short, long = short_and_long(probes, starts)
    counted = undisturbed(short, long, starts)
    left = bracket(short, counted)
    kept = refuted_at(counted) == math.inf
    unknown = start in slow and not left.sure
    if slow and not short:  # those of the others bracket another capacity
        first = loads.index(left.sure) if left.sure else _half(loads, refuted_at(counted))
    if (kept or left.failed is None or unknown) and (index := _next_short(loads, left, first)) is not None:
        return Next(index, False)
    own, here = (of_starts(cells, starts, (start,)) for cells in (probes, long))
    due = sum(other <= start for other in alike)
    done = bool(here) and (len(counted) >= due or len(here) >= MOST_SLOW)
    last = start == starts - 1
    against = list(contradictions(short, long, starts))
    most = max(MOST_LONG, starts) + (MOST_AGAIN if against else 0)
    free = not done or (last and len(long) < most)
    if (disputed := _disputed(against, start, starts, own, free=free)) is not None:
        return Next(loads.index(disputed), True)
    found = crossing(short, counted)
    lowest = min(cell.load.value for cell in short)
    below = left.unrefuted is None or (start not in slow and found.quantile(LOW_END) < lowest)
    if counted and lowest > loads[0] and below:
        return Next(_half(loads, lowest), False)
    if long and found.quantile(HOPELESS) <= loads[0] and not any(map(is_spoiled, counted)):
        return None
    inside = found.quantile(0.9) > loads[0] and found.quantile(0.5) < loads[-1]
    more = last and inside and not (found.narrow and left.sure) and len(long) < most
    if done and not more and not (unknown and len(here) < MOST_SLOW):
        # All kept the limits: it was a short one that ended the search.
        walled = last and left.failed is not None and kept and len(long) < most
        if walled:
            return Next(loads.index(left.failed), True)
        return _other_end(loads, start, starts, probes, left)
    tested = {cell.load.value for cell in here}
    wanted = math.log(found.quantile(0.5 if left.sure or len(counted) < 2 else UNKEPT))
    untried = [index for index, load in enumerate(loads) if load not in tested]
    nearest = min(untried, key=lambda index: abs(math.log(loads[index]) - wanted), default=None)
    return None if nearest is None else Next(nearest, True)


def _disputed(
    against: Sequence[Contradiction], start: int, starts: int, here: Sequence[CellResult], *, free: bool
) -> float | None:
    """A load that a long probe of this start is to decide. `free`: one is left for what others measured."""
    own = {cell.load.value for cell in here}
    long = Counter(cell.load.value for cell in here if cell.repeat >= starts)
    disputed = [at.load for at in against if at.is_open(start) and long[at.load] < AGAIN]
    return next((load for load in disputed if load in own), next(iter(disputed), None) if free else None)


def _other_end(
    loads: Sequence[float], start: int, starts: int, probes: Sequence[CellResult], left: Bracket
) -> Next | None:
    """A short probe of a load that others left behind, or kept, where this start has tried none: it may carry
    more, or less. A long one follows where the start keeps what was too much for the others, and is taken at
    once where a load was measured again in it: a queue may take longer to build than a short one lasts.
    """
    here = of_starts(probes, starts, (start,))
    if len(here) == len(probes):
        return None
    keeps = [kept_limits(cell, short=cell.repeat < starts) for cell in here]
    was_long = {cell.load.value: cell.repeat >= starts for cell in here}
    if all(keeps) and left.failed is not None:
        enough = BRACKET * (left.too_much or left.failed)
        end = min(left.failed, next((load for load in loads if load >= enough), loads[-1]))
        if end not in was_long:
            return Next(loads.index(end), False)
        return Next(loads.index(end), True) if end >= left.failed and not was_long[end] else None
    if any(keeps) or not left.sure or left.sure in was_long:
        return None
    return Next(loads.index(left.sure), sum(cell.repeat >= starts for cell in here) >= AGAIN)


def usually_at_most(loads: Sequence[float], starts: int) -> int:
    """Probes of a search: those that double the load, two that halve what lies between, the long ones, and a
    short one of each further start.

    A long probe that contradicts a short one, and one that the client spoiled, can add some.
    """
    return math.ceil(math.log2(loads[-1] / loads[0])) + 3 + max(MOST_LONG, starts) + starts - 1


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
