"""Speed against the share of right answers, a point per backend: what a variant gains and loses."""

import math
from collections.abc import Iterator, Sequence

from harness.model import Agreement, LoadPoint, known
from harness.model.measures import measure
from harness.model.numbers import percent_figure
from harness.report.charts.axes import fitted, linear
from harness.report.charts.load import Series, series
from harness.report.charts.model import Chart, Line, Point
from harness.report.charts.pareto import LONGEST_MARK, front
from harness.report.charts.values import kinds_words
from harness.report.view import Group, point_words
from harness.report.wording import plain, short_names

RATE = measure("output_tokens_per_s")
_STEP = 10  # percent, to which the ends of the axis are rounded


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
