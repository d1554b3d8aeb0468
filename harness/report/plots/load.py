"""What a backend does as the load grows; with a single load point, the backends side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from harness.report.plots.style import INK, Caption, Look, Picture, canvas, legend, logarithmic, save
from harness.report.text import counted, number, plain
from harness.report.view import Group, Spread, point_words

DODGE_POINTS = 2.2  # sideways, between the error bars of neighbouring backends


@dataclass(frozen=True, slots=True)
class Panel:
    path: str  # in a cell of summary.json
    axis: str
    scale: float = 1.0
    reference: str = ""  # path of what the value could be at best
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    title: str
    panels: tuple[Panel, ...]


CHARTS = (
    Chart("ttft-load", "Time to first token",
          (Panel("ttft_ms.p50", "TTFT p50, ms"), Panel("ttft_ms.p90", "TTFT p90, ms"))),
    Chart("throughput-load", "Throughput", (Panel("output_tokens_per_s", "output tokens/s"),)),
    Chart("cache-load", "Prefix-cache hits",
          (Panel("prefix_cache_hit_rate", "cached share of prompt tokens, %", 100, "prefix_cache_ideal", (-3, 103)),)),
)  # fmt: skip

AXES = {"concurrency": "concurrency (closed loop)", "rate": "requests/s asked (open loop)"}

Series = dict[str, dict[float, Spread]]  # label → load → value


def draw(
    chart: Chart, groups: Sequence[Group], looks: Mapping[str, Look], caption: Caption, folder: Path
) -> Picture | None:
    """`groups` are of one kind of load. None where nothing valid was measured."""
    panels = [(panel, found) for panel in chart.panels if (found := _series(groups, panel.path))]
    if not panels:
        return None
    kind = groups[0].point.kind
    single = len(groups) == 1
    with canvas(_height(len(panels), single, len(looks))) as figure:
        if single:
            _side_by_side(figure, panels, groups, looks)
        else:
            _against_load(figure, panels, groups, looks)
        where = point_words(groups[0].point) if single else f"against {AXES[kind]}"
        picture = Picture(f"{chart.name}-{kind}", f"{chart.title}, {where}", _description(panels))
        return save(figure, picture, caption, folder)


def _series(groups: Sequence[Group], path: str) -> Series:
    found: Series = {}
    for group in groups:
        for row in group.rows:
            if spread := row.spread(path):
                found.setdefault(row.label, {})[group.point.value] = spread
    return found


def _height(panels: int, single: bool, backends: int) -> float:
    return 1.5 + 0.34 * backends if single else 1.5 + 2.3 * panels


def _against_load(
    figure: Figure, panels: Sequence[tuple[Panel, Series]], groups: Sequence[Group], looks: Mapping[str, Look]
) -> None:
    loads = [group.point.value for group in groups]
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (panel, series) in zip(rows, panels, strict=True):
        for position, (label, values) in enumerate(series.items()):
            _line(axes, label, values, panel.scale, looks[label], position - (len(series) - 1) / 2)
        if panel.reference:
            _reference_line(axes, _series(groups, panel.reference), panel.scale)
        _limits(axes, panel, series, vertical=True)
        axes.set_ylabel(panel.axis)
    axes = rows[-1]
    axes.set_xlabel(AXES[groups[0].point.kind])
    if logarithmic(loads[0] * 4, loads[-1] * 30):
        axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(loads))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    most = max(rows, key=lambda axes: len(axes.get_legend_handles_labels()[1]))
    legend(figure, most, most.get_legend_handles_labels()[1])


def _line(
    axes: Axes, label: str, values: Mapping[float, Spread], scale: float, look: Look, place: float
) -> None:
    x, spreads = list(values), list(values.values())
    y = [spread.median * scale for spread in spreads]
    bars = [[(spread.median - spread.low) * scale for spread in spreads],
            [(spread.high - spread.median) * scale for spread in spreads]]  # fmt: skip
    repeated = any(spread.repeats > 1 for spread in spreads)
    figure = axes.get_figure()
    assert figure is not None
    aside = ScaledTranslation(place * DODGE_POINTS / 72 if repeated else 0, 0, figure.dpi_scale_trans)
    axes.errorbar(x, y, yerr=bars if repeated else None, color=look.color, linestyle=look.dash, marker=look.marker,
                  elinewidth=1, capsize=2.5, label=plain(label, 40), transform=axes.transData + aside)  # fmt: skip


def _reference_line(axes: Axes, series: Series, scale: float) -> None:
    """The best possible depends on the prompts alone, so one line serves every backend that has one."""
    best = {load: spread.median * scale for values in series.values() for load, spread in values.items()}
    if best:
        loads = sorted(best)
        axes.plot(
            loads, [best[load] for load in loads], color=INK, linestyle=":", linewidth=1.3, label="ideal"
        )


def _limits(axes: Axes, panel: Panel, series: Series, vertical: bool) -> None:
    values = [value * panel.scale for found in series.values() for spread in found.values()
              for value in (spread.low, spread.high)]  # fmt: skip
    low, high = min(values), max(values)
    scale, limit, axis = (
        (axes.set_yscale, axes.set_ylim, axes.yaxis)
        if vertical
        else (axes.set_xscale, axes.set_xlim, axes.xaxis)
    )
    if panel.limits:
        limit(*panel.limits)
    elif logarithmic(low, high):
        scale("log")
        limit(low / 1.5, high * 1.5)
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    else:
        limit(0, high * 1.12 or 1)


def _side_by_side(
    figure: Figure, panels: Sequence[tuple[Panel, Series]], groups: Sequence[Group], looks: Mapping[str, Look]
) -> None:
    """One row per backend, in the order of the table, a panel per measure."""
    rows = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    names = list(looks)
    for axes, (panel, series) in zip(rows, panels, strict=True):
        for label, values in series.items():
            spread, look = next(iter(values.values())), looks[label]
            value = spread.median * panel.scale
            bar = [[value - spread.low * panel.scale], [spread.high * panel.scale - value]]
            axes.errorbar([value], [names.index(label)], xerr=bar if spread.repeats > 1 else None, color=look.color,
                          marker=look.marker, markersize=8, linestyle="", capsize=3)  # fmt: skip
            axes.annotate(number(value), (value, names.index(label)), (0, 7), textcoords="offset points",
                          ha="center", fontsize=8)  # fmt: skip
        for values in (_series(groups, panel.reference) if panel.reference else {}).values():
            axes.axvline(
                next(iter(values.values())).median * panel.scale, color=INK, linestyle=":", linewidth=1.3
            )
        _limits(axes, panel, series, vertical=False)
        axes.set_xlabel(panel.axis + (" (dotted: ideal)" if panel.reference else ""))
    rows[0].set_yticks(range(len(names)), [plain(name, 40) for name in names])
    rows[0].set_ylim(len(names) - 0.5, -0.7)


def _description(panels: Sequence[tuple[Panel, Series]]) -> str:
    parts = []
    for panel, series in panels:
        for label, values in series.items():
            points = ", ".join(
                f"{number(spread.median * panel.scale)} at {load:g}" for load, spread in values.items()
            )
            parts.append(f"{panel.axis}, {plain(label, 40)}: {points}")
    return f"{counted(len(panels), 'panel')}. {'; '.join(parts)}."
