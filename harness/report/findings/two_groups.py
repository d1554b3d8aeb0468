"""Medians that lie between two groups of requests: few or none took that long."""

from collections.abc import Iterator
from statistics import median

from harness.model import METRICS, LatencyStats, LoadPoint, Summary, known
from harness.model.json_path import value_at
from harness.model.measures import measure
from harness.model.metric_table import CLASSES
from harness.model.numbers import number
from harness.report.findings.classes import medians
from harness.report.view import Row, groups
from harness.report.wording import plain

HINT = "it moves from one to the other from run to run: compare each group, the mean or the p90"
_SHOWN = tuple(
    metric.name
    for metric in METRICS.values()
    if metric.family == "latency" and any(column.statistic == "p50" for column in metric.columns)
)
_MOST_CLASSES = 4


def two_groups(summary: Summary) -> Iterator[str]:
    """Yields a sentence for each backend, load and latency of which most repeats have such a median."""
    for group in groups(summary):
        for row in group.rows:
            for metric in _SHOWN:
                if ends := _ends(row, metric):
                    yield _sentence(row, group.point, metric, *ends)


def _ends(row: Row, metric: str) -> tuple[float, float] | None:
    """Ends of the gap in ms, each the median of the repeats that have one."""
    figures = [value_at(cell, metric) for cell in row.usable]
    gaps = [gap for stats in figures if isinstance(stats, LatencyStats) and (gap := known(stats.p50_gap))]
    if not gaps or 2 * len(gaps) <= len(figures):
        return None
    return median(low for low, _ in gaps), median(high for _, high in gaps)


def _sentence(row: Row, point: LoadPoint, metric: str, low: float, high: float) -> str:
    shown = measure(f"{metric}.p50")
    between = shown.with_unit(f"{number(low)} and {number(high)}")
    text = f"{row.label} {point.label}: {shown.name} lies between two groups of requests, about {between}"
    return plain(text + _classes(row, metric, low, high))


def _classes(row: Row, metric: str, low: float, high: float) -> str:
    """The classes of requests that are the two groups, with their medians; empty if none are."""
    for key in CLASSES:
        by_name = medians(row, key, f"{metric}.p50")
        inside = any(low < middle < high for middle in by_name.values())
        if inside or not 2 <= len(by_name) <= _MOST_CLASSES:
            continue
        if min(by_name.values()) <= low and max(by_name.values()) >= high:
            parts = (f"{key.removeprefix('by_')} {name} {number(each)} ms" for name, each in by_name.items())
            return f" ({', '.join(parts)})"
    return ""
