"""The ends of an axis and its ticks. page.js does the same when a backend is hidden, with the numbers of
`RULES`."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness.model.numbers import as_given
from harness.report.charts.model import LOG_WORDS, Axis

LOG_FROM = 30.0  # a range wider than this is drawn on a logarithmic axis
LOG_LOADS_FROM = 4.0  # loads are mostly doubled from point to point
TICKS = 5
STEPS = (1, 2, 2.5, 5, 10)  # what may lie between two ticks
ROOM = 0.12  # above the largest value
LOG_ROOM = 1.5  # on both sides, as a factor
DECADE = (1, 2, 5)
WIDE = 2000.0  # a range beyond it has ticks at decades alone
RULES = {
    "logFrom": LOG_FROM,
    "ticks": TICKS,
    "steps": STEPS,
    "room": ROOM,
    "logRoom": LOG_ROOM,
    "logWords": LOG_WORDS,
    "decade": DECADE,
    "wide": WIDE,
}


def fitted(title: str, values: Iterable[float]) -> Axis:
    """Begins at zero, unless the values are so far apart that the small ones could not be read.

    It begins below a value that is less than zero, and then stays as it is when a backend is hidden.
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(0.0, max(finite, default=1.0))
    if low > 0 and high / low >= LOG_FROM:
        ends = low / LOG_ROOM, high * LOG_ROOM
        return Axis(title, *ends, decades(*ends), log=True, fits=True)
    if low < 0:
        return linear(title, low * (1 + ROOM), high * (1 + ROOM))
    return replace(linear(title, 0.0, high * (1 + ROOM) or 1.0), fits=True)


def linear(title: str, low: float, high: float) -> Axis:
    return Axis(title, low, high, steps(low, high))


def loads(title: str, values: Sequence[float], places: Iterable[float] = ()) -> Axis:
    """Has ticks only where it was measured. `places`: of points that are next to their ticks."""
    ends = (*values, *places)
    low, high = min(ends), max(ends)
    ticks = tuple((value, as_given(value)) for value in values)
    if low > 0 and high >= LOG_LOADS_FROM * low:
        margin = (high / low) ** 0.08
        return Axis(title, low / margin, high * margin, ticks, log=True)
    margin = 0.08 * (high - low) or 1.0
    return Axis(title, low - margin, high + margin, ticks)


def rows(names: Sequence[str]) -> Axis:
    """One row per name, the first on top."""
    return Axis("", len(names) - 0.4, -0.6, tuple(enumerate(names)))


def steps(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Round numbers, about TICKS of them."""
    raw = (high - low) / TICKS
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in STEPS if size * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    values = [(first + count) * step for count in range(int((high - low) / step) + 2)]
    return tuple((value, as_given(value)) for value in values if value <= high * (1 + 1e-9))


def decades(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """1, 2, 5, 10, … written out, since nobody reads exponents of milliseconds; only powers of ten if they
    are many."""
    wide = high / low > WIDE
    values = [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in (DECADE[:1] if wide else DECADE)
    ]
    return tuple((value, as_given(value)) for value in values if low <= value <= high)
