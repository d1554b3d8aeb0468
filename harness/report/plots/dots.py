"""A chart at a single load point: the backends below each other in the order of the table."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from harness.report.plots.charts import Panel, Series, series, set_limits
from harness.report.plots.style import INK, Look, mark
from harness.report.text import number, plain
from harness.report.view import Group


def draw(
    figure: Figure, panels: Sequence[tuple[Panel, Series]], groups: Sequence[Group], looks: Mapping[str, Look]
) -> None:
    """One panel beside the other, a row per backend."""
    names = list(looks)
    columns = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (panel, values) in zip(columns, panels, strict=True):
        for label, by_load in values.items():
            (spread,), look, row = by_load.values(), looks[label], names.index(label)
            value = spread.median * panel.scale
            bar = [[value - spread.low * panel.scale], [spread.high * panel.scale - value]]
            drawn = axes.errorbar([value], [row], xerr=bar if spread.repeats > 1 else None, color=look.color,
                                  marker=look.marker, markersize=8, linestyle="", capsize=3)  # fmt: skip
            text = axes.annotate(number(value), (value, row), (0, 7), textcoords="offset points", ha="center",
                                 fontsize=8)  # fmt: skip
            mark([*drawn.get_children(), text], look)
        ideal = [spread for by_load in series(groups, panel.ideal).values() for spread in by_load.values()]
        if ideal:
            axes.axvline(ideal[0].median * panel.scale, color=INK, linestyle=":", linewidth=1.3)
        set_limits(axes, axes.xaxis, panel, values)
        axes.set_xlabel(panel.axis + (" (dotted: ideal)" if ideal else ""))
    columns[0].set_yticks(range(len(names)), [plain(name, 40) for name in names])
    columns[0].set_ylim(len(names) - 0.5, -0.8)
