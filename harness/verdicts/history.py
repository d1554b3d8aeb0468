"""Follows figures over many runs: entries to append, series of them, and changes of their level."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np

from harness.conditions import TABLE, settings
from harness.conditions.measured import MATTERS
from harness.model import (
    UNSET,
    CellResult,
    HistoryEntry,
    HistoryFigure,
    HistoryHost,
    HostFacts,
    LoadPoint,
    Manifest,
    Summary,
    UnsetType,
    as_json,
    better_of,
    known,
)
from harness.model.metric_table import root_of
from harness.stats.steps import Level, levels
from harness.verdicts.gate import TAIL, failed_of
from harness.verdicts.rules import SESSION_FLOOR

TAIL_METRIC = f"{TAIL}.p99"  # if there are enough requests for it
LEAST_NIGHTS = 3  # a change counts from this many runs on
_ROUNDING = 1e-9  # of a share, by its logarithms
# The engine, which the user's own name of a server does not tell, and what is asked of it. The others of
# these have a key of their own in a line.
_ASKED = {
    key.code: key
    for key in TABLE
    if key.code == "backend"
    or (
        key.area == "work"
        and key.itself == "refuses"
        and key.code not in ("workload", "simulated", "scenario", "thinking")
    )
}

Key = tuple[str, LoadPoint]  # a backend and a load


def entries(manifest: Manifest, summary: Summary) -> list[HistoryEntry]:
    """Lines of the history for a run, one per backend and load: the metrics of its verdicts, and the tail.

    What `not_kept` names has none.
    """
    return [
        _entry(manifest, summary, key, work, metrics)
        for key, metrics in _figures(summary).items()
        if (work := _requests(summary, key)) is not None
    ]


def not_kept(summary: Summary) -> list[str]:
    """A sentence for each backend and load without a valid figure, or whose requests are not known.

    Every repeat has requests of its own, and the first ones say whether nights had the same.
    """
    figures = _figures(summary)
    if not summary.cells:
        return [f"{summary.run} is not in the history: no cell of it was measured"]
    return [
        f"{label} {load.label} of {summary.run} is not in the history: {why}"
        for label, load in dict.fromkeys((cell.label, cell.point) for cell in summary.cells if not cell.probe)
        if (why := _why_not(summary, (label, load), figures))
    ]


def _why_not(summary: Summary, key: Key, figures: Container[Key]) -> str:
    if key not in figures:
        return "it has no valid figure"
    if _requests(summary, key) is None:
        return "without its first repeat, its requests are not known to be those of other runs"
    return ""


def _figures(summary: Summary) -> dict[Key, dict[str, HistoryFigure]]:
    figures: dict[Key, dict[str, HistoryFigure]] = {}
    for estimate in summary.estimates:
        if estimate.metric in (*summary.verdict_rules.metrics, TAIL_METRIC):
            here = figures.setdefault((estimate.label, estimate.load), {})
            here[estimate.metric] = HistoryFigure(interval=estimate.interval, runs=estimate.runs)
    return figures


def _requests(summary: Summary, key: Key) -> str | None:
    """Hash of the first repeat's requests, or that of another backend that had the same in other repeats.

    A capacity search tries a load in any repeat, so its first one there counts.
    """
    by_label: dict[str, dict[int, str]] = {}
    for cell in summary.cells:
        if cell.point == key[1]:
            hashes = by_label.setdefault(cell.label, {})
            hashes.setdefault(0 if cell.probe else cell.repeat, cell.workload_sha256)
    own = by_label[key[0]]
    alike = (hashes for hashes in by_label.values() if hashes.items() & own.items())
    return next((hashes[0] for hashes in (own, *alike) if 0 in hashes), None)


def _entry(
    manifest: Manifest, summary: Summary, key: Key, work: str, metrics: dict[str, HistoryFigure]
) -> HistoryEntry:
    cells = [cell for cell in summary.cells if (cell.label, cell.point) == key]
    host = manifest.host or HostFacts()
    failed, ended = failed_of(cells)
    prompts = [tokens.mean for cell in cells if (tokens := cell.conditions.prompt_tokens)]
    answers = [cell.conditions.output_tokens_mean for cell in cells]
    return HistoryEntry(
        run=summary.run,
        created_utc=manifest.created_utc,
        scenario=summary.scenario,
        host=HistoryHost(
            cpu=host.cpu, cpu_features=host.cpu_features, cpus_usable=host.cpus_usable, gpus=host.gpus
        ),
        harness=manifest.git.revision if manifest.git else None,
        simulated=summary.simulated,
        label=key[0],
        load=key[1],
        workload_sha256=work,
        prompt_tokens_mean=UNSET if work else _mean(prompts),
        output_tokens_mean=UNSET if work else _mean(answers),
        engine_version=", ".join(dict.fromkeys(filter(None, (cell.engine_version for cell in cells))))
        or None,
        conditions=dict(_conditions(manifest, cells)),
        invalid=sum(cell.invalid for cell in cells),
        failed=failed,
        ended=ended,
        metrics=metrics,
    )


def _mean(values: Iterable[float | None]) -> float | UnsetType:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else UNSET


def _conditions(manifest: Manifest, cells: Sequence[CellResult]) -> Iterator[tuple[str, str]]:
    """A variant that the user's own name of a server hides goes with its engine."""
    stated, variant = settings(manifest, cells[0].label).known, f"@{cells[0].variant}"
    hidden = variant if cells[0].variant and variant not in cells[0].label else ""
    for code, key in _ASKED.items():
        of_cells = (key.cell(cell) for cell in cells if key.cell is not None)
        value = stated.get(code) or next((value for value in of_cells if value is not None), None)
        if value is not None:
            yield code, f"{value}{hidden}" if code == "backend" else str(value)


@dataclass(frozen=True, slots=True)
class Series:
    """One metric of one backend at one load, over runs in order of time."""

    scenario: str
    label: str
    load: LoadPoint
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
        return {_ASKED[code].title: value for conditions in asked for code, value in conditions.items()}

    @property
    def simulated(self) -> bool:
        """Whether a scripted server answered: in all of them, or in none."""
        return bool(known(self.entries[0].simulated))


@dataclass(frozen=True, slots=True)
class Drift:
    """The present level of a series, worse than its best one. `ratio` is above 1, whatever the metric."""

    series: Series
    ratio: float
    kind: str  # step: one change made most of it; creep: several did
    since: HistoryEntry  # the first run of the present level
    best: HistoryEntry  # the last run of the best level

    @property
    def share(self) -> float:
        """How much worse it is, as a share of the best level."""
        return _share(self.series, self.ratio)

    def as_json(self) -> dict[str, object]:
        return {
            "scenario": self.series.scenario,
            "label": self.series.label,
            "simulated": self.series.simulated,
            "load": as_json(self.series.load),
            "metric": self.series.metric,
            "worse_by": self.share,
            "kind": self.kind,
            "since_run": self.since.run,
            "since_engine_version": self.since.engine_version,
            "best_run": self.best.run,
            "best_engine_version": self.best.engine_version,
        }


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs `start` to `stop` (exclusive) of a series, on one level: `value` is their geometric mean."""

    start: int
    stop: int
    value: float


@dataclass(frozen=True, slots=True)
class Change:
    """Change from one level of a series to the next. `ratio` above 1 is worse, whatever the metric."""

    series: Series
    ratio: float
    since: HistoryEntry  # the first run of the new level
    before: HistoryEntry  # the last run of the old one

    @property
    def share(self) -> float:
        """How much better or worse it is, as a share of the level before."""
        return _share(self.series, self.ratio)


def series(history: Sequence[HistoryEntry]) -> list[Series]:
    """A series for each metric, backend, engine, load, machine, workload and conditions of the load, with its
    runs in order of time. Those of a scripted server are apart, and files by the length of their requests.
    """
    by_figure: dict[tuple[object, ...], list[_Course]] = {}
    for entry in sorted(history, key=attrgetter("created_utc")):
        for metric, figure in entry.metrics.items():
            if better_of(metric) and figure.interval[1] > 0:
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
    return (entry.scenario, *entry.place, entry.host, entry.workload_sha256, simulated)


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
    """Engine, and conditions of the load that the metric depends on, by code."""
    return {
        code: value
        for code, value in (known(entry.conditions) or {}).items()
        if (key := _ASKED.get(code)) and (not key.metrics or root_of(metric) in key.metrics)
    }


def drifts(courses: Iterable[Series], floor: float = SESSION_FLOOR) -> list[Drift]:
    """Returns courses whose present level is worse than their best by more than `floor`.

    A level has three runs or more, so one bad night is not a level. Many small steps add up.
    """
    return [drift for course in courses if (drift := _drift(course, floor)) is not None]


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
    return [
        Change(series, math.exp(new.mean - old.mean), series.entries[new.start], series.entries[old.stop - 1])
        for old, new in pairwise(_levels(series))
    ]


def _levels(series: Series) -> list[Level]:
    """Levels of the logarithm of the values, with the sign that makes more worse."""
    return levels(np.log(np.array(series.values)) * _sign(series), least=LEAST_NIGHTS)


def _sign(series: Series) -> int:
    return 1 if better_of(series.metric) == "lower" else -1


def _share(series: Series, ratio: float) -> float:
    """Change of the value itself: a rate that is 1.25 times worse has lost a fifth."""
    return abs(ratio ** _sign(series) - 1)


def _drift(series: Series, floor: float) -> Drift | None:
    steps = _levels(series)
    last = steps[-1]
    best = min(steps, key=lambda level: level.mean)
    away = last.mean - best.mean
    if _share(series, math.exp(away)) <= floor + _ROUNDING:
        return None
    largest = max(_rises(steps, best), default=0.0)
    return Drift(
        series,
        math.exp(away),
        "step" if largest > 0.75 * away else "creep",
        series.entries[last.start],
        series.entries[best.stop - 1],
    )


def _rises(levels: Sequence[Level], best: Level) -> Iterator[float]:
    after = levels[levels.index(best) :]
    return (new.mean - old.mean for old, new in pairwise(after))
