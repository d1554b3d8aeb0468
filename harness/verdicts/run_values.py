"""Reads one number per run: cells of summary.json by backend and load, and runs without a number.

A run that the engine failed is kept as a failure, which ranks worst; it is not a gap. A run that is not
evidence for a metric is left out of that metric, up to MOST_OUT of the runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import made_infinite
from harness.model import CellResult, LoadPoint, known, labels
from harness.model.grouping import grouped
from harness.model.json_path import number_at
from harness.validity import blame
from harness.verdicts.evidence import ALL, RATES, UNDER_LOAD, doubts, kind_of

Floats = NDArray[np.float64]
Samples = Mapping[str, Floats]  # measure → the values its percentiles are made of
Unit = Literal["runs", "starts", "blocks"]
Work = tuple[str, int]  # hash of a run's requests, and its repeat

MOST_OUT = Fraction(1, 3)  # share of the runs of a backend at a load point that may be left out

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Series:
    """The cells of one backend at one load point that may enter a verdict, and the INVALID ones.

    `at_least`: the server did all that was sent, so its rates are the least that it can do.
    """

    label: str
    cells: tuple[CellResult, ...]
    invalid: tuple[CellResult, ...] = ()
    samples: Mapping[str, Samples] = field(default_factory=dict)  # by the name of the cell
    out: frozenset[str] = frozenset()  # names of cells whose figures are left out
    at_least: bool = False
    # Caches: each value is needed for every pair, and again after every round.
    _values: dict[str, dict[Work, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _doubtful: dict[str, dict[str, str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def measured(self) -> int:
        return len(self.cells) + len(self.invalid)

    @property
    def failed(self) -> tuple[str, ...]:
        """The code of each run that is INVALID because the engine failed."""
        blames = (blame(cell.validity) for cell in self.invalid)
        return tuple(why[1] for why in blames if why is not None and why[0] == "engine")

    @property
    def invalid_codes(self) -> str:
        """`failed-requests, engine-died`: why runs are INVALID."""
        reasons = (reason for cell in self.invalid for reason in cell.validity.reasons)
        return ", ".join(dict.fromkeys(reason.code for reason in reasons if reason.verdict == "INVALID"))

    def failures(self, metric: str) -> int:
        """Number of runs that failed, and of runs whose failed requests make this figure infinite."""
        if metric not in self._failures:
            infinite = sum(made_infinite(cell.null_reasons.get(metric, "")) for cell in self.cells)
            self._failures[metric] = len(self.failed) + infinite
        return self._failures[metric]

    def failure_words(self, metric: str) -> str:
        """`2 of 5 failed`; "" if none did."""
        count = self.failures(metric)
        return f"{count} of {self.measured} failed" if count else ""

    def doubtful(self, kind: str | None) -> dict[str, str]:
        """Reasons by cell name, for cells that are not evidence for metrics of this kind."""
        key = kind or ALL
        if key not in self._doubtful:
            self._doubtful[key] = {
                cell.cell: why
                for cell in self.cells
                for metric, why in doubts(cell)
                if metric in (ALL, key) and not (self.at_least and (metric, why) == (RATES, UNDER_LOAD))
            }
        return self._doubtful[key]

    def too_many_out(self, kind: str | None) -> bool:
        """Whether too many cells are doubtful to leave them out: those left might be the lucky ones."""
        return len(self.doubtful(kind)) > MOST_OUT * self.measured

    def evidence(self, metric: str) -> "Series":
        """The series without figures of cells that are not evidence for this metric; itself if all are."""
        out = self.doubtful(kind_of(metric))
        return replace(self, out=frozenset(out)) if out else self

    def before(self, repeat: int) -> "Series":
        """The series of the repeats before this one."""

        def early(cells: tuple[CellResult, ...]) -> tuple[CellResult, ...]:
            return tuple(cell for cell in cells if cell.repeat < repeat)

        return replace(self, cells=early(self.cells), invalid=early(self.invalid))

    def values(self, metric: str) -> dict[Work, float]:
        """Values by the work of a run: the hash of its requests, and its repeat."""
        if metric not in self._values:
            self._values[metric] = {
                work: value
                for cell, work in self._works()
                if cell.cell not in self.out and (value := number_at(cell, metric)) is not None
            }
        return self._values[metric]

    def _works(self) -> Iterator[tuple[CellResult, Work]]:
        """Yields each cell with its work. Repeats may have the same requests, and INVALID ones are gaps."""
        return ((cell, (cell.workload_sha256, cell.repeat)) for cell in self.cells)

    @property
    def unit(self) -> Unit:
        """What an interval is over.

        For a server that bench did not start, the question is about its one start, so blocks are the units.
        """
        cells = (*self.cells, *self.invalid)
        in_start = [cell for cell in cells if known(cell.start_number) is not None]
        if not in_start:
            return "runs"
        return "blocks" if all(cell.launch == "attach" for cell in in_start) else "starts"

    def starts(self) -> dict[Work, int]:
        """The start that each run is a block of, by its work; {} unless starts are the units."""
        if self.unit != "starts":
            return {}
        starts = ((work, known(cell.start_number)) for cell, work in self._works())
        return {work: start for work, start in starts if start is not None}

    def seconds(self, part: Literal["block", "start"]) -> float:
        """Mean seconds of a block under load, or of a start of the engine; 0 if none is known."""
        times = [cell.client.wall_s if part == "block" else _start_s(cell) for cell in self.cells]
        found = [seconds for seconds in times if seconds is not None]
        return sum(found) / len(found) if found else 0.0

    def pooled(self, metric: str) -> dict[Work, Floats]:
        """Values that a percentile is computed from, by the work of the run; {} if a run has none."""
        measure, pooled = metric.partition(".")[0], {}
        for cell, work in self._works():
            if cell.cell not in self.out:
                values = self.samples.get(cell.cell, {}).get(measure)
                if values is None or not len(values):
                    return {}
                pooled[work] = values
        return pooled

    @property
    def begun(self) -> list[int]:
        """Wall-clock times at which its runs began, in ns since the epoch."""
        return [cell.started_unix_ns for cell in self.cells]


def loads(cells: Iterable[CellResult]) -> list[LoadPoint]:
    return sorted({cell.point for cell in cells})


def series(cells: Sequence[CellResult], load: LoadPoint, samples: Mapping[str, Samples]) -> list[Series]:
    here = grouped(((cell.label, cell.invalid), cell) for cell in cells if cell.point == load)
    return [
        Series(label, tuple(here.get((label, False), ())), tuple(here.get((label, True), ())), samples)
        for label in labels(cells)
    ]


def _start_s(cell: CellResult) -> float | None:
    """Seconds to load the model and give the first answer; None if unknown.

    Provisioning, which only a first start needs, is left out.
    """
    steps = [(cell.start or {}).get(step) for step in ("load_s", "first_answer_s")]
    return sum(filter(None, steps)) if any(steps) else None


def by_start(values: Mapping[Work, T], starts: Mapping[Work, int]) -> list[list[T]]:
    """Groups values by start; without starts, each value is a group."""
    return list(grouped((starts.get(work, work), value) for work, value in values.items()).values())


def aligned(
    a: Mapping[Work, T],
    b: Mapping[Work, T],
    starts: tuple[Mapping[Work, int], Mapping[Work, int]],
    least: int,
) -> tuple[dict[Work, T], dict[Work, T], bool]:
    """Values of both, and whether they are paired: value i of both is then of the same requests and start.

    They are paired if most runs have a partner, and runs without one are then left out; not if fewer than
    `least` runs, or `starts`, would be left of enough. Runs whose requests are not known have no partner, nor
    have blocks whose start has others in the other session.
    """

    def units(works: Iterable[Work], of_start: Mapping[Work, int]) -> int:
        return len({of_start.get(work, work) for work in works})

    first, second = starts
    common = [key for key in a if key in b and key[0] and first.get(key) == second.get(key)]
    fewer = min(len(a), len(b))
    if 2 * len(common) > fewer and units(common, first) >= min(least, units(a, first), units(b, second)):
        return {key: a[key] for key in common}, {key: b[key] for key in common}, True
    return dict(a), dict(b), False
