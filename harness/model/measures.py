"""Names and units for figures: a metric of a cell, its statistic or class of requests, and a capacity."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model.metric import Charts, Metric
from harness.model.metric_table import CAPACITIES, METRICS, of_class
from harness.model.numbers import as_given, short, with_unit


@dataclass(frozen=True, slots=True)
class Measure:
    metric: Metric
    statistic: str = ""
    of: str = ""  # class of requests, `by_depth.4k`; "": the whole cell

    @property
    def path(self) -> str:
        """Path in a cell of summary.json."""
        return ".".join(part for part in (self.of, self.metric.name, self.statistic) if part)

    @property
    def name(self) -> str:
        return self._words(self.metric.short)

    @property
    def heading(self) -> str:
        return self._words(self.metric.title)

    @property
    def whose(self) -> str:
        """Suffix of the name for a class of requests: ` of 4k`; "" for the whole cell."""
        return f" of {self.of.partition('.')[2]}" if self.of else ""

    def _words(self, name: str) -> str:
        return f"{name} {self.statistic}".strip() + self.whose

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def scale(self) -> float:
        return self.metric.scale

    @property
    def title(self) -> str:
        return f"{self.name}, {self.unit}" if self.unit else self.name

    @property
    def ways(self) -> tuple[str, str]:
        """What follows a factor, ahead and behind: `1.33× faster` of a latency, `1.33× more` requests/s."""
        if self.metric.family == "latency":
            return "faster", "slower"
        return ("more", "less") if self.metric.better == "higher" else ("less", "more")

    def figure(self, value: float) -> str:
        """`79.2`, of a value in the metric's own unit."""
        return self.metric.figure(value)

    def figure_in_unit(self, value: float) -> str:
        """`99.97`, of a value that is in `unit` already, as those of charts are."""
        return self.figure(value / self.scale)

    def with_unit(self, figures: str) -> str:
        """`79.2 ms`, `80%`: figures as they are printed, and their unit."""
        return with_unit(figures, self.unit)

    def words(self, value: float) -> str:
        """`TTFT p50 79.2 ms`, of a value in the metric's own unit."""
        return self.with_unit(f"{self.name} {short(self.scale * value, 4)}")

    def at_most(self, limit: float) -> str:
        """`TTFT p95 ≤ 2000 ms`, of a limit in the metric's own unit, as it was given."""
        return self.with_unit(f"{self.name} ≤ {as_given(limit)}")


def verdict_ways(*figures: Measure) -> tuple[str, str]:
    """What a verdict on all of these calls ahead and behind: no share and no price is faster."""
    speeds = all(figure.metric.family in ("latency", "rate") for figure in figures)
    return ("faster", "slower") if speeds else ("better", "worse")


def measure(path: str) -> Measure:
    """The measure at a path in a cell. A path that names no metric becomes the name of one."""
    classes, metric = of_class(path)
    whole, _, statistic = metric.partition(".")
    known = METRICS.get(whole) or CAPACITIES.get(whole)
    if known is None:
        return Measure(Metric(name=path, short=path, title=path, about="", family="rate"))
    return Measure(known, statistic, classes)


def charted(statistics: Callable[[Charts], Iterable[str]]) -> list[Measure]:
    """One measure for each statistic that `statistics` picks from the charts of each metric."""
    return [
        Measure(metric, statistic)
        for metric in METRICS.values()
        if metric.charts
        for statistic in statistics(metric.charts)
    ]
