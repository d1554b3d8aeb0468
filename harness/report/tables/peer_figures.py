"""Figures of a run next to those that another tool would report of the same records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from harness.metrics.peers import Figure, View
from harness.report.view import Row

DIFFERS = 0.01  # relative: less is not worth a reason

Views = Mapping[str, View]  # by cell name


@dataclass(frozen=True, slots=True)
class Pair:
    """Medians over the repeats that are not INVALID."""

    title: str  # `TTFT p50`
    name: str  # `TTFT p50, ms`
    measure: str
    here: float | None
    there: float | None
    pooled: bool  # `here` is over the requests of all repeats, as in the table
    why_unknown: str  # of `here`; "" where it is known

    @property
    def differs(self) -> bool:
        """Whether the tool's definition makes another figure. Pooled ones differ for another reason."""
        if self.here is None or self.there is None or self.pooled:
            return False
        return abs(self.there - self.here) > DIFFERS * abs(self.here)


def pairs(row: Row, views: Views) -> list[Pair]:
    """Sorted as the tool prints them; empty if no usable cell was read."""
    seen = [views[cell.cell] for cell in row.usable if cell.cell in views]
    return [_pair(row, figures) for figures in zip(*(view.figures for view in seen), strict=False)]


def _pair(row: Row, figures: Sequence[Figure]) -> Pair:
    """`figures`: the same one of every repeat."""
    first = figures[0]
    here = row.middle(first.path)
    there = [figure.value for figure in figures if figure.value is not None]
    title = " ".join(filter(None, (first.measure, first.statistic)))
    return Pair(
        title=title,
        name=f"{title}, {first.unit}",
        measure=first.measure,
        here=here,
        there=median(there) if there else None,
        pooled=row.spread(first.path) is None and here is not None,
        why_unknown=row.why_unknown(first.path) if here is None else "",
    )
