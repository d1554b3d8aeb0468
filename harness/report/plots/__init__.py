"""Pictures of a run, each as PNG and SVG. Only this package imports matplotlib: it costs half a second."""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from harness.record import Records
from harness.report.plots import cdf, charts, load, timeline
from harness.report.plots.style import GRID, INK, MUTED, PALETTE, PAPER, Caption, Look, Picture
from harness.report.samples import Samples
from harness.report.view import Json, groups, labels

__all__ = ["GRID", "INK", "MUTED", "PALETTE", "PAPER", "Caption", "Picture", "draw"]


def draw(
    summary: Json,
    samples: Mapping[str, Samples],
    read: Callable[[str], Records],
    caption: Caption,
    folder: Path,
) -> list[Picture]:
    """`samples` by cell name; `read` gives the records of one of those cells."""
    return [picture for picture in _pictures(summary, samples, read, caption, folder) if picture is not None]


def _pictures(
    summary: Json,
    samples: Mapping[str, Samples],
    read: Callable[[str], Records],
    caption: Caption,
    folder: Path,
) -> Iterator[Picture | None]:
    looks = {label: Look(index) for index, label in enumerate(labels(summary))}
    found = groups(summary)
    for measure in cdf.MEASURES:
        for group in found:
            yield cdf.draw(measure, group, samples, looks, caption, folder)
    for chart in charts.CHARTS:
        for _, same_kind in groupby(found, key=lambda group: group.point.kind):
            yield load.draw(chart, list(same_kind), looks, caption, folder)
    for cell in timeline.chosen([cell for cell in summary["cells"] if cell["cell"] in samples]):
        yield timeline.draw(cell, read(cell["cell"]), caption, folder)
