"""Pictures for papers, each as PNG and SVG. Only this package imports matplotlib: it costs half a second."""

# ruff: noqa: E402  # what matplotlib reads when it is imported stands before that

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

os.environ["MPLBACKEND"] = "agg"  # matplotlib does not load if it names a display that it does not know
# It warns of a home folder that it cannot write to, and needs none.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

from harness.model import Summary
from harness.records.layout import Records
from harness.records.series import Telemetry
from harness.report.charts import Chart
from harness.report.plots import timeline
from harness.report.plots.draw import draw as draw_chart
from harness.report.plots.style import GRID, INK, MUTED, PALETTE, PAPER, Caption, Drawing, Picture
from harness.report.samples import Samples

__all__ = ["GRID", "INK", "MUTED", "PALETTE", "PAPER", "Caption", "Drawing", "Picture", "draw"]


def draw(
    summary: Summary,
    charts: Iterable[Chart],
    samples: Mapping[str, Samples],
    recorded: Callable[[str], tuple[Records, Telemetry]],
    caption: Caption,
) -> Iterator[Drawing]:
    """The charts that are meant for papers, and a timeline per backend.

    The timelines share one time axis, so that what takes longer is longer. `samples` by cell name; `recorded`
    returns what is stored of one of those cells.
    """
    yield from (draw_chart(chart, caption) for chart in charts if chart.paper)
    measured = [cell for cell in summary.cells if cell.cell in samples]
    stored = [(cell, *recorded(cell.cell)) for cell in timeline.chosen(measured)]
    until_s = max((timeline.ended_s(records) for _cell, records, _telemetry in stored), default=0.0)
    for cell, records, telemetry in stored:
        drawing = timeline.draw(cell, records, caption, telemetry, until_s)
        if drawing is not None:
            yield drawing
