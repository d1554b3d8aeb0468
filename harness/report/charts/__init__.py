"""The charts of a run, as data: the page draws them as its own SVG, matplotlib for papers."""

from collections.abc import Iterator, Mapping

from harness.model import Summary
from harness.report.charts.accuracy import speed_and_accuracy
from harness.report.charts.depth import against_depth
from harness.report.charts.distribution import distributions
from harness.report.charts.load import against_load
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.charts.pareto import trade_offs
from harness.report.charts.values import Values
from harness.report.samples import Samples
from harness.report.view import groups, labels

__all__ = ["Axis", "Chart", "Line", "Point", "charts"]


def charts(summary: Summary, samples: Mapping[str, Samples]) -> Iterator[Chart]:
    """`samples` by cell name. Charts without a value are left out."""
    load_groups, order, values = groups(summary), labels(summary), Values(summary)
    yield from distributions(load_groups, samples, order)
    yield from against_load(load_groups, values, order, summary.knees)
    yield from against_depth(load_groups, values, order)
    yield from trade_offs(load_groups, values, order)
    yield from speed_and_accuracy(load_groups, values, order, summary.agreement)
