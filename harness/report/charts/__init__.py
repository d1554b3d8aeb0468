"""The charts of a run, as data: the page draws them as its own SVG, matplotlib for papers."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from harness.model import Summary
from harness.report.charts.distribution import distributions
from harness.report.charts.load import against_depth, against_load
from harness.report.charts.model import Axis, Chart, Line, Point
from harness.report.charts.pareto import speed_and_accuracy, trade_offs
from harness.report.samples import Samples
from harness.report.view import groups, labels

__all__ = ["Axis", "Chart", "Line", "Point", "charts"]


MOST_ON_PAPER = 100  # backends: there are 72 looks, and a picture of a thousand is higher than a file may be


def charts(summary: Summary, samples: Mapping[str, Samples]) -> Iterator[Chart]:
    """`samples` by cell name. Charts without a value are left out, and none is for papers if it cannot be
    read there."""
    load_groups, order = groups(summary), labels(summary)
    found = chain(
        distributions(load_groups, samples, order),
        against_load(load_groups, order, summary.knees),
        against_depth(load_groups, order),
        trade_offs(load_groups, order, summary.per_user),
        speed_and_accuracy(load_groups, order, summary.agreement),
    )
    for chart in found:
        yield replace(chart, paper=chart.paper and len(order) <= MOST_ON_PAPER)
