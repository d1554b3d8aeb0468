"""What a run shows, as data: per load and metric the order of the backends and each pair's speed-up.

Terminal, Markdown and report word their claims from these types. Knows no output format.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from harness.compare.verdict import left_out_words
from harness.model import Interval, LoadPoint, PairVerdict, Summary
from harness.report.measures import Measure, measure
from harness.report.text import counted, plain
from harness.report.view import Group, Row

State = Literal["separated", "same", "undecided", "not comparable"]

_STATES: dict[str, State] = {
    "faster": "separated",
    "slower": "separated",
    "same": "same",
    "not enough runs": "undecided",
    "not comparable": "not comparable",
}


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times better `ahead` is than `behind`, whichever way a metric is better."""

    ahead: str
    behind: str
    state: State
    times: Interval | None  # over the geometric means of the repeats; None where no interval was found
    why: str
    left_out: str = ""  # `llamacpp: 1 of 5 runs left out: not steady`; "" where all runs with a figure count

    @property
    def factor(self) -> str:
        """`2.44×`, or "" where no interval was found."""
        return f"{self.times.estimate:.3g}×" if self.times else ""

    @property
    def span(self) -> str:
        """`2.44× (0.96 to 6.2)`, or "" where no interval was found."""
        return f"{self.factor} ({self.times.low:.3g} to {self.times.high:.3g})" if self.times else ""


@dataclass(frozen=True, slots=True)
class Place:
    """A backend at one load in one metric."""

    label: str
    median: float | None  # over the repeats that are not INVALID, as the result table has it
    repeats: int  # with a figure
    doubt: str  # `5 of 5 repeats SUSPECT: too-short, lockstep`; "" where all are VALID


@dataclass(frozen=True, slots=True)
class Order:
    """One metric at one load. `places` are sorted by their medians, best first, without a figure last."""

    point: LoadPoint
    of: Measure
    places: tuple[Place, ...]
    pairs: tuple[Speedup, ...]

    @property
    def best(self) -> Place | None:
        """Of the best median; None where no backend has a figure."""
        return self.places[0] if self.places and self.places[0].median is not None else None

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Best first. Every member of a group is separated from every member of the next, and ahead of it."""
        apart = {(pair.ahead, pair.behind) for pair in self.pairs if pair.state == "separated"}
        known = [place.label for place in self.places if place.median is not None]
        cuts = [
            index
            for index in range(1, len(known))
            if all(pair in apart for pair in product(known[:index], known[index:]))
        ]
        ends = [*cuts, len(known)] if known else []
        return tuple(tuple(known[start:end]) for start, end in zip([0, *cuts], ends, strict=False))

    def about(self, label: str) -> tuple[Speedup, ...]:
        """The pairs of which this backend is one."""
        return tuple(pair for pair in self.pairs if label in (pair.ahead, pair.behind))


def orders(summary: Summary, group: Group) -> tuple[Order, ...]:
    """Of every metric that was compared at this load, the primary one first."""
    entries = [entry for entry in summary.comparison if entry.load == group.point]
    first = summary.verdict_rules.primary
    names = sorted(dict.fromkeys(entry.metric for entry in entries), key=lambda metric: metric != first)
    return tuple(_order(group, measure(name), entries) for name in names)


def order(summary: Summary, group: Group) -> Order:
    """Of the primary metric, which has no pairs where nothing was compared."""
    entries = [entry for entry in summary.comparison if entry.load == group.point]
    return _order(group, measure(summary.verdict_rules.primary), entries)


def _order(group: Group, of: Measure, entries: Sequence[PairVerdict]) -> Order:
    sign = -1 if of.metric.better == "higher" else 1
    places = sorted(
        (_place(row, of) for row in group.rows),
        key=lambda place: (place.median is None, sign * (place.median or 0.0)),
    )
    pairs = tuple(speedup(entry) for entry in entries if entry.metric == of.path)
    return Order(group.point, of, tuple(places), pairs)


def _place(row: Row, of: Measure) -> Place:
    spread = row.spread(of.path)
    return Place(row.label, spread.median if spread else None, spread.repeats if spread else 0, doubt(row))


def speedup(entry: PairVerdict) -> Speedup:
    """`ahead` is the better one by the verdict, or by the estimate where nothing was decided."""
    state = _STATES[entry.verdict]
    times = _better(entry)
    a_ahead = entry.verdict == "faster" or (
        entry.verdict != "slower" and (times is None or times.estimate >= 1)
    )
    ahead, behind = (entry.a, entry.b) if a_ahead else (entry.b, entry.a)
    shown = times if a_ahead or times is None else _turned(times)
    return Speedup(ahead, behind, state, shown, plain(entry.why), "; ".join(_left_out(entry)))


def _left_out(entry: PairVerdict) -> Iterator[str]:
    for label, out, measured in zip((entry.a, entry.b), entry.left_out, entry.measured, strict=True):
        if out:
            yield f"{label}: {left_out_words(out, measured)}"


def _better(entry: PairVerdict) -> Interval | None:
    """How many times better a is than b."""
    if entry.ratio is None:
        return None
    return entry.ratio if entry.better == "higher" else _turned(entry.ratio)


def _turned(ratio: Interval) -> Interval:
    low, middle, high = (1 / end if end else float("inf") for end in ratio)
    return Interval(high, middle, low)


def doubt(row: Row) -> str:
    """Which of its repeats are not VALID, and by which rules."""
    verdict, count = row.validity
    if verdict == "VALID":
        return ""
    codes = dict.fromkeys(
        reason.code
        for cell in row.cells
        for reason in cell.validity.reasons
        if cell.validity.verdict == verdict
    )
    return plain(f"{count} of {counted(len(row.cells), 'repeat')} {verdict}: {', '.join(codes)}")


def doubts(group: Group) -> Iterator[str]:
    """One line per backend whose figures at this load are in doubt."""
    for row in group.rows:
        if words := doubt(row):
            yield f"{row.label}: {words}"
