"""Throughput against latency, a point per load: what one must be paid for with the other."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.report.charts.axes import fitted
from harness.report.charts.load import Series, series
from harness.report.charts.model import Chart, Line, Point
from harness.report.charts.values import Values
from harness.report.measures import Measure, measure
from harness.report.text import number, plain
from harness.report.view import Group

LATENCIES = ("ttft_ms.p50", "ttft_ms.p90", "tpot_ms.p50", "e2e_ms.p50")
RATE = measure("output_tokens_per_s")
WORDS = {"concurrency": "closed loop", "rate": "open loop", "trace": "trace replay"}


def trade_offs(groups: Sequence[Group], values: Values, order: Sequence[str]) -> Iterator[Chart]:
    for path in LATENCIES:
        for kind, same_kind in groupby(groups, key=lambda group: group.point.kind):
            found = list(same_kind)
            if len(found) > 1 or len(order) > 1:
                yield from _chart(measure(path), kind, found, values, order)


def _chart(
    latency: Measure, kind: str, groups: Sequence[Group], values: Values, order: Sequence[str]
) -> Iterator[Chart]:
    waits, rates = series(groups, values, latency), series(groups, values, RATE)
    lines = [line for label in order if (line := _line(label, waits, rates, latency, order))]
    if not lines:
        return
    everything = [point for line in lines for point in line.points]
    front = _front(everything)
    yield Chart(
        name=f"pareto-{latency.path.replace('_ms.', '-')}-{kind}",
        family="trade-off",
        option=latency.name,
        title=f"Throughput against {latency.name}, {WORDS[kind]}",
        description=f"Up and to the left is better. {'; '.join(map(_words, lines))}.",
        x=fitted(latency.title, (point.x for point in everything)),
        y=fitted(RATE.title, (point.y for point in everything)),
        lines=(*lines, Line("not beaten in both", None, front, "front")),
        reading="near",
        paper=latency.path == "ttft_ms.p50",
    )


def _line(label: str, waits: Series, rates: Series, latency: Measure, order: Sequence[str]) -> Line | None:
    both = [point for point in waits.get(label, {}) if point in rates.get(label, {})]
    points = []
    for point in both:
        wait, rate = waits[label][point], rates[label][point]
        text = f"{point.label}: {rate.text(RATE)} at {latency.name} {wait.text(latency)}"
        points.append(Point(wait.middle, rate.middle, f"{label} {point.label}", text))
    return Line(label, order.index(label), tuple(points)) if points else None


def _front(points: Sequence[Point]) -> tuple[Point, ...]:
    """Points that no other beats in both, by latency."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not kept or point.y > kept[-1].y:
            kept.append(point)
    return tuple(Point(point.x, point.y) for point in kept)


def _words(line: Line) -> str:
    return f"{plain(line.label, 40)}: " + ", ".join(
        f"{number(point.y)} tokens/s at {number(point.x)} ms" for point in line.points
    )
