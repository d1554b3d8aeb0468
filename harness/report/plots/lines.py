"""A chart against the load: a line per backend, the range of its repeats as bars."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from harness.report.plots.charts import Panel, Series, series, set_limits
from harness.report.plots.style import INK, Look, legend, mark
from harness.report.text import plain
from harness.report.view import Group, Spread

DODGE_INCHES = 2.2 / 72  # sideways, between the bars of neighbouring backends
LOG_LOADS_FROM = 4.0  # loads are mostly doubled from point to point

AXES = {
    "concurrency": "concurrency (closed loop)",
    "rate": "requests/s asked (open loop)",
    "trace": "speed of the replay (open loop)",
}


def draw(
    figure: Figure, panels: Sequence[tuple[Panel, Series]], groups: Sequence[Group], looks: Mapping[str, Look]
) -> None:
    """One panel below the other on one load axis."""
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (panel, values) in zip(rows, panels, strict=True):
        for label, by_load in values.items():
            _line(axes, label, by_load, panel.scale, looks[label], _aside(figure, axes, looks, label))
        if panel.ideal:
            _ideal(axes, series(groups, panel.ideal), panel.scale)
        set_limits(axes, axes.yaxis, panel, values)
        axes.set_ylabel(panel.axis)
    _load_axis(rows[-1], groups)
    legend(figure, max((axes.get_legend_handles_labels()[0] for axes in rows), key=len))


def _aside(figure: Figure, axes: Axes, looks: Mapping[str, Look], label: str) -> Transform:
    place = looks[label].index - (len(looks) - 1) / 2
    return axes.transData + ScaledTranslation(place * DODGE_INCHES, 0, figure.dpi_scale_trans)


def _line(
    axes: Axes, label: str, by_load: Mapping[float, Spread], scale: float, look: Look, aside: Transform
) -> None:
    spreads = list(by_load.values())
    medians = [spread.median * scale for spread in spreads]
    bars = [[(spread.median - spread.low) * scale for spread in spreads],
            [(spread.high - spread.median) * scale for spread in spreads]]  # fmt: skip
    repeated = any(spread.repeats > 1 for spread in spreads)
    drawn = axes.errorbar(
        list(by_load), medians, yerr=bars if repeated else None, color=look.color, linestyle=look.dash,
        marker=look.marker, elinewidth=1, capsize=2.5, label=plain(label, 40),
        transform=aside if repeated else axes.transData,
    )  # fmt: skip
    mark(drawn.get_children(), look)


def _ideal(axes: Axes, values: Series, scale: float) -> None:
    """What prompts allow is the same for every backend with a cache: one line."""
    best = {load: spread.median * scale for by_load in values.values() for load, spread in by_load.items()}
    if best:
        loads = sorted(best)
        axes.plot(
            loads, [best[load] for load in loads], color=INK, linestyle=":", linewidth=1.3, label="ideal"
        )


def _load_axis(axes: Axes, groups: Sequence[Group]) -> None:
    """Ticks where it was measured and nowhere else."""
    loads = [group.point.value for group in groups]
    low, high = loads[0], loads[-1]
    if high >= LOG_LOADS_FROM * low:
        axes.set_xscale("log", base=2)
        margin = (high / low) ** 0.08
        axes.set_xlim(low / margin, high * margin)
    else:
        margin = 0.08 * (high - low)
        axes.set_xlim(low - margin, high + margin)
    axes.set_xlabel(AXES[groups[0].point.kind])
    axes.xaxis.set_major_locator(FixedLocator(loads))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
