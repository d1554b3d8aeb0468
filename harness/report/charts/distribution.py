"""Cumulative distributions by backend at one load point: what share of requests was at least this fast."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.model import METRICS, Metric
from harness.model.numbers import number
from harness.report.charts.axes import fitted, linear
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.samples import DISTRIBUTED, Samples
from harness.report.view import Group, Row, point_words
from harness.report.wording import NOT_KNOWN, plain

Floats = NDArray[np.float64]

SHARES = (0.1, *range(1, 100), 99.5, 99.9)  # of which a curve is made: more cannot be seen
WITH_REPEATS = 4  # backends: with more, lines of single repeats hide each other
THIN = 40  # points of the curve of a single repeat
TAIL = 99.9  # the axis ends here, so that one stray gap does not flatten every curve


def distributions(
    groups: Sequence[Group], samples: Mapping[str, Samples], order: Sequence[str]
) -> Iterator[Chart]:
    """One per metric and load; those of a metric share their axes, so that loads can be compared by eye."""
    for name in DISTRIBUTED:
        found = [
            (group, {row.label: values for row in group.rows if (values := _values(row, samples, name))})
            for group in groups
        ]
        measured = [(group, by_label) for group, by_label in found if by_label]
        if measured:
            everything = [
                np.concatenate(repeats) for _, by_label in measured for repeats in by_label.values()
            ]
            axis = _axis(f"{METRICS[name].title}, {METRICS[name].unit}", everything)
            for group, by_label in measured:
                yield _chart(METRICS[name], group, by_label, axis, order)


def _chart(
    metric: Metric, group: Group, by_label: Mapping[str, list[Floats]], axis: Axis, order: Sequence[str]
) -> Chart:
    """Single repeats are drawn next to their pool where there is room."""
    charts = DISTRIBUTED[metric.name]
    pooled = {label: np.sort(np.concatenate(values)) for label, values in by_label.items()}
    lines = []
    for label, repeats in by_label.items():
        index = order.index(label)
        if len(repeats) > 1 and len(order) <= WITH_REPEATS:
            lines += [
                Line(label, index, _curve(np.sort(latencies), thin=True), "repeat") for latencies in repeats
            ]
        lines.append(Line(label, index, _curve(pooled[label])))
    return Chart(
        name=f"{charts.stem}-cdf-{group.point.label}",
        family="distribution",
        option=metric.short,
        title=f"Distribution of {metric.short}, {point_words(group.point)}",
        description=_description(metric, [row for row in group.rows if row.label in by_label]),
        x=axis,
        y=linear(f"share of {'requests' if metric.per_request else 'gaps'}, %", 0, 100),
        lines=tuple(lines),
        reading="y",
        paper=charts.distribution == "papers",
    )


def _values(row: Row, samples: Mapping[str, Samples], metric: str) -> list[Floats]:
    """Arrays of the repeats that have a valid value."""
    arrays: list[Floats] = [
        samples[cell.cell].latencies[metric] for cell in row.usable if cell.cell in samples
    ]
    return [values for values in arrays if np.isfinite(values).any()]


def _curve(ordered: Floats, *, thin: bool = False) -> tuple[Point, ...]:
    """Values never reached are infinite, so their curve ends below 100%. A `thin` curve has no readable
    points."""
    count = len(ordered)
    points = [Point(float(ordered[0]), 0.0)]
    for share in np.linspace(0, 100, THIN).tolist()[1:] if thin else SHARES:
        value = float(ordered[max(0, int(np.ceil(count * share / 100)) - 1)])
        if np.isfinite(value):
            key = "" if thin else f"p{share:g}"
            points.append(Point(value, float(share), key, "" if thin else f"{number(value)} ms"))
    if not thin and np.isfinite(ordered[-1]):
        points.append(Point(float(ordered[-1]), 100.0, "max", f"{number(float(ordered[-1]))} ms"))
    return tuple(points)


def _axis(title: str, everything: Iterable[Floats]) -> Axis:
    finite = [values[np.isfinite(values)] for values in everything]
    low = min(float(np.percentile(values, 1)) for values in finite)
    high = max(float(np.percentile(values, TAIL)) for values in finite)
    return fitted(title, (low, high))


def _description(metric: Metric, rows: Sequence[Row]) -> str:
    """Has the medians of the table, which failed requests may withhold."""
    medians = [(row.label, row.middle(f"{metric.name}.p50")) for row in rows]
    parts = [
        f"{plain(label, 40)}: median {NOT_KNOWN if middle is None else f'{number(middle)} ms'}"
        for label, middle in medians
    ]
    return f"Cumulative distribution, one curve per backend. {'; '.join(parts)}."
