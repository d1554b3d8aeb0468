"""First token and further ones against the depth of the context, a line per backend."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.model.measures import measure
from harness.report.charts.axes import fitted, loads
from harness.report.charts.model import Chart, Line, Point
from harness.report.charts.values import Value, kinds_words, value_of
from harness.report.depths import depths
from harness.report.view import Group, Row, point_words
from harness.report.wording import plain

_LEAST = 2  # depths of a line
_SHOWN = ("ttft_ms.p50", "tpot_ms.p50")


def against_depth(groups: Sequence[Group], order: Sequence[str]) -> Iterator[Chart]:
    """Draws a chart of each at every load that has several depths."""
    for group in groups:
        for path in _SHOWN:
            lines: list[Line] = []
            drawn: list[Value] = []
            for row in group.rows:
                found = tuple(_values(row, path))
                if len(found) >= _LEAST:
                    points = tuple(point for _, point in found)
                    lines.append(Line(row.label, order.index(row.label), points))
                    drawn.extend(value for value, _ in found)
            if lines:
                yield _chart(group, path, lines, kinds_words(drawn))


def _values(row: Row, path: str) -> Iterator[tuple[Value, Point]]:
    for classes, tokens in depths(row).items():
        shown = measure(f"{classes}.{path}")
        if value := value_of(row, shown):
            name = classes.partition(".")[2]
            point = Point(float(tokens), value.middle, name, value.text(shown), value.low, value.high)
            yield value, point


def _chart(group: Group, path: str, lines: Sequence[Line], bars: str) -> Chart:
    shown = measure(path)
    points = [point for line in lines for point in line.points]
    words = (
        f"{plain(line.label, 40)}: "
        + ", ".join(f"{shown.figure_in_unit(point.y)} at {point.key}" for point in line.points)
        for line in lines
    )
    names = {point.x: point.key for point in points}
    axis = loads("context up to (tokens)", sorted(names))
    return Chart(
        name=f"{shown.metric.name.removesuffix('_ms')}-depth-{group.point.label}",
        family="depth",
        option=shown.name,
        title=f"{shown.heading} against the depth of the context, {point_words(group.point)}",
        description=f"{shown.title}. {'; '.join(words)}.",
        x=replace(axis, ticks=tuple(sorted(names.items()))),
        y=fitted(shown.title, (end for point in points for end in point.ys)),
        lines=tuple(lines),
        reading="x",
        drawn=bars,
        paper=True,
    )
