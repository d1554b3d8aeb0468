"""A chart as data. Knows neither pixels nor colours."""

import math
from dataclasses import dataclass
from typing import Literal

Role = Literal["main", "repeat", "ideal", "front", "change", "knee"]
# How a reader finds a value: all that share an x, all that share a y, or the nearest point alone.
Reading = Literal["x", "y", "near"]

LOG_WORDS = ", log scale"


@dataclass(frozen=True, slots=True)
class Axis:
    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    fits: bool = False  # its ends follow from the values shown

    @property
    def words(self) -> str:
        """The title, which names a logarithmic scale: ticks at 1, 2, 4 and 8 alone look evenly spaced."""
        return f"{self.title}{LOG_WORDS}" if self.log else self.title

    def place(self, value: float) -> float:
        """Maps `low` to 0 and `high` to 1. Values beyond are drawn at the end."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    key: str = ""  # what it is read by: `c8`, `p90`; points of one key are read together
    text: str = ""  # the value as a reader sees it; "" cannot be read
    low: float | None = None  # ends of its interval, along y; along x where the chart lies on its side
    high: float | None = None
    across: tuple[float, float] | None = None  # ends of the interval of x, where y has one of its own
    mark: str = ""  # written next to the point: `c8`
    figure: str = ""  # written above it where a printed chart lies on its side: the value without its unit

    @property
    def xs(self) -> tuple[float, ...]:
        """x, and the ends of its interval where it has one of its own."""
        return self.x, *(self.across or ())

    @property
    def ys(self) -> tuple[float, ...]:
        """y, and what is known of the ends of its interval."""
        return tuple(end for end in (self.low, self.y, self.high) if end is not None)


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    backend: int | None  # index of the backend that it belongs to
    points: tuple[Point, ...]
    role: Role = "main"


@dataclass(frozen=True, slots=True)
class Chart:
    name: str  # of its files
    family: str  # charts that answer one question
    option: str  # which of the family: a metric
    title: str
    description: str  # for those who cannot see it
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    reading: Reading
    sideways: bool = False  # one row per backend, intervals along x
    drawn: str = ""  # what the marks and their intervals are; "": no interval
    right: bool = False  # of a trade-off: more is better along x as well
    paper: bool = False  # also drawn for papers, as PNG and SVG
