"""One figure over many runs: entries to append, series of them, and where a series changed its level."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

import numpy as np

from harness.model import (
    HistoryEntry,
    HistoryFigure,
    HistoryHost,
    HostFacts,
    LoadPoint,
    Manifest,
    Summary,
    as_json,
    better_of,
)
from harness.stats.steps import Level, levels
from harness.verdicts.gate import TAIL, failed_of
from harness.verdicts.rules import SESSION_FLOOR

TAIL_METRIC = f"{TAIL}.p99"  # where the requests suffice for it
LEAST_NIGHTS = 3  # a change counts from this many runs on


def entries(manifest: Manifest, summary: Summary) -> list[HistoryEntry]:
    """A run as lines of the history: one per backend and load, its verdicts' metrics and the tail."""
    figures: dict[tuple[str, LoadPoint], dict[str, HistoryFigure]] = {}
    for estimate in summary.estimates:
        if estimate.metric in (*summary.verdict_rules.metrics, TAIL_METRIC):
            here = figures.setdefault((estimate.label, estimate.load), {})
            here[estimate.metric] = HistoryFigure(interval=estimate.interval, runs=estimate.runs)
    return [_entry(manifest, summary, key, metrics) for key, metrics in figures.items()]


def _entry(
    manifest: Manifest, summary: Summary, key: tuple[str, LoadPoint], metrics: dict[str, HistoryFigure]
) -> HistoryEntry:
    cells = [cell for cell in summary.cells if (cell.label, cell.point) == key]
    host = manifest.host or HostFacts()
    failed, ended = failed_of(cells)
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
        workload_sha256=cells[0].workload_sha256,
        engine_version=cells[0].engine_version,
        invalid=sum(cell.invalid for cell in cells),
        failed=failed,
        ended=ended,
        metrics=metrics,
    )


@dataclass(frozen=True, slots=True)
class Series:
    """One metric in the order of the runs."""

    scenario: str
    label: str
    load: LoadPoint
    metric: str
    entries: tuple[HistoryEntry, ...]

    @property
    def values(self) -> list[float]:
        return [entry.metrics[self.metric].interval[1] for entry in self.entries]


@dataclass(frozen=True, slots=True)
class Drift:
    """The level a series has now against the best it had. `ratio` above 1 is worse, whatever the metric."""

    series: Series
    ratio: float
    kind: str  # step: one change made most of it; creep: several did
    since: HistoryEntry  # the first run of the present level
    best: HistoryEntry  # the last run of the best level

    def as_json(self) -> dict[str, object]:
        return {
            "scenario": self.series.scenario,
            "label": self.series.label,
            "load": as_json(self.series.load),
            "metric": self.series.metric,
            "worse_by": self.ratio - 1,
            "kind": self.kind,
            "since_run": self.since.run,
            "since_engine_version": self.since.engine_version,
            "best_run": self.best.run,
            "best_engine_version": self.best.engine_version,
        }


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs `start` to `stop` (exclusive) of a series lie about `value`, their geometric mean."""

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


def series(history: Sequence[HistoryEntry]) -> list[Series]:
    """Every metric of every backend and load, machines and workloads apart, runs by time."""
    by_figure: dict[tuple[object, ...], list[HistoryEntry]] = {}
    for entry in sorted(history, key=attrgetter("created_utc")):
        work = (entry.scenario, *entry.place, entry.host, entry.workload_sha256)
        for metric, figure in entry.metrics.items():
            if better_of(metric) and figure.interval[1] > 0:
                by_figure.setdefault((metric, *work), []).append(entry)
    return [
        Series(entries_of[0].scenario, *entries_of[0].place, str(key[0]), tuple(entries_of))
        for key, entries_of in by_figure.items()
    ]


def drifts(history: Sequence[HistoryEntry], floor: float = SESSION_FLOOR) -> list[Drift]:
    """Series whose present level is worse than their best by more than `floor`.

    A level is three runs or more, so one bad night is none; many small steps add up.
    """
    return [drift for figure in series(history) if (drift := _drift(figure, floor)) is not None]


def stretches(series: Series) -> list[Stretch]:
    """Returns the stretches in order. One of less than LEAST_NIGHTS runs is never a level of its own."""
    sign = _sign(series)
    return [Stretch(level.start, level.stop, math.exp(sign * level.mean)) for level in _levels(series)]


def changes(series: Series) -> list[Change]:
    """Returns where one level ends and the next begins, better or worse."""
    return [
        Change(
            series, math.exp(two.mean - first.mean), series.entries[two.start], series.entries[first.stop - 1]
        )
        for first, two in pairwise(_levels(series))
    ]


def _levels(series: Series) -> list[Level]:
    """Finds the levels of the logarithm, turned so that more is worse."""
    return levels(np.log(np.array(series.values)) * _sign(series), least=LEAST_NIGHTS)


def _sign(series: Series) -> int:
    return 1 if better_of(series.metric) == "lower" else -1


def _drift(series: Series, floor: float) -> Drift | None:
    steps = _levels(series)
    last = steps[-1]
    best = min(steps, key=lambda level: level.mean)
    away = last.mean - best.mean
    if away <= math.log1p(floor):
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
    return (two.mean - first.mean for first, two in pairwise(after))
