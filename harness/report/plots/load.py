"""One chart of a run: against the load where there are several points, else the backends side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.report.plots import dots, lines
from harness.report.plots.charts import Chart, Panel, Series, series
from harness.report.plots.style import Caption, Look, Picture, canvas, save
from harness.report.text import number, plain
from harness.report.view import Group, point_words


def draw(
    chart: Chart, groups: Sequence[Group], looks: Mapping[str, Look], caption: Caption, folder: Path
) -> Picture | None:
    """`groups` are of one kind of load. None where nothing valid was measured."""
    panels = [(panel, found) for panel in chart.panels if (found := series(groups, panel.path))]
    if not panels:
        return None
    kind, single = groups[0].point.kind, len(groups) == 1
    with canvas(1.5 + 0.34 * len(looks) if single else 1.5 + 2.3 * len(panels)) as figure:
        (dots if single else lines).draw(figure, panels, groups, looks)
        title = f", {point_words(groups[0].point)}" if single else f" against {lines.AXES[kind]}"
        picture = Picture(f"{chart.name}-{kind}", chart.title + title, _description(panels))
        return save(figure, picture, caption, folder)


def _description(panels: Sequence[tuple[Panel, Series]]) -> str:
    return ". ".join(
        f"{panel.axis}, {plain(label, 40)}: "
        + ", ".join(f"{number(spread.median * panel.scale)} at {load:g}" for load, spread in by_load.items())
        for panel, values in panels
        for label, by_load in values.items()
    )
