"""A chart for papers: drawn by matplotlib, saved as PNG and SVG."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.axis import Axis as Side
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from harness.report.charts import Axis, Chart, Line, Point
from harness.report.charts.point_labels import Box, Segment, apart, placed
from harness.report.plots.style import INK, MUTED, Caption, Drawing, Look, Picture, canvas, finish, legend
from harness.report.wording import short_names

DODGE_INCHES = 2.2 / 72  # sideways, between the bars of neighbouring backends
MARK_EVERY = 22  # points of a curve that is made of many
LABEL_POINTS, TICK_POINTS = 8, 9.5
UNIT_POINTS = 0.62  # of the units in which labels are placed: a letter of LABEL_POINTS is as wide as LETTER
ENDS = {"start": "left", "middle": "center", "end": "right"}


def draw(chart: Chart, caption: Caption) -> Drawing:
    rows = len(chart.y.ticks)
    with canvas(1.5 + 0.34 * rows) if chart.sideways else canvas() as figure:
        axes = figure.add_subplot()
        main = [line for line in chart.lines if line.role == "main"]
        for line in chart.lines:
            _line(figure, axes, chart, line, main)
        _side(axes, axes.xaxis, chart.x)
        _side(axes, axes.yaxis, chart.y)
        if not chart.sideways:
            legend(figure, axes.get_legend_handles_labels()[0])
        picture = Picture(chart.name, chart.title, chart.description, drawn=chart.drawn)
        return finish(figure, picture, caption, partial(_laid_out, figure, axes, chart))


def _line(figure: Figure, axes: Axes, chart: Chart, line: Line, main: Sequence[Line]) -> None:
    xs, ys = [point.x for point in line.points], [point.y for point in line.points]
    if line.backend is None:
        if len(xs) < 2:  # nothing would be seen but a name in the legend
            return
        color = INK if line.role == "ideal" else MUTED
        name = None if chart.sideways else line.label
        axes.plot(xs, ys, linestyle=":", color=color, linewidth=1.3, label=name)
        return
    look = Look(line.backend)
    if line.role == "repeat":
        axes.plot(xs, ys, color=look.color, linewidth=0.7, alpha=0.45)
        return
    _with_intervals(figure, axes, chart, line, main, look)
    if chart.sideways:
        for point in line.points:
            spot = (point.x, point.y)
            axes.annotate(
                point.figure, spot, (0, 7), textcoords="offset points", ha="center", fontsize=LABEL_POINTS
            )


def _with_intervals(
    figure: Figure, axes: Axes, chart: Chart, line: Line, main: Sequence[Line], look: Look
) -> None:
    xs, ys = [point.x for point in line.points], [point.y for point in line.points]
    along = _bars([(point.low, point.high) for point in line.points], xs if chart.sideways else ys)
    across = _bars([point.across or (None, None) for point in line.points], xs)
    x_bars, y_bars = (along, None) if chart.sideways else (across, along)
    # Markers start at another height for each backend, so that close curves do not hide each other's.
    every = (2 + 2 * (look.index % 8), MARK_EVERY) if len(xs) > 2 * MARK_EVERY else None
    names = short_names((other.label for other in main), 40)
    name = names[line.label] if line.role == "main" else None
    aside = _aside(figure, axes, line, main) if y_bars and not x_bars else axes.transData
    axes.errorbar(
        xs, ys, yerr=y_bars, xerr=x_bars,
        color=look.color, linestyle="" if chart.sideways else look.dash, marker=look.marker, markevery=every,
        markersize=8 if chart.sideways else None, elinewidth=1, capsize=2.5, label=name,
        transform=aside,
    )  # fmt: skip


def _laid_out(figure: Figure, axes: Axes, chart: Chart) -> None:
    """Draws the texts that need room: of the ticks that lie apart, and of the points."""
    unit = UNIT_POINTS * figure.dpi / 72
    wide = unit * TICK_POINTS / LABEL_POINTS
    texts = dict(apart(chart.x, axes.bbox.width / wide))
    axes.xaxis.set_major_formatter(FixedFormatter([texts.get(value, "") for value, _ in chart.x.ticks]))
    marked = [point for line in chart.lines for point in line.points if point.mark]
    if marked:
        _labels(axes, chart, marked, unit)


def _labels(axes: Axes, chart: Chart, marked: Sequence[Point], unit: float) -> None:
    """The labels of the points, where they hide no mark, no other label and no line."""
    box = axes.bbox

    def spot(point: Point) -> tuple[float, float]:
        x, y = axes.transData.transform((point.x, point.y))
        return (x - box.x0) / unit, (box.y1 - y) / unit

    spots = [(*spot(point), point.mark) for point in marked]
    lines = [
        Segment(*spot(first), *spot(last)) for line in chart.lines for first, last in pairwise(line.points)
    ]
    inside = Box(0.0, 0.0, box.width / unit, box.height / unit)
    for point, label in zip(marked, placed(spots, inside, lines), strict=True):
        if label is not None:
            offset = (UNIT_POINTS * label.dx, -UNIT_POINTS * label.dy)
            axes.annotate(label.text, (point.x, point.y), offset, textcoords="offset points",
                          fontsize=LABEL_POINTS, ha=ENDS[label.anchor])  # fmt: skip


def _bars(
    spans: Sequence[tuple[float | None, float | None]], middles: Sequence[float]
) -> list[list[float]] | None:
    """Lengths below and above, as matplotlib takes them; None if no point has an interval."""
    if all(low is None for low, _ in spans):
        return None
    pairs = list(zip(middles, spans, strict=True))
    return [
        [middle - (middle if low is None else low) for middle, (low, _) in pairs],
        [(middle if high is None else high) - middle for middle, (_, high) in pairs],
    ]


def _aside(figure: Figure, axes: Axes, line: Line, main: Sequence[Line]) -> Transform:
    offset = main.index(line) - (len(main) - 1) / 2
    return axes.transData + ScaledTranslation(offset * DODGE_INCHES, 0, figure.dpi_scale_trans)


def _side(axes: Axes, side: Side, axis: Axis) -> None:
    horizontal = side is axes.xaxis
    if axis.log:
        (axes.set_xscale if horizontal else axes.set_yscale)("log")
    (axes.set_xlim if horizontal else axes.set_ylim)(axis.low, axis.high)
    side.set_major_locator(FixedLocator([value for value, _ in axis.ticks]))
    side.set_major_formatter(FixedFormatter([text for _, text in axis.ticks]))
    side.set_minor_locator(NullLocator())
    (axes.set_xlabel if horizontal else axes.set_ylabel)(axis.words)
