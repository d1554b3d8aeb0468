"""Chooses the next load in the search for the highest one that keeps the limits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness.model import CellResult
from harness.plan import Block, Cell, ProbeSizes, long_probe
from harness.verdicts.slo_check import kept_limits, time_in_system_s

BRACKET = 4  # steps of the grid that short probes leave to the long ones


class Next(NamedTuple):
    place: int  # in the ascending loads
    long: bool  # a probe that decides


@dataclass
class Search:
    """Search on ascending loads: short probes bracket the capacity, then long ones decide.

    Short ones go from the lowest load up in doublings until one fails, and halve what lies between until
    few loads are left. Long ones begin at the highest load that then kept the limits, or at `start`. They go
    up while the limits are kept and down while they are not, and halve what lies between.
    """

    loads: Sequence[float]
    start: int | None = None  # the place where an earlier search ended
    short: dict[int, bool] = field(default_factory=dict)  # whether each place kept the limits
    long: dict[int, bool] = field(default_factory=dict)

    def record(self, tried: Next, kept: bool) -> None:
        (self.long if tried.long else self.short)[tried.place] = kept

    @property
    def next(self) -> Next | None:
        """The next load to try; None at the end."""
        if not self.long and self.start is None:
            index = self._next_short()
            if index is not None:
                return Next(index, False)
        index = self._next_long()
        return None if index is None else Next(index, True)

    @property
    def kept(self) -> int | None:
        """The highest load that kept the limits in a long probe, below all that failed; None if none did."""
        kept = _bounds(self.long, len(self.loads))[0]
        return None if kept < 0 else kept

    def _next_short(self) -> int | None:
        kept, failed = _bounds(self.short, len(self.loads))
        if failed - kept <= BRACKET:
            return None
        if kept < 0:
            return 0 if failed == len(self.loads) else failed // 2
        if failed < len(self.loads):
            return (kept + failed) // 2
        doubled = (index for index, load in enumerate(self.loads) if load >= 2 * self.loads[kept])
        return next(doubled, len(self.loads) - 1)

    def _next_long(self) -> int | None:
        last = len(self.loads) - 1
        bracket = _bounds(self.short, len(self.loads))
        if not self.long:
            return max(bracket[0], 0) if self.start is None else self.start
        kept, failed = _bounds(self.long, len(self.loads))
        jump = 1 << (len(self.long) - 1)
        if kept < 0:
            return max(failed - jump, 0) if failed else None
        if failed > last:
            most = bracket[1] if kept < bracket[1] <= last else last
            return min(kept + jump, most) if kept < last else None
        return (kept + failed) // 2 if failed - kept > 1 else None


def _bounds(tried: Mapping[int, bool], size: int) -> tuple[int, int]:
    """Place of the highest load kept below all failures, or -1; place of the lowest failure, or `size`."""
    failed = min((index for index, kept in tried.items() if not kept), default=size)
    return max((index for index, kept in tried.items() if kept and index < failed), default=-1), failed


def probes(
    block: Block, repeats: int, sizes: ProbeSizes, measured: Callable[[], Sequence[CellResult]]
) -> Iterator[Cell]:
    """Yields the cells that a search still needs; each must be measured before the next is taken.

    `measured` returns the summaries of this backend's cells so far. The first search brackets the capacity,
    later ones begin with long probes where an earlier one ended.
    """
    points = [cell.load for cell in block.cells]
    start = None
    for repeat in range(block.repeat + 1):
        search = Search([point.value for point in points], start)
        while (tried := _walk(search, repeat, repeats, measured())) is not None and repeat == block.repeat:
            wanted, answer_s = block.cells[tried.place], _answer_s(points[0].value, repeats, measured())
            if tried.long:
                yield long_probe(wanted, repeats, sizes.long(wanted.load, answer_s))
            else:
                yield replace(wanted, probe=sizes.short(wanted.load, answer_s))
        start = start if search.kept is None else search.kept


def _walk(search: Search, repeat: int, repeats: int, measured: Sequence[CellResult]) -> Next | None:
    """Records the probes that were measured, and returns the first that was not; None at the end."""
    known = {(cell.load.value, cell.repeat): cell for cell in measured}
    while (tried := search.next) is not None:
        cell = known.get((search.loads[tried.place], repeat + repeats * tried.long))
        if cell is None:
            return tried
        search.record(tried, kept_limits(cell, short=not tried.long))
    return None


def _answer_s(lowest: float, repeats: int, measured: Sequence[CellResult]) -> float:
    """Mean time of an answer in the first short probe of the lowest load, in s; 0 if there is none."""
    short = (cell for cell in measured if cell.load.value == lowest and cell.repeat < repeats)
    return next((time_in_system_s(cell.backlog) for cell in short if cell.backlog), 0.0)
