"""Estimates the load up to which a backend keeps the scenario's limits, from the probes of a search."""

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.model import CellResult, Limit, known
from harness.model.figures import share_of
from harness.model.grouping import grouped
from harness.stats.crossing import CLEAR, Count, above, places
from harness.verdicts.slo_check import is_spoiled, kept_limits, refuted

# So many requests say as much as one that has nothing in common with its neighbours: in an open loop a burst
# delays many, in a closed loop slots take turns.
AS_ONE = {"rate": 12.0, "concurrency": 2.0}
# Parts of what a limit allows that may miss it at every load: in a closed loop nobody waits while slots are
# free, and what misses there takes long by itself. In an open loop bursts wait at every load.
FLOORS = {"rate": (0.0,), "concurrency": (0.0, 0.2, 0.4, 0.6, 0.8)}
# Short probes can be wrong: the capacity is looked for in a range that is wider by these factors.
BELOW, ABOVE = 0.8, 1.15
# A load so many times the rate at which requests leave is surely too much; that rate is known within a share.
OVERLOADED, LEFT = 1.5, 1.03
NARROW = 1.05  # ratio of an estimate to its end at 10% that needs no more probes
MOST_BEYOND = 0.05  # target of a limit that no request may miss: a miss counts as if all had
# A load has not so small a part of the share beyond a limit that a lower one has, and a server that is given
# more has not so many times fewer answers per second: another probe tells.
LESS, MORE = 0.5, 1.1
AGAIN = 2  # probes that agree are believed
# A probe that missed a limit so many times over is doubted where one at that load or above has LESS of its
# share beyond it. A long one that missed it by less is doubted where another long one there has FAR_LESS.
DOUBTED, FAR_LESS = 2.0, 0.2


@dataclass(frozen=True, slots=True)
class Bracket:
    """What short probes leave."""

    kept: float | None  # highest load that kept the limits in a short probe, below all that failed
    unrefuted: float | None  # the same, below all that failed in a long one too
    sure: float  # highest load that kept them in a long one, 0 where none did
    failed: float | None  # lowest load that failed
    left: float  # rate that surely is too much, inf where none is known

    @property
    def too_much(self) -> float | None:
        return self.failed and min(self.failed, max(self.left, self.kept or 0.0))


def short_and_long(probes: Sequence[CellResult], starts: int) -> tuple[list[CellResult], list[CellResult]]:
    """Probes of a search by their length: repeats from `starts` on are long ones."""
    short = [cell for cell in probes if cell.repeat < starts]
    return short, [cell for cell in probes if cell.repeat >= starts]


def refuted_at(long: Sequence[CellResult]) -> float:
    """The lowest load at which a long probe failed; inf where none did."""
    return min((cell.load.value for cell in long if not kept_limits(cell)), default=math.inf)


class Contradiction(NamedTuple):
    """A load at which a probe failed, and another probe says that it is carried.

    The server does not explain both: something disturbed the one, or the other was too short.
    """

    load: float
    clear: float  # times what the limit allows, from which on a probe failed as the doubted one did
    # The start of each probe that did, and that no long one of its start contradicts.
    failed_in: tuple[int, ...]
    outvoted: bool  # by more long ones that did not
    carried_in: frozenset[int]  # starts in which a long one did not

    def is_open(self, start: int) -> bool:
        """Whether another long probe in this start would tell which to trust.

        Two in one start tell that it is no disturbance, and one in another start whether it is the start.
        """
        if start in self.failed_in:
            return self.failed_in.count(start) < AGAIN and len({*self.failed_in}) < AGAIN
        return not self.outvoted and len({*self.failed_in}) < AGAIN


class _Probed(NamedTuple):
    load: float
    start: int
    long: bool
    times: float  # the share beyond a limit over the share that may be, in the worst limit
    per_s: float  # answers
    swings: bool  # a queue alone speaks against it, which may swing so near the capacity

    @property
    def clear(self) -> float:
        """The times from which on another probe fails as this one does."""
        return min(CLEAR, max(1.0, LESS * self.times))

    def carries(self, failed: "_Probed") -> bool:
        """Whether this is a long probe that did far better at the load of another one, or above."""
        return self.long and self.load >= failed.load and self.times < failed.clear

    def contradicts(self, failed: "_Probed") -> bool:
        """Whether no engine explains both: this one did far better at that load or above, or had more answers
        per second than a long one at that load or below. A short one may only fill an engine.
        """
        if failed.times <= 1 or self.times >= failed.clear:
            return False
        far = self.long and failed.long and self.times < FAR_LESS * failed.times
        if self.load >= failed.load and (far or failed.times >= DOUBTED):
            return True
        return failed.long and self.load <= failed.load and self.per_s > MORE * failed.per_s


def slow_starts(short: Sequence[CellResult], long: Sequence[CellResult], starts: int) -> frozenset[int]:
    """Starts that carry less than another one: two of their probes are doubted, one at a load that a long
    probe of the other carried, and each there or with fewer answers per second than the other had. No long
    probe of their own carried these loads. A single one may have been disturbed.
    """
    found = _all_probed([cell for cell in short if not is_spoiled(cell, short=True)], long, starts)
    failed = [probe for probe in _doubted(found) if not probe.swings]
    failed = [probe for probe in failed if probe.start not in {at.start for at in found if at.carries(probe)}]
    carried = {probe for probe in failed if any(other.carries(probe) for other in found)}
    slower = Counter(
        probe.start
        for probe in failed
        if probe in carried
        or any(at.long and at.start != probe.start and at.contradicts(probe) for at in found)
    )
    return frozenset(probe.start for probe in carried if slower[probe.start] >= AGAIN)


def _doubted(found: Sequence[_Probed]) -> list[_Probed]:
    """Probes that failed and that another one contradicts."""
    return [probe for probe in found if any(other.contradicts(probe) for other in found)]


def of_starts(probes: Sequence[CellResult], starts: int, wanted: Container[int]) -> list[CellResult]:
    return [cell for cell in probes if cell.repeat % starts in wanted]


def contradictions(
    short: Sequence[CellResult], long: Sequence[CellResult], starts: int
) -> Iterator[Contradiction]:
    """Yields them by ascending load."""
    found = _all_probed(short, long, starts)
    for load, clears in sorted(grouped((probe.load, probe.clear) for probe in _doubted(found)).items()):
        here, clear = [probe for probe in found if probe.load == load], max(clears)
        carried = [probe for probe in here if probe.times < clear]
        well = [probe.start for probe in carried if probe.long]
        failed = [probe for probe in here if probe not in carried and probe.start not in well]
        outvoted = len(well) > sum(probe.long for probe in failed)
        failed_in = tuple(probe.start for probe in failed)
        yield Contradiction(load, clear, failed_in, outvoted, frozenset(well))


def undisturbed(short: Sequence[CellResult], long: Sequence[CellResult], starts: int) -> list[CellResult]:
    """Long probes without those that failed clearly where most at the same load did not, or another one in
    the same start, and without those that the client spoiled where another one tells of the same load.
    """
    doubted = {at.load: at for at in contradictions(short, long, starts)}
    kept = [cell for cell in long if not _left_out(cell, doubted.get(cell.load.value), starts)]
    known = {cell.load.value for cell in kept if not is_spoiled(cell)}
    return [cell for cell in kept if cell.load.value not in known or not is_spoiled(cell)]


def _left_out(long: CellResult, at: Contradiction | None, starts: int) -> bool:
    if at is None or _probed(long, starts).times < at.clear:
        return False
    return at.outvoted or long.repeat % starts in at.carried_in


def _all_probed(short: Iterable[CellResult], long: Iterable[CellResult], starts: int) -> list[_Probed]:
    """Leaves out long ones that the client spoiled."""
    found = [_probed(cell, starts, short=True) for cell in short]
    return found + [_probed(cell, starts) for cell in long if not is_spoiled(cell)]


def _probed(cell: CellResult, starts: int, *, short: bool = False) -> _Probed:
    limits = cell.slo.limits if cell.slo else (None,)
    times, load = max(map(_times, limits)), cell.load.value
    left = left_per_s(cell)
    per_s = left if math.isfinite(left) else cell.requests_per_s or 0.0
    is_refuted = any(refuted(cell, short=short))
    swings = is_refuted and times <= 1 and math.isfinite(left) and MORE * left > load
    return _Probed(
        load, cell.repeat % starts, not short, _times(None) if is_refuted else times, per_s, swings
    )


def _times(limit: Limit | None) -> float:
    return (1 - limit.within if limit else 1.0) / _target(limit)


def _target(limit: Limit | None) -> float:
    return (1 - share_of(limit.share) if limit else 0.0) or MOST_BEYOND


def bracket(short: Sequence[CellResult], long: Sequence[CellResult]) -> Bracket:
    """A short probe fails by chance, too: not where a long one kept the limits at this load or above.

    It also keeps them by chance: what only short probes kept bounds no estimate where a long one failed at
    this load or below.
    """
    sure = max((cell.load.value for cell in long if kept_limits(cell)), default=0.0)
    failed = [cell for cell in short if cell.load.value > sure and not kept_limits(cell, short=True)]
    lowest = min((cell.load.value for cell in failed), default=None)
    kept = [load for cell in short if (load := cell.load.value) < (lowest or math.inf)]
    unrefuted = max((load for load in kept if load < refuted_at(long)), default=None)
    lefts = (left for cell in failed if cell.load.value > OVERLOADED * (left := left_per_s(cell)))
    return Bracket(max(kept, default=None), unrefuted, sure, lowest, LEFT * min(lefts, default=math.inf))


def left_per_s(cell: CellResult) -> float:
    """Rate at which requests left the system, answered or failed; inf for a closed loop.

    Those of users who hang up are in no queue: they are taken to leave as the others do.
    """
    queue, counts = cell.backlog, cell.requests
    if queue is None:
        return math.inf
    in_queue = 1 - (known(counts.impatient) or 0) / max(counts.due, 1)  # share of the requests
    return (queue.answered + counts.failed) / queue.window_s / in_queue


@dataclass(frozen=True, slots=True)
class Crossing:
    at: NDArray[np.float64]  # ascending loads
    above: NDArray[np.float64]  # probability that the limits are kept up to each of them
    whole: bool  # loads are whole numbers

    def quantile(self, probability: float) -> float:
        """The load below which the capacity lies with this probability."""
        return float(self.at[max(int(np.sum(self.above >= 1 - probability)) - 1, 0)])

    @property
    def narrow(self) -> bool:
        low = self.quantile(0.1)
        if self.whole:
            return math.floor(low) == math.floor(self.quantile(0.9))
        return self.quantile(0.5) <= NARROW * low


def crossing(short: Sequence[CellResult], long: Sequence[CellResult]) -> Crossing:
    """Short probes, or else long ones, give the range; long ones say what is likely within it."""
    found, tried = bracket(short, long), sorted(cell.load.value for cell in short or long)
    low = BELOW * (tried[0] if found.unrefuted is None else found.unrefuted)
    high = ABOVE * (tried[-1] if found.failed is None else found.failed)
    at = places(low, max(min(high, found.left), found.kept or tried[0], ABOVE * found.sure))
    kind = (short or long)[0].load.kind
    asked = next((cell.slo.limits for cell in (*long, *short) if cell.slo), (None,))
    likely = np.ones(len(at))
    for number, limit in enumerate(asked):
        counts = [_count(cell, number, AS_ONE[kind]) for cell in long]
        likely *= above(at, counts, _target(limit), FLOORS[kind])
    return Crossing(at, likely, kind == "concurrency")


def _count(cell: CellResult, number: int, as_one: float) -> Count:
    """Requests beyond a limit: all of a probe that another reason refutes."""
    slo = cell.slo
    independent = max(slo.requests if slo else cell.requests.planned, 1) / as_one
    if slo is None or any(refuted(cell)):
        return Count(cell.load.value, independent, independent)
    limit = slo.limits[number]
    missed = math.ceil(1 - limit.within) if limit.share == "max" else 1 - limit.within
    return Count(cell.load.value, missed * independent, independent)
