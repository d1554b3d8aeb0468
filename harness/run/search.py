"""Which load to try next when the highest one that keeps the limits is looked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.compare.slo_check import kept_limits
from harness.model import CellResult
from harness.plan import Block, Cell, long_probe


class Next(NamedTuple):
    place: int  # in the ascending loads
    long: bool  # a probe of several times the length, whose word counts


@dataclass
class Search:
    """On ascending loads: short probes from the lowest up in doublings until one fails, then halving.

    The highest load that then kept the limits may have been lucky, and one below it unlucky: long probes
    begin there, go up while the limits are kept and down while they are not, and halve what lies between.
    With a `reserve` the load below the highest that kept them must do so too, as it is the answer then.
    """

    loads: Sequence[float]
    reserve: bool = False
    short: dict[int, bool] = field(default_factory=dict)  # whether each place kept the limits
    long: dict[int, bool] = field(default_factory=dict)

    def told(self, tried: Next, kept: bool) -> None:
        (self.long if tried.long else self.short)[tried.place] = kept

    @property
    def next(self) -> Next | None:
        """None at the end."""
        if self.long:
            place = self._next_long()
            return None if place is None else Next(place, True)
        place = self._next_short()
        if place is None:
            return Next(max(_bounds(self.short, len(self.loads))[0], 0), True)
        return Next(place, False)

    def _next_short(self) -> int | None:
        kept, failed = _bounds(self.short, len(self.loads))
        if failed - kept == 1:
            return None
        if kept < 0:
            return 0
        if failed < len(self.loads):
            return (kept + failed) // 2
        doubled = (place for place, load in enumerate(self.loads) if load >= 2 * self.loads[kept])
        return next(doubled, len(self.loads) - 1)

    def _next_long(self) -> int | None:
        kept, failed = _bounds(self.long, len(self.loads))
        step = 1 << (len(self.long) - 1)
        if failed - kept == 1:
            below = kept - 1
            return below if self.reserve and below >= 0 and below not in self.long else None
        if kept < 0:
            return max(failed - step, 0)
        if failed == len(self.loads):
            return min(kept + step, failed - 1)
        return (kept + failed) // 2


def _bounds(tried: Mapping[int, bool], size: int) -> tuple[int, int]:
    """The lowest place that failed, `size` where none did, and the highest below it that kept, else -1."""
    failed = min((place for place, kept in tried.items() if not kept), default=size)
    return max((place for place, kept in tried.items() if kept and place < failed), default=-1), failed


def probes(block: Block, repeats: int, measured: Callable[[], Sequence[CellResult]]) -> Iterator[Cell]:
    """Cells that a search asks for and that are not measured yet; each is looked up once it is asked for

    the next. `measured`: summaries of all cells of the run so far.
    """
    points = [cell.load for cell in block.cells]
    search = Search([point.value for point in points], reserve=points[0].kind == "rate")
    while (tried := search.next) is not None:
        wanted = block.cells[tried.place]
        if tried.long:
            wanted = long_probe(wanted, repeats)
        if wanted.name not in {cell.cell for cell in measured()}:
            yield wanted
        measured_cell = next(cell for cell in measured() if cell.cell == wanted.name)
        search.told(tried, kept=kept_limits(measured_cell))
