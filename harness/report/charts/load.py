"""Each figure against the load, at a single load the backends one below the other; and against the depth."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median
from typing import NamedTuple

from harness.model import Knee, LoadPoint
from harness.model.measures import Measure, charted, measure
from harness.model.numbers import as_given, number
from harness.report.charts.axes import fitted, linear, loads, rows
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.charts.values import Value, kinds_words, value_of
from harness.report.depths import depths
from harness.report.view import Group, Row, limits_ms, point_words
from harness.report.wording import plain, short_names
from harness.verdicts import knee


class LoadWords(NamedTuple):
    axis: str
    loop: str  # in a title


KINDS = {
    "concurrency": LoadWords("concurrency (closed loop)", "closed loop"),
    "rate": LoadWords("requests/s asked (open loop)", "open loop"),
    "trace": LoadWords("speed of the replay (open loop)", "trace replay"),
    "working-set": LoadWords("working set over the engine's own KV cache", "working sets"),
    "unknown": LoadWords("unknown load", "unknown load"),
}

HITS = "prefix_cache_hit_rate"
DRAWN = charted(lambda charts: charts.load)
BY_DEPTH = ("ttft_ms.p50", "tpot_ms.p50")
LEAST_DEPTHS = 2  # of a line

ByLoad = dict[LoadPoint, Value]
Series = dict[str, ByLoad]


def against_load(groups: Sequence[Group], order: Sequence[str], knees: Sequence[Knee]) -> Iterator[Chart]:
    """Charts against the load; those against working sets leave out the control, which has none."""
    drawn = [group for group in groups if group.point.kind != "working-set" or group.point.value]
    limits = limits_ms(row for group in groups for row in group.rows)
    beyond = [measure(path) for path in limits if measure(path) not in DRAWN]
    for shown in (*beyond, *DRAWN):
        for kind, same_kind in groupby(drawn, key=lambda group: group.point.kind):
            for chart in _chart(shown, kind, list(same_kind), order, limits.get(shown.path)):
                found = [mark for mark in knees if mark.value] if shown.path == HITS else []
                yield _with_knees(chart, found, order) if kind == "working-set" else chart


def _with_knees(chart: Chart, knees: Sequence[Knee], order: Sequence[str]) -> Chart:
    """Marks where the hit rate of each backend falls through half, with the interval."""
    lines = [
        Line(mark.label, order.index(mark.label), (
            Point(mark.value or 0.0, 50 * (mark.fits or 0.0), "knee", f"knee at {number(mark.value or 0.0)}",
                  across=mark.interval, mark=f"knee {number(mark.value or 0.0)}"),
        ), "knee")
        for mark in knees
    ]  # fmt: skip
    sentences = "".join(f" {words}." for mark in knees for words in knee.words(mark))
    return replace(chart, lines=(*chart.lines, *lines), description=f"{chart.description}{sentences}")


def series(groups: Sequence[Group], shown: Measure) -> Series:
    """Label → load → value."""
    by_label: Series = {}
    for group in groups:
        for row in group.rows:
            if value := value_of(row, shown):
                by_label.setdefault(row.label, {})[group.point] = value
    return by_label


def _chart(
    shown: Measure,
    kind: str,
    groups: Sequence[Group],
    order: Sequence[str],
    limit_ms: float | None,
) -> Iterator[Chart]:
    """`limit_ms`: of the scenario, for this figure; a line of its own where there are several loads."""
    points, charts = series(groups, shown), shown.metric.charts
    if not points or charts is None:
        return
    best = series(groups, measure(shown.metric.ideal)) if shown.metric.ideal else {}
    ideal = {point: value for by_load in best.values() for point, value in by_load.items()}
    single = len(groups) == 1
    where = point_words(groups[0].point) if single else f"against {KINDS[kind].axis}"
    drawn = _rows(points, ideal, shown, order) if single else _lines(points, ideal, shown, groups, order)
    x, y, lines = drawn
    if limit_ms is not None and not single:
        y = _values_axis(shown, points, also=limit_ms)
        lines.append(Line("limit", None, (Point(x.low, limit_ms), Point(x.high, limit_ms)), "ideal"))
    statistic = "" if shown.statistic in ("", "p50") else f"-{shown.statistic}"
    yield Chart(
        name=f"{charts.stem}{statistic}-load-{kind}",
        family="load",
        option=shown.name,
        title=f"{shown.heading}{', ' if single else ' '}{where}",
        description=_description([*points.items(), *([("ideal", ideal)] if ideal else [])], shown),
        x=x,
        y=y,
        lines=tuple(lines),
        reading="y" if single else "x",
        sideways=single,
        drawn=kinds_words(value for by_load in points.values() for value in by_load.values()),
        paper=shown.statistic in charts.papers or limit_ms is not None,
    )


def _lines(
    by_label: Series, ideal: ByLoad, shown: Measure, groups: Sequence[Group], order: Sequence[str]
) -> tuple[Axis, Axis, list[Line]]:
    places = {(row.label, group.point): _place(row, group.point) for group in groups for row in group.rows}
    lines = [
        Line(label, order.index(label), tuple(
            Point(places[label, point], value.middle, point.label, value.text(shown), value.low, value.high)
            for point, value in by_load.items()
        ))
        for label, by_load in by_label.items()
    ]  # fmt: skip
    if ideal:
        points = (
            Point(point.value, value.middle, point.label, value.text(shown)) for point, value in ideal.items()
        )
        lines.append(Line("ideal", None, tuple(sorted(points, key=lambda point: point.x)), "ideal"))
    title, values = KINDS[groups[0].point.kind].axis, [group.point.value for group in groups]
    return loads(title, values, places.values()), _values_axis(shown, by_label), lines


def _place(row: Row, point: LoadPoint) -> float:
    """The position along the axis; for a working set its size over this backend's measured KV cache."""
    sizes = [size for cell in row.usable if (size := knee.filled(cell)) is not None]
    return median(sizes) if sizes else point.value


def _rows(
    points: Series, ideal: ByLoad, shown: Measure, order: Sequence[str]
) -> tuple[Axis, Axis, list[Line]]:
    """A row per backend, the best first; those without a value have empty rows at the end."""
    lines = []
    known = {label: value for label, by_load in points.items() for value in by_load.values()}
    sign = 1 if shown.metric.better == "lower" else -1
    ranked = sorted(order, key=lambda label: sign * known[label].middle if label in known else math.inf)
    for label, value in known.items():
        rank = float(ranked.index(label))
        figure = shown.figure_in_unit(value.middle)
        point = Point(value.middle, rank, label, value.text(shown), value.low, value.high, figure=figure)
        lines.append(Line(label, order.index(label), (point,)))
    title = shown.title
    for value in ideal.values():
        ends = (Point(value.middle, -0.6), Point(value.middle, len(order) - 0.4))
        lines.append(Line("ideal", None, ends, "ideal"))
        title += " (dotted: ideal)"
    return _values_axis(shown, points, title), rows([*short_names(ranked, 30).values()]), lines


def _values_axis(shown: Measure, points: Series, title: str | None = None, also: float | None = None) -> Axis:
    """`also`: a value that is on the axis whichever backends are shown."""
    title = title or shown.title
    if shown.metric.family == "share":
        return linear(title, 0, 100)
    ends = [end for by_load in points.values() for value in by_load.values() for end in value.ends]
    return fitted(title, ends if also is None else [*ends, also])


def _description(points: Iterable[tuple[str, ByLoad]], shown: Measure) -> str:
    parts = [
        f"{plain(label, 40)}: "
        + ", ".join(
            f"{shown.figure_in_unit(value.middle)} at {as_given(point.value)}"
            for point, value in by_load.items()
        )
        for label, by_load in points
    ]
    return f"{shown.title}. {'; '.join(parts)}."


def against_depth(groups: Sequence[Group], order: Sequence[str]) -> Iterator[Chart]:
    """Draws a chart of each at every load that has several depths."""
    for group in groups:
        for path in BY_DEPTH:
            lines: list[Line] = []
            drawn: list[Value] = []
            for row in group.rows:
                found = tuple(_by_depth(row, path))
                if len(found) >= LEAST_DEPTHS:
                    points = tuple(point for _, point in found)
                    lines.append(Line(row.label, order.index(row.label), points))
                    drawn.extend(value for value, _ in found)
            if lines:
                yield _depth_chart(group, path, lines, kinds_words(drawn))


def _by_depth(row: Row, path: str) -> Iterator[tuple[Value, Point]]:
    for classes, tokens in depths(row).items():
        shown = measure(f"{classes}.{path}")
        if value := value_of(row, shown):
            name = classes.partition(".")[2]
            point = Point(float(tokens), value.middle, name, value.text(shown), value.low, value.high)
            yield value, point


def _depth_chart(group: Group, path: str, lines: Sequence[Line], bars: str) -> Chart:
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
