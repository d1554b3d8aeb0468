"""Chooses the next probe in the search for the highest load that keeps the limits."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from harness.model import CellResult
from harness.model.load import LoadKind
from harness.plan import Block, Cell, ProbeSizes, long_probe
from harness.verdicts.crossing import (
    AGAIN,
    Bracket,
    Crossing,
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

    `tried`: the probes so far, of all starts. `first`: index of the load with which a search begins.
    """
    return next(_steps(_Seen(loads, start, starts, tried, first)), None)


def _steps(seen: "_Seen") -> Iterator[Next]:
    """Yields the probe of each step that wants one, the most urgent first. Only the first is measured: the
    steps are asked again after each probe.
    """
    yield from _bracket(seen)
    yield from _settle(seen)
    yield from _reach_lower(seen)
    if seen.hopeless:
        yield from _try_lowest(seen)
    elif seen.decides:
        yield from _decide(seen)
    else:
        yield from _confirm_end(seen)
        yield from _try_other_end(seen)


class _Seen:
    """What a start of the engine has to go by: the probes of all starts that are as fast as it is."""

    def __init__(
        self, loads: Sequence[float], start: int, starts: int, tried: Sequence[CellResult], first: int
    ) -> None:
        self.loads, self.start, self.starts = loads, start, starts
        slow = slow_starts(*short_and_long(tried, starts), starts)
        self.is_slow = start in slow
        alike = [other for other in range(starts) if (other in slow) == self.is_slow]
        self.probes = of_starts(tried, starts, alike)
        self.short, self.long = short_and_long(self.probes, starts)
        self.counted = undisturbed(self.short, self.long, starts)
        self.left = bracket(self.short, self.counted)
        self.own = of_starts(self.probes, starts, (start,))
        _, self.own_long = short_and_long(self.own, starts)
        self.due = sum(other <= start for other in alike)  # long probes that count, after this start
        self.is_last = start == starts - 1
        self.against = list(contradictions(self.short, self.long, starts))
        self.first = first
        if slow and not self.short:  # those of the others bracket another capacity
            sure = self.left.sure
            self.first = loads.index(sure) if sure else _half(loads, refuted_at(self.counted))

    @property
    def all_kept(self) -> bool:
        """Whether no long probe failed."""
        return refuted_at(self.counted) == math.inf

    @property
    def needs_low_end(self) -> bool:
        """Whether this start is a slow one that has carried nothing for certain."""
        return self.is_slow and not self.left.sure

    @property
    def is_done(self) -> bool:
        """Whether this start has had its long probe."""
        had_enough = len(self.counted) >= self.due or len(self.own_long) >= MOST_SLOW
        return bool(self.own_long) and had_enough

    @property
    def is_free(self) -> bool:
        """Whether the search may have another long probe beyond those that each start has."""
        most = max(MOST_LONG, self.starts) + (MOST_AGAIN if self.against else 0)
        return self.is_last and len(self.long) < most

    @cached_property
    def crossing(self) -> Crossing:
        return crossing(self.short, self.counted)

    @property
    def hopeless(self) -> bool:
        """Whether the server surely fails at the lowest load, and no client spoiled what says so."""
        fails = bool(self.long) and self.crossing.quantile(HOPELESS) <= self.loads[0]
        return fails and not any(map(is_spoiled, self.counted))

    @property
    def decides(self) -> bool:
        """Whether a long probe is due in this start, or the answer is far below the estimate in the last."""
        if not self.is_done or (self.needs_low_end and len(self.own_long) < MOST_SLOW):
            return True
        found = self.crossing
        inside = found.quantile(0.9) > self.loads[0] and found.quantile(0.5) < self.loads[-1]
        return self.is_free and inside and not (found.narrow and self.left.sure > 0)


def _bracket(seen: _Seen) -> Iterator[Next]:
    """A short probe doubles the load until one fails, and halves what lies between, while no long one failed.

    It halves the load while none has kept the limits.
    """
    if not (seen.all_kept or seen.left.failed is None or seen.needs_low_end):
        return
    if (index := _next_short(seen.loads, seen.left, seen.first)) is not None:
        yield Next(index, False)


def _settle(seen: _Seen) -> Iterator[Next]:
    """A long probe goes to a load at which the probes contradict each other, first where this start's own
    is contradicted.
    """
    tried = {cell.load.value for cell in seen.own}
    long = Counter(cell.load.value for cell in seen.own_long)
    disputed = [at.load for at in seen.against if at.is_open(seen.start) and long[at.load] < AGAIN]
    own = [load for load in disputed if load in tried]
    free = not seen.is_done or seen.is_free  # a long probe is left for what others measured
    yield from (Next(seen.loads.index(load), True) for load in own or (disputed if free else ()))


def _reach_lower(seen: _Seen) -> Iterator[Next]:
    """A short probe halves the lowest load so far where the capacity may be below it."""
    if not seen.counted:
        return
    lowest = min(cell.load.value for cell in seen.short)
    if lowest > seen.loads[0] and (
        seen.left.unrefuted is None or (not seen.is_slow and seen.crossing.quantile(LOW_END) < lowest)
    ):
        yield Next(_half(seen.loads, lowest), False)


def _try_lowest(seen: _Seen) -> Iterator[Next]:
    """A short probe goes to the lowest load in the start after the first that failed there, and a long one
    follows where it kept the limits: that engine may have come out slow. Two such starts end the search.
    """
    begun = {cell.repeat % seen.starts for cell in seen.probes}
    if not seen.own and len(begun) < AGAIN:
        yield Next(0, False)
    elif seen.own and not seen.own_long and all(kept_limits(cell, short=True) for cell in seen.own):
        yield Next(0, True)


def _decide(seen: _Seen) -> Iterator[Next]:
    """A long probe goes where the capacity is as likely above as below: to the nearest load that had none in
    this start. After two, while none has kept the limits, it goes lower.
    """
    likely = seen.left.sure or len(seen.counted) < 2
    wanted = math.log(seen.crossing.quantile(0.5 if likely else UNKEPT))
    tested = {cell.load.value for cell in seen.own_long}
    untried = [index for index, load in enumerate(seen.loads) if load not in tested]
    if untried:
        yield Next(min(untried, key=lambda index: abs(math.log(seen.loads[index]) - wanted)), True)


def _confirm_end(seen: _Seen) -> Iterator[Next]:
    """A long probe goes to the load that only a short one failed, where all long ones kept the limits."""
    if seen.is_free and seen.left.failed is not None and seen.all_kept:
        yield Next(seen.loads.index(seen.left.failed), True)


def _try_other_end(seen: _Seen) -> Iterator[Next]:
    """A short probe goes to a load that others left behind, or kept, where this start has tried none: it may
    carry more, or less. A long one follows where the start keeps what was too much for the others, and is
    taken at once where a load was measured again in it: a queue may take longer to build than a short one
    lasts.
    """
    loads, left = seen.loads, seen.left
    if len(seen.own) == len(seen.probes):
        return
    keeps = [kept_limits(cell, short=cell.repeat < seen.starts) for cell in seen.own]
    was_long = {cell.load.value: cell.repeat >= seen.starts for cell in seen.own}
    if all(keeps) and left.failed is not None:
        enough = BRACKET * (left.too_much or left.failed)
        end = min(left.failed, next((load for load in loads if load >= enough), loads[-1]))
        if end not in was_long:
            yield Next(loads.index(end), False)
        elif end >= left.failed and not was_long[end]:
            yield Next(loads.index(end), True)
    elif not any(keeps) and left.sure and left.sure not in was_long:
        yield Next(loads.index(left.sure), len(seen.own_long) >= AGAIN)


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
