"""Throughput against latency, against the speed of each user and against the share of right answers.

Each point is labelled with its load, or with its backend where there is one load.

Points of loads that a server did not keep up with are left out: their figures are of the length of the run.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import mul

from harness.model import Agreement, LoadPoint, known
from harness.model.grouping import grouped
from harness.model.measures import Measure, charted, measure
from harness.model.numbers import number, percent_figure
from harness.model.per_user import SpeedLevel
from harness.report.charts.axes import fitted, linear
from harness.report.charts.load import KINDS, Series, series
from harness.report.charts.model import Chart, Line, Point
from harness.report.charts.values import Value, kinds_words
from harness.report.view import Group, Row, point_words
from harness.report.wording import capital, plain, short_names
from harness.verdicts.evidence import state_of
from harness.verdicts.speed_curves import STEADY, gpus_of, owner_of

LONGEST_MARK = 30  # characters of a label next to a point
LATENCIES = charted(lambda charts: charts.rate)
RATE = measure("output_tokens_per_s")
TPOT = measure("tpot_ms.p50")
_FEWEST = 3  # backends at one load: two points show no trade-off
PER_USER = "tokens/s per user (1000 / TPOT p50)"
EQUAL_SPEED = "compared at this speed"
_STEP = 10  # percent, to which the ends of the axis are rounded


@dataclass(frozen=True, slots=True)
class _Axes:
    """`right`: more is better along x as well."""

    name: str
    option: str
    title: str
    x: str
    y: str
    right: bool
    text: Callable[[LoadPoint, Value, Value], str]
    by_load: bool  # several loads are drawn: a point is labelled with its load, else with its backend


def trade_offs(
    groups: Sequence[Group], order: Sequence[str], levels: Sequence[SpeedLevel] = ()
) -> Iterator[Chart]:
    """`levels`: speeds per user at which backends are compared."""
    for kind, same_kind in groupby(groups, key=lambda group: group.point.kind):
        points = list(same_kind)
        if len(points) > 1 or len(order) >= _FEWEST:
            steady = [Group(group.point, tuple(filter(_steady, group.rows))) for group in points]
            rates = series(steady, RATE)
            compared = [level for level in levels if level.kind == kind and level.pairs]
            for chart in _per_user(kind, steady, rates, order):
                yield replace(chart, lines=(*chart.lines, *_equal_speeds(compared, chart)))
            for latency in LATENCIES:
                waits = series(steady, latency)
                yield from _chart(_against(latency, kind, by_load=len(points) > 1), waits, rates, order)


def _equal_speeds(levels: Sequence[SpeedLevel], chart: Chart) -> Iterator[Line]:
    """A line up for each; one alone has a name in the legend."""
    for index, level in enumerate(levels):
        ends = (Point(level.tokens_per_s_per_user, end) for end in (chart.y.low, chart.y.high))
        yield Line("" if index else EQUAL_SPEED, None, tuple(ends), "ideal")


def _steady(row: Row) -> bool:
    return all(state_of(cell) in STEADY for cell in row.usable)


def _against(latency: Measure, kind: str, *, by_load: bool) -> _Axes:
    return _Axes(
        f"pareto-{latency.path.replace('_ms.', '-')}-{kind}",
        latency.name,
        f"Throughput against {latency.name}, {KINDS[kind].loop}",
        latency.title,
        RATE.title,
        False,
        lambda point, x, y: f"{point.label}: {y.text(RATE)} at {latency.name} {x.text(latency)}",
        by_load,
    )


def _per_user(kind: str, groups: Sequence[Group], rates: Series, order: Sequence[str]) -> Iterator[Chart]:
    usable = [cell for group in groups for row in group.rows for cell in row.usable]
    owner = owner_of(usable)
    by_label = grouped((cell.label, cell) for cell in usable)
    by = {label: float(gpus_of(mine) if owner == "GPU" else 1) for label, mine in by_label.items()}
    speeds = {
        label: {
            point: _map(value, lambda ms: 1000 / ms) for point, value in mine.items() if min(value.ends) > 0
        }
        for label, mine in series(groups, TPOT).items()
    }
    shared = {
        label: {point: _map(value, partial(mul, 1 / by[label])) for point, value in mine.items()}
        for label, mine in rates.items()
    }
    title = f"tokens/s per {owner}"
    axes = _Axes(
        f"pareto-per-user-{kind}",
        "tokens/s per user",
        f"{capital(title)} against tokens/s per user, {KINDS[kind].loop}",
        PER_USER,
        title,
        True,
        lambda point, x, y: f"{point.label}: {_span(y)} {title} at {_span(x)} per user",
        len(groups) > 1,
    )
    yield from _chart(axes, speeds, shared, order)


def _map(value: Value, to: Callable[[float], float]) -> Value:
    """Applies a monotone function."""
    low, high = sorted(map(to, value.interval)) if value.interval else (None, None)
    return Value(to(value.middle), low, high, value.kind)


def _span(value: Value) -> str:
    if value.low is None or value.high is None or number(value.low) == number(value.high):
        return number(value.middle)
    return f"{number(value.middle)} ({number(value.low)} to {number(value.high)})"


def _chart(axes: _Axes, xs: Series, ys: Series, order: Sequence[str]) -> Iterator[Chart]:
    marks = {} if axes.by_load else short_names(order, LONGEST_MARK)
    lines = [line for index, label in enumerate(order) if (line := _line(label, index, axes, xs, ys, marks))]
    if not lines:
        return
    everything = [point for line in lines for point in line.points]
    best = front(everything, right=axes.right)
    yield Chart(
        name=axes.name,
        family="trade-off",
        option=axes.option,
        title=axes.title,
        description=f"Up and to the {'right' if axes.right else 'left'} is better. "
        f"{'; '.join(_words(line, axes) for line in lines)}.",
        x=fitted(axes.x, (end for point in everything for end in point.xs)),
        y=fitted(axes.y, (end for point in everything for end in point.ys)),
        lines=(*lines, Line("not beaten in both", None, best, "front")),
        reading="near",
        drawn=kinds_words(value for mine in (*xs.values(), *ys.values()) for value in mine.values()),
        right=axes.right,
        paper=axes.right or axes.option == LATENCIES[0].name,
    )


def _line(
    label: str, index: int, axes: _Axes, xs: Series, ys: Series, marks: Mapping[str, str]
) -> Line | None:
    both = [point for point in xs.get(label, {}) if point in ys.get(label, {})]
    points = []
    for point in both:
        x, y = xs[label][point], ys[label][point]
        text, key = axes.text(point, x, y), f"{label} {point.label}"
        mark = marks.get(label, point.label)
        points.append(Point(x.middle, y.middle, key, text, y.low, y.high, x.interval, mark))
    return Line(label, index, tuple(points)) if points else None


def front(points: Sequence[Point], *, right: bool = False) -> tuple[Point, ...]:
    """Points that no other beats in both, from the better x on. `right`: more of x is better."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.x if right else point.x, -point.y)):
        if not kept or point.y > kept[-1].y:
            kept.append(point)
    return tuple(Point(point.x, point.y) for point in kept)


def _words(line: Line, axes: _Axes) -> str:
    x = "per user" if axes.right else "ms"
    return f"{plain(line.label, 40)}: " + ", ".join(
        f"{number(point.y)} tokens/s at {number(point.x)} {x}" for point in line.points
    )


def speed_and_accuracy(
    groups: Sequence[Group], order: Sequence[str], agreement: Agreement | None
) -> Iterator[Chart]:
    """Uses the highest load, during which the questions may have been asked."""
    if agreement is None or not groups:
        return
    *_, group = groups
    rates = series([group], RATE)
    lines = list(_lines(rates, group.point, order, agreement))
    if len(lines) < 2:
        return
    points = [line.points[0] for line in lines]
    least = min(point.low or 0.0 for point in points)
    most = max(point.high or 0.0 for point in points)
    ends = _STEP * math.floor(least / _STEP), _STEP * math.ceil(most / _STEP)
    kinds = kinds_words(value for line in lines for value in rates[line.label].values())
    yield Chart(
        name="speed-accuracy",
        family="trade-off",
        option="accuracy",
        title=f"Answers right against output tokens/s, {point_words(group.point)}",
        description="Up and to the right is better. "
        + "; ".join(f"{plain(line.label, 40)}: {line.points[0].text}" for line in lines)
        + ".",
        x=fitted(RATE.title, (end for point in points for end in point.xs)),
        y=linear("answers right, %", *ends),
        lines=(*lines, Line("not beaten in both", None, front(points, right=True), "front")),
        reading="near",
        drawn=f"share of right answers with its 95% interval{f'; {RATE.name}: {kinds}' if kinds else ''}",
        right=True,
        paper=True,
    )


def _lines(rates: Series, load: LoadPoint, order: Sequence[str], agreement: Agreement) -> Iterator[Line]:
    """Yields a line of one point for each backend that has both figures."""
    marks = short_names(order, LONGEST_MARK)
    for index, label in enumerate(order):
        backend, rate = agreement.backends.get(label), rates.get(label, {}).get(load)
        share = known(backend.unloaded.accuracy) if backend else None
        if rate is None or share is None:
            continue
        low, middle, high = (100 * end for end in share)
        figures = [percent_figure(end) for end in share]
        text = f"{rate.text(RATE)}, {figures[1]}% right ({figures[0]} to {figures[2]})"
        lost = _against_first(agreement, label)
        text = f"{text}; {lost}" if lost else text
        point = Point(rate.middle, middle, label, text, low, high, rate.interval, marks[label])
        yield Line(label, index, (point,))


def _against_first(agreement: Agreement, label: str) -> str:
    """`loses 3.1 to 8.4 points against vllm (…)`, one at a time; "" for the first backend."""
    first = next(iter(agreement.backends))
    for change in agreement.accuracy:
        if (change.a, change.b, change.under_load) == (first, label, False):
            return f"{change.words} against {first}"
    return ""
