"""A value of summary.json as people read it: a metric, and which statistic of it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model.metric import Charts, Metric
from harness.model.metric_table import METRICS


@dataclass(frozen=True, slots=True)
class Measure:
    metric: Metric
    statistic: str = ""

    @property
    def path(self) -> str:
        """Path in a cell of summary.json."""
        return f"{self.metric.name}.{self.statistic}" if self.statistic else self.metric.name

    @property
    def name(self) -> str:
        return f"{self.metric.short} {self.statistic}".strip()

    @property
    def heading(self) -> str:
        return f"{self.metric.title} {self.statistic}".strip()

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def scale(self) -> float:
        return self.metric.scale

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    def words(self, value: float) -> str:
        """`TTFT p50 79.2 ms`, of a value in the metric's own unit."""
        return f"{self.name} {self.scale * value:.4g} {self.unit}".rstrip()


def measure(path: str) -> Measure:
    """A path that nobody knows is its own name."""
    whole, _, statistic = path.partition(".")
    known = METRICS.get(whole)
    return Measure(known, statistic) if known else Measure(_unknown(path))


def _unknown(path: str) -> Metric:
    return Metric(name=path, short=path, title=path, about="", family="rate")


def charted(statistics: Callable[[Charts], Iterable[str]]) -> list[Measure]:
    """Returns the measures of every metric that has charts."""
    return [
        Measure(metric, statistic)
        for metric in METRICS.values()
        if metric.charts
        for statistic in statistics(metric.charts)
    ]
