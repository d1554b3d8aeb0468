"""Everything that is declared of a metric: names, unit, definition, columns, charts, comparisons."""

from typing import Literal

from msgspec import Meta

from harness.model.numbers import as_given, number, percent_figure
from harness.model.record import Record

Better = Literal["lower", "higher"]
Family = Literal["latency", "rate", "share", "price"]
# A difference between two backends that distorts some metrics and not others.
Distortion = Literal[
    "answers",
    "output-length",
    "queued-output-length",
    "tokens-per-event",
    "token-count",  # the unit itself: tokens of the one are not those of the other
    "output-text",
]
Presence = Literal["always", "when known", "when asked for", "where it applies", "without text"]

PERCENTILES = ("p50", "p90", "p95", "p99")
STATISTICS = ("mean", *PERCENTILES)  # of a latency
OF_LENGTH: tuple[Distortion, ...] = ("answers", "output-length")
OF_ANSWERS: tuple[Distortion, ...] = (*OF_LENGTH, "output-text")
OF_TOKENS: tuple[Distortion, ...] = (*OF_LENGTH, "token-count")

# APIs whose answers come whole, as harness.apis declares them, and those of them with recordings in requests.
WITHOUT_TEXT = ("embeddings", "rerank", "transcriptions")
OF_AUDIO = ("transcriptions",)

_UNITS = {"latency": "ms", "share": "%"}


class Column(Record, frozen=True, kw_only=True):
    """A column of the result table."""

    statistic: str = ""  # of a latency
    head: tuple[str, str, str] | None = None  # two narrow lines and the unit; None: its short name
    presence: Presence = "always"


class Charts(Record, frozen=True, kw_only=True):
    """Charts of a metric, each by the statistics it draws; `""` for a metric that is no latency."""

    stem: str  # of their file names
    load: tuple[str, ...] = ("",)  # against the load
    rate: tuple[str, ...] = ()  # throughput against it
    papers: tuple[str, ...] = ()  # of `load`, drawn for papers too
    distribution: Literal["none", "page", "papers"] = "none"


class Metric(Record, frozen=True, kw_only=True):
    short: str  # `TTFT`: in table heads and on axes
    title: str  # `Time to first token`: what a chart is called
    about: str  # the definition
    family: Family
    name: str = ""  # its key in summary.json, set by the registry
    own_unit: str = ""  # of a rate or a price, and of a latency that is not in ms
    compared: bool = True  # whether a verdict can be about it
    whole: bool = False  # a count: 8, not 8.00
    per_request: bool = True  # exactly one value for each request, so that [slo] can limit it
    of_stamps: bool = True  # of a latency: the stamps of a request say it; else a family of its own does
    distorted_by: tuple[Distortion, ...] = ()
    of_text: bool = False  # of generated text: vectors and scores have no tokens, first or later
    # How it is computed, where this says it all; else harness/metrics has a function for it.
    span: tuple[str, str] | None = None  # of a latency: from one stamp of a request's record to another
    counts: str = ""  # of a rate: the field of a request's record that it sums, each by its share of work
    ideal: str = ""  # the metric that says its best value
    columns: tuple[Column, ...] = ()
    charts: Charts | None = None

    @property
    def unit(self) -> str:
        """Unit of its value times `scale`."""
        return self.own_unit or _UNITS.get(self.family, "")

    @property
    def scale(self) -> float:
        return 100.0 if self.family == "share" else 1.0

    def figure(self, value: float) -> str:
        """A value of it as people read it, without its unit."""
        if self.whole:
            return as_given(value)
        return percent_figure(value) if self.family == "share" else number(value)

    @property
    def better(self) -> Better | None:
        """Direction of better values; None if no verdict can be about the metric."""
        if not self.compared:
            return None
        return "lower" if self.family in ("latency", "price") else "higher"

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of its values in a cell of summary.json."""
        if self.family != "latency":
            return (self.name,)
        return tuple(f"{self.name}.{statistic}" for statistic in STATISTICS)

    @property
    def meta(self) -> Meta:
        """Annotation for the field of the document that holds its value."""
        return Meta(description=self.about, extra={"metric": self})
