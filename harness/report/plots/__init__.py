"""Pictures for papers, each as PNG and SVG. Only this package imports matplotlib: it costs half a second."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from harness.model import Summary
from harness.record import Records
from harness.report.charts import Chart
from harness.report.plots import timeline
from harness.report.plots.draw import draw as draw_chart
from harness.report.plots.style import GRID, INK, MUTED, PALETTE, PAPER, Caption, Picture
from harness.report.samples import Samples
from harness.telemetry import Telemetry

__all__ = ["GRID", "INK", "MUTED", "PALETTE", "PAPER", "Caption", "Picture", "draw"]


def _nothing(_cell: str) -> Telemetry:
    return Telemetry()


def draw(
    summary: Summary,
    charts: Iterable[Chart],
    samples: Mapping[str, Samples],
    read: Callable[[str], Records],
    caption: Caption,
    folder: Path,
    watched: Callable[[str], Telemetry] = _nothing,
) -> list[Picture]:
    """Of the charts, those meant for papers; and a timeline per backend.

    `samples` by cell name; `read` and `watched` give records and telemetry of one of those cells.
    """
    pictures = [draw_chart(chart, caption, folder) for chart in charts if chart.paper]
    return pictures + list(_timelines(summary, samples, read, caption, folder, watched))


def _timelines(
    summary: Summary,
    samples: Mapping[str, Samples],
    read: Callable[[str], Records],
    caption: Caption,
    folder: Path,
    watched: Callable[[str], Telemetry],
) -> Iterator[Picture]:
    measured = [cell for cell in summary.cells if cell.cell in samples]
    for cell in timeline.chosen(measured):
        name = cell.cell
        picture = timeline.draw(cell, read(name), caption, folder, watched(name))
        if picture is not None:
            yield picture
