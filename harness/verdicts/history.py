"""Follows figures over many runs: series of them, and changes of their level."""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from harness.conditions.measured import MATTERS
from harness.model import Difference, HistoryEntry, Interval, LoadPoint, as_json, better_of, known
from harness.model.metric import Better
from harness.model.metric_table import CAPACITIES, root_of
from harness.stats.runs import exponential
from harness.stats.steps import Level, apart, joined, levels
from harness.verdicts.history_lines import ASKED
from harness.verdicts.rules import SESSION_FLOOR

LEAST_NIGHTS = 3  # a change counts from this many runs on
# Levels of printed figures that rounding explains: so many last digits apart, of so little spread in digits.
MOST_DIGITS, LEAST_SPREAD = 1.5, 0.4
_ROUNDING = 1e-9  # of a share, by its logarithms


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one backend at one load, over runs in order of time. A capacity has no `load`."""

    scenario: str
    label: str
    load: LoadPoint | None
    metric: str
    entries: tuple[HistoryEntry, ...]

    @property
    def values(self) -> list[float]:
        return [entry.metrics[self.metric].interval[1] for entry in self.entries]

    def has_any(self, runs: Container[str]) -> bool:
        return any(entry.run in runs for entry in self.entries)

    @property
    def conditions(self) -> dict[str, str]:
        """Engine and conditions of the load by their title; what an entry of an earlier version lacks, others
        have.
        """
        asked = (_asked(entry, self.metric) for entry in self.entries)
        return {ASKED[code].title: value for conditions in asked for code, value in conditions.items()}

    @property
    def simulated(self) -> bool:
        """Whether a scripted server answered: in all of them, or in none."""
        return bool(known(self.entries[0].simulated))


class Changed(NamedTuple):
    """A condition that a run has otherwise than the run before it."""

    run: HistoryEntry
    difference: Difference


@dataclass(frozen=True, slots=True)
class Change:
    """Change from one level of a series to the next. `ratio` above 1 is worse, whatever the metric."""

    series: Series
    ratio: float
    since: HistoryEntry  # the first run of the new level
    before: HistoryEntry  # the last run of the old one
    changed: tuple[Changed, ...] = ()  # around the first run of the new level

    @property
    def share(self) -> float:
        """How much better or worse it is, as a share of the level before."""
        return _share(self.series, self.ratio)

    def as_json(self) -> dict[str, object]:
        return {
            "since_run": self.since.run,
            "worse_by": self.share,
            "changed": [{"run": each.run.run, **as_json(each.difference)} for each in self.changed],
        }


@dataclass(frozen=True, slots=True)
class Drift:
    """The present level of a series, worse than its best one. `ratio` is above 1, whatever the metric."""

    series: Series
    ratio: float
    kind: str  # step: one change made most of it; creep: several did
    since: HistoryEntry  # the first run of the present level
    best: HistoryEntry  # the last run of the best level
    interval: Interval  # of the ratio, 95%
    steps: tuple[Change, ...] = ()  # for the worse, from the best level on

    @property
    def share(self) -> float:
        """How much worse it is, as a share of the best level."""
        return _share(self.series, self.ratio)

    @property
    def span(self) -> tuple[float, float]:
        """Ends of the interval of `share`; below 0 is better than the best level."""
        sign = _sign(self.series)
        low, high = (sign * (ratio**sign - 1) for ratio in (self.interval.low, self.interval.high))
        return low, high

    def as_json(self) -> dict[str, object]:
        return {
            "scenario": self.series.scenario,
            "label": self.series.label,
            "simulated": self.series.simulated,
            "load": as_json(self.series.load),
            "metric": self.series.metric,
            "worse_by": self.share,
            "worse_by_interval": list(self.span),
            "kind": self.kind,
            "since_run": self.since.run,
            "since_engine_version": self.since.engine_version,
            "best_run": self.best.run,
            "best_engine_version": self.best.engine_version,
            "steps": [step.as_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs `start` to `stop` (exclusive) of a series, on one level: `value` is their geometric mean."""

    start: int
    stop: int
    value: float


def series(history: Sequence[HistoryEntry]) -> list[Series]:
    """A series for each metric, backend, engine, load, machine, workload and conditions of the load, with its
    runs in order of time. Those of a scripted server are apart, and files by the length of their requests.
    """
    by_figure: dict[tuple[object, ...], list[_Course]] = {}
    for entry in sorted(history, key=attrgetter("created_utc")):
        for metric, figure in entry.metrics.items():
            if _better(metric) and figure.interval[1] > 0:
                key = (metric, *_work(entry))
                _join(by_figure.setdefault(key, []), entry, _asked(entry, metric))
    return [
        Series(entries_of[0].scenario, *entries_of[0].place, str(key[0]), tuple(entries_of))
        for key, courses in by_figure.items()
        for _conditions, entries_of in courses
    ]


def same_course(first: HistoryEntry, second: HistoryEntry) -> bool:
    """Whether both are points of the same series."""
    alike = known(first.conditions) == known(second.conditions) and _is_as_long(second, [first])
    return alike and _work(first) == _work(second)


def _work(entry: HistoryEntry) -> tuple[object, ...]:
    simulated = bool(known(entry.simulated))
    return (entry.scenario, *entry.place, entry.searched, entry.host, entry.workload_sha256, simulated)


_Course = tuple[dict[str, str], list[HistoryEntry]]  # conditions that are known of any of the entries


def _join(courses: list[_Course], entry: HistoryEntry, asked: Mapping[str, str]) -> None:
    """Adds the entry to the first course that it does not contradict.

    Earlier versions kept fewer conditions, or none.
    """
    for conditions, entries_of in courses:
        alike = all(conditions.get(code, value) == value for code, value in asked.items())
        if alike and _is_as_long(entry, entries_of):
            conditions.update(asked)
            entries_of.append(entry)
            return
    courses.append((dict(asked), [entry]))


def _is_as_long(entry: HistoryEntry, others: Iterable[HistoryEntry]) -> bool:
    """Whether prompts and answers have as many tokens as the first of the others that knows theirs."""
    for name in ("prompt_tokens_mean", "output_tokens_mean"):
        if mine := known(getattr(entry, name)):
            first = next(filter(None, (known(getattr(other, name)) for other in others)), mine)
            if abs(mine - first) > MATTERS * min(mine, first):
                return False
    return True


def _asked(entry: HistoryEntry, metric: str) -> dict[str, str]:
    """Engine, and conditions of the load that the metric depends on, by code.

    A capacity depends on what goodput does: both count requests within the limits.
    """
    root = "goodput_requests_per_s" if metric in CAPACITIES else root_of(metric)
    return {
        code: value
        for code, value in (known(entry.conditions) or {}).items()
        if (key := ASKED.get(code)) and (not key.metrics or root in key.metrics)
    }


def drifts(courses: Iterable[Series], floor: float = SESSION_FLOOR) -> list[Drift]:
    """Returns courses whose present level is worse than their best by more than `floor`.

    A level has three runs or more, so one bad night is not a level. Many small steps add up.
    """
    return [drift for course in courses if (drift := _drift(course, floor)) is not None]


def of_entries(courses: Iterable[Series], wanted: Callable[[HistoryEntry], bool]) -> list[Series]:
    """The courses with the wanted runs alone; a course without any is left out."""
    kept = (replace(course, entries=tuple(filter(wanted, course.entries))) for course in courses)
    return [course for course in kept if course.entries]


def from_day(courses: Iterable[Series], day: str) -> list[Series]:
    """The courses as they are judged where the levels before a day are accepted; "" accepts none."""
    return of_entries(courses, lambda entry: entry.created_utc[:10] >= day)


def stretches(series: Series) -> list[Stretch]:
    """Levels of a series in order. None has fewer than LEAST_NIGHTS runs."""
    sign = _sign(series)
    return [
        Stretch(level.start, level.stop, math.exp(sign * level.mean))
        for level in _levels(series)
        if level.stop - level.start >= LEAST_NIGHTS
    ]


def changes(series: Series) -> list[Change]:
    """Changes from each level to the next, for better or worse."""
    return _changes(series, _levels(series))


def _changes(series: Series, levels: Sequence[Level]) -> list[Change]:
    return [
        Change(series, math.exp(new.mean - old.mean), series.entries[new.start], series.entries[old.stop - 1])
        for old, new in pairwise(levels)
    ]


def _levels(series: Series) -> list[Level]:
    """Levels of the logarithm of the values, with the sign that makes more worse.

    Requests in flight are whole numbers, and several nights that find the same one are not as sure of it as
    their equality suggests.
    """
    values = np.log(np.array(series.values)) * _sign(series)
    found = levels(values, least=LEAST_NIGHTS, rounded_to=_rounded_to(series))
    digit = _last_digit(series)
    kept = found[:1]
    for level in found[1:]:
        if _is_rounding(kept[-1], level, digit):
            kept[-1] = joined(kept[-1], level)
        else:
            kept.append(level)
    return kept


def _last_digit(series: Series) -> float:
    """The last digit of printed figures as a step of their logarithms, 0 if they are not printed."""
    digits = [known(entry.metrics[series.metric].printed_to) or 0.0 for entry in series.entries]
    return max(digits) / float(np.median(series.values)) if any(digits) else 0.0


def _is_rounding(level: Level, other: Level, digit: float) -> bool:
    """Whether two levels are a digit apart and have too little spread of their own to show more than that:
    12 and 13 may be 12.4 and 12.6 each night.
    """
    spread = ((level.squares + other.squares) / (level.count + other.count)) ** 0.5
    return abs(level.mean - other.mean) < MOST_DIGITS * digit and spread < LEAST_SPREAD * digit


def _rounded_to(series: Series) -> float:
    """The step of its logarithms, 0 if they are not rounded."""
    return 1 / float(np.median(series.values)) if series.metric == "capacity_in_flight" else 0.0


def _sign(series: Series) -> int:
    return 1 if _better(series.metric) == "lower" else -1


def _better(metric: str) -> Better | None:
    return CAPACITIES[metric].better if metric in CAPACITIES else better_of(metric)


def _share(series: Series, ratio: float) -> float:
    """Change of the value itself: a rate that is 1.25 times worse has lost a fifth."""
    return abs(ratio ** _sign(series) - 1)


def _drift(series: Series, floor: float) -> Drift | None:
    found = _levels(series)
    last = found[-1]
    best = min(found, key=lambda level: level.mean)
    ratio = math.exp(last.mean - best.mean)
    if _share(series, ratio) <= floor + _ROUNDING:
        return None
    steps = [change for change in _changes(series, found[found.index(best) :]) if change.ratio > 1]
    largest = max((math.log(step.ratio) for step in steps), default=0.0)
    return Drift(
        series,
        ratio,
        "step" if largest > 0.75 * math.log(ratio) else "creep",
        series.entries[last.start],
        series.entries[best.stop - 1],
        exponential(apart(last, best, max(_rounded_to(series), _last_digit(series))).interval()),
        tuple(steps),
    )
