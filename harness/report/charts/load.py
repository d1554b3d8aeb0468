"""Each figure against the load; at a single load point the backends one below the other."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from harness.model import LoadPoint
from harness.report.charts.axes import fitted, linear, loads, rows
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.charts.values import Value, Values
from harness.report.measures import Measure, measure
from harness.report.text import number, plain
from harness.report.view import Group, point_words

AXES = {
    "concurrency": "concurrency (closed loop)",
    "rate": "requests/s asked (open loop)",
    "trace": "speed of the replay (open loop)",
}

# path → file name, title; the first of each kind are also drawn for papers
DRAWN = {
    "ttft_ms.p50": ("ttft-load", "Time to first token"),
    "ttft_ms.p90": ("ttft-p90-load", "Time to first token"),
    "ttft_ms.p99": ("ttft-p99-load", "Time to first token"),
    "itl_ms.p50": ("itl-load", "Inter-token latency"),
    "itl_ms.p99": ("itl-p99-load", "Inter-token latency"),
    "tpot_ms.p50": ("tpot-load", "Time per output token"),
    "e2e_ms.p50": ("e2e-load", "End-to-end latency"),
    "e2e_ms.p90": ("e2e-p90-load", "End-to-end latency"),
    "output_tokens_per_s": ("throughput-load", "Throughput"),
    "requests_per_s": ("requests-load", "Answers"),
    "goodput_requests_per_s": ("goodput-load", "Goodput"),
    "prefix_cache_hit_rate": ("cache-load", "Prefix-cache hits"),
    "structured_valid_rate": ("valid-load", "Answers that fit the schema"),
    "cost_per_million_output_tokens": ("cost-load", "Cost"),
    "joules_per_output_token": ("energy-load", "Energy"),
}
PAPER = {
    "ttft_ms.p50", "ttft_ms.p90", "output_tokens_per_s", "goodput_requests_per_s", "prefix_cache_hit_rate",
    "cost_per_million_output_tokens",
}  # fmt: skip
SHARES = {"prefix_cache_hit_rate", "structured_valid_rate"}

Series = dict[str, dict[LoadPoint, Value]]


def against_load(groups: Sequence[Group], values: Values, order: Sequence[str]) -> Iterator[Chart]:
    for path in DRAWN:
        for kind, same_kind in groupby(groups, key=lambda group: group.point.kind):
            yield from _chart(measure(path), kind, list(same_kind), values, order)


def series(groups: Sequence[Group], values: Values, of: Measure) -> Series:
    """Label → load → value."""
    found: Series = {}
    for group in groups:
        for row in group.rows:
            if value := values.value(row, of):
                found.setdefault(row.label, {})[group.point] = value
    return found


def _chart(
    of: Measure, kind: str, groups: Sequence[Group], values: Values, order: Sequence[str]
) -> Iterator[Chart]:
    found = series(groups, values, of)
    if not found:
        return
    name, title = DRAWN[of.path]
    best = series(groups, values, measure("prefix_cache_ideal")) if of.path == "prefix_cache_hit_rate" else {}
    single = len(groups) == 1
    where = point_words(groups[0].point) if single else f"against {AXES[kind]}"
    drawn = _rows(found, best, of, order) if single else _lines(found, best, of, groups, order)
    x, y, lines = drawn
    yield Chart(
        name=f"{name}-{kind}",
        family="load",
        option=of.name,
        title=f"{title}{', ' if single else ' '}{where}",
        description=_description(found, of),
        x=x,
        y=y,
        lines=tuple(lines),
        reading="y" if single else "x",
        sideways=single,
        bars=next((value.kind for by in found.values() for value in by.values() if value.kind), ""),
        paper=of.path in PAPER,
    )


def _lines(
    found: Series, best: Series, of: Measure, groups: Sequence[Group], order: Sequence[str]
) -> tuple[Axis, Axis, list[Line]]:
    lines = [
        Line(label, order.index(label), tuple(
            Point(point.value, value.middle, point.label, value.text(of), value.low, value.high)
            for point, value in by_load.items()
        ))
        for label, by_load in found.items()
    ]  # fmt: skip
    ideal = {point: value for by_load in best.values() for point, value in by_load.items()}
    if ideal:
        points = (
            Point(point.value, value.middle, point.label, value.text(of)) for point, value in ideal.items()
        )
        lines.append(Line("ideal", None, tuple(sorted(points, key=lambda point: point.x)), "ideal"))
    points_ = [group.point.value for group in groups]
    return loads(AXES[groups[0].point.kind], points_), _values_axis(of, found), lines


def _rows(found: Series, best: Series, of: Measure, order: Sequence[str]) -> tuple[Axis, Axis, list[Line]]:
    """Rows for every backend, those without a value too: an empty row says so."""
    lines = []
    for label, by_load in found.items():
        (value,) = by_load.values()
        place = float(order.index(label))
        point = Point(value.middle, place, label, value.text(of), value.low, value.high)
        lines.append(Line(label, order.index(label), (point,)))
    ideal = [value for by_load in best.values() for value in by_load.values()]
    title = of.title
    if ideal:
        ends = (Point(ideal[0].middle, -0.6), Point(ideal[0].middle, len(order) - 0.4))
        lines.append(Line("ideal", None, ends, "ideal"))
        title += " (dotted: ideal)"
    return _values_axis(of, found, title), rows([plain(label, 30) for label in order]), lines


def _values_axis(of: Measure, found: Series, title: str | None = None) -> Axis:
    title = title or of.title
    if of.path in SHARES:
        return linear(title, 0, 100)
    return fitted(
        title, (end for by_load in found.values() for value in by_load.values() for end in value.ends)
    )


def _description(found: Series, of: Measure) -> str:
    parts = [
        f"{plain(label, 40)}: "
        + ", ".join(f"{number(value.middle)} at {point.value:g}" for point, value in by_load.items())
        for label, by_load in found.items()
    ]
    return f"{of.title}. {'; '.join(parts)}."
