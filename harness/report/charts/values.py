"""One figure of one backend at one load point, with what is known of its spread."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.measures import Measure
from harness.report.view import Row

MIN_RUNS = 3  # of an interval over runs: with two it says nothing but that two are too few

# What a mark and its bar are: tables have the median of the repeats.
INTERVAL = "geometric mean of the runs with its 95% interval"
POOLED = "requests of all repeats together, with a 95% interval"
RANGE = "median of the repeats with their range"


@dataclass(frozen=True, slots=True)
class Value:
    middle: float
    low: float | None
    high: float | None
    kind: str  # INTERVAL, POOLED, RANGE, or "" of a single run

    @property
    def ends(self) -> tuple[float, ...]:
        return tuple(end for end in (self.low, self.middle, self.high) if end is not None)

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def text(self, measure: Measure) -> str:
        ends = (end for end in (self.middle, self.low, self.high) if end is not None)
        words, *span = (measure.figure_in_unit(end) for end in ends)
        if len(set(span)) == 2:
            words += f" ({' to '.join(span)})"
        return measure.with_unit(words)


def kinds_words(values: Iterable[Value]) -> str:
    """What these values and their intervals are; "" if none has an interval."""
    return " or ".join(sorted({value.kind for value in values} - {""}))


def value_of(row: Row, measure: Measure) -> Value | None:
    """The estimate if there is one, else the value of the cells, in the measure's unit; None if no usable
    repeat has it.

    Repeats that are not all above 0 have no geometric mean: they show their range.
    """
    spread = row.spread(measure.path)
    if spread is None:
        return None
    estimate = row.estimates.get(measure.path)
    if estimate and estimate.runs >= MIN_RUNS and estimate.whole is not None and spread.low > 0:
        low, middle, high = (measure.scale * end for end in estimate.whole)
        return Value(middle, low, high, POOLED if estimate.method == "pooled" else INTERVAL)
    middle = measure.scale * spread.median
    if spread.repeats < 2:
        return Value(middle, None, None, "")
    return Value(middle, measure.scale * spread.low, measure.scale * spread.high, RANGE)
