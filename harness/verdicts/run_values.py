"""One number per run: cells of summary.json by backend and load, and the runs that have none.

A run that failed by the engine's doing is kept as a failure: what is left out ranks worst, and is no gap.
A run that is no evidence for a metric is left out of that metric, up to MOST_OUT of the runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.metrics.distribution import NEVER
from harness.model import CellResult, LoadPoint, known
from harness.model.json_path import number_at
from harness.validity import blame
from harness.verdicts.evidence import ALL, RATES, UNDER_LOAD, doubts, kind_of

Floats = NDArray[np.float64]
Samples = Mapping[str, Floats]  # measure → the values its percentiles are made of
Unit = Literal["runs", "starts", "blocks"]
Work = tuple[str, int]  # hash of a run's requests, and which run of these requests it was

MOST_OUT = Fraction(1, 3)  # of the runs of a backend at a load point, those that may be left out

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Series:
    """The cells of one backend at one load point that may enter a verdict, and the INVALID ones.

    `at_least`: it served all that was sent, and its rates count as the least that it can do.
    """

    label: str
    cells: tuple[CellResult, ...]
    invalid: tuple[CellResult, ...] = ()
    samples: Mapping[str, Samples] = field(default_factory=dict)  # by the name of the cell
    out: frozenset[str] = frozenset()  # names of cells whose figures are left out
    at_least: bool = False
    # Each is asked for once per pair, and of all pairs again after every round.
    _values: dict[str, dict[Work, float]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _doubtful: dict[str, dict[str, str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def measured(self) -> int:
        return len(self.cells) + len(self.invalid)

    @property
    def failed(self) -> tuple[str, ...]:
        """Codes of failures: of each run that is INVALID by the engine's doing, the code that says so."""
        blames = (blame(cell.validity) for cell in self.invalid)
        return tuple(why[1] for why in blames if why is not None and why[0] == "engine")

    def failures(self, metric: str) -> int:
        """Runs that failed, and runs whose failed requests make this figure infinite."""
        if metric not in self._failures:
            infinite = sum(_infinite(cell, metric) for cell in self.cells)
            self._failures[metric] = len(self.failed) + infinite
        return self._failures[metric]

    def failure_words(self, metric: str) -> str:
        """`2 of 5 failed`; "" where none did."""
        count = self.failures(metric)
        return f"{count} of {self.measured} failed" if count else ""

    def doubtful(self, kind: str | None) -> dict[str, str]:
        """Cells that are no evidence for metrics of this kind, by name: why."""
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
        """Says why too many are missing to leave them out: what is left might be the lucky ones."""
        return len(self.doubtful(kind)) > MOST_OUT * self.measured

    def evidence(self, metric: str) -> "Series":
        """Returns the series without the figures of cells that are no evidence for this metric; itself
        where all are.
        """
        out = self.doubtful(kind_of(metric))
        return replace(self, out=frozenset(out)) if out else self

    def as_least(self) -> "Series":
        """The same runs, with rates that are the least that the server can do."""
        return replace(self, at_least=True)

    def before(self, repeat: int) -> "Series":
        """Returns the series of the repeats before this one."""

        def early(cells: tuple[CellResult, ...]) -> tuple[CellResult, ...]:
            return tuple(cell for cell in cells if cell.repeat < repeat)

        return replace(self, cells=early(self.cells), invalid=early(self.invalid))

    def values(self, metric: str) -> dict[Work, float]:
        """Returns the values by the work a run had: the hash of its requests and which run of these
        requests it was.
        """
        if metric not in self._values:
            self._values[metric] = self._read(metric)
        return self._values[metric]

    def _read(self, metric: str) -> dict[Work, float]:
        values = {}
        for cell, work in self._works():
            value = None if cell.cell in self.out else number_at(cell, metric)
            if value is not None:
                values[work] = value
        return values

    def _works(self) -> Iterator[tuple[CellResult, Work]]:
        seen: Counter[str] = Counter()
        for cell in self.cells:
            sha256 = cell.workload_sha256
            yield cell, (sha256, seen[sha256])
            seen[sha256] += 1

    @property
    def unit(self) -> Unit:
        """Tells what an interval is over.

        A server that bench did not start has one start, and the question is about that: its blocks are units.
        """
        in_start = [cell for cell in self.cells if known(cell.start_number) is not None]
        if not in_start:
            return "runs"
        return "blocks" if all(cell.launch == "attach" for cell in in_start) else "starts"

    def starts(self) -> dict[Work, int]:
        """Returns by the work of a run the start that it is a block of; empty where each is a unit."""
        if self.unit != "starts":
            return {}
        starts = ((work, known(cell.start_number)) for cell, work in self._works())
        return {work: start for work, start in starts if start is not None}

    def seconds(self, part: Literal["block", "start"]) -> float:
        """Mean time under load of a block, or of a start of the engine, as far as it is known."""
        times = [cell.client.wall_s if part == "block" else _start_s(cell) for cell in self.cells]
        found = [seconds for seconds in times if seconds is not None]
        return sum(found) / len(found) if found else 0.0

    def pooled(self, metric: str) -> dict[Work, Floats]:
        """The values a percentile is made of, by the work of the run; empty where a run has none."""
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
        """Tells when its runs began."""
        return [cell.started_unix_ns for cell in self.cells]


def loads(cells: Iterable[CellResult]) -> list[LoadPoint]:
    return sorted({cell.point for cell in cells})


def labels(cells: Iterable[CellResult]) -> list[str]:
    """Returns the labels in the order in which they were first measured, which is the user's."""
    return list(dict.fromkeys(cell.label for cell in cells))


def series(cells: Sequence[CellResult], load: LoadPoint, samples: Mapping[str, Samples]) -> list[Series]:
    here = [cell for cell in cells if cell.point == load]
    return [
        _series(label, [cell for cell in here if cell.label == label], samples) for label in labels(cells)
    ]


def _series(label: str, cells: Sequence[CellResult], samples: Mapping[str, Samples]) -> Series:
    usable = tuple(cell for cell in cells if not cell.invalid)
    return Series(label, usable, tuple(cell for cell in cells if cell.invalid), samples)


def _start_s(cell: CellResult) -> float | None:
    """Returns seconds from the process to its first answer: what only a first start provides is left out."""
    steps = [(cell.start or {}).get(step) for step in ("load_s", "first_answer_s")]
    return sum(filter(None, steps)) if any(steps) else None


def _infinite(cell: CellResult, metric: str) -> bool:
    return cell.null_reasons.get(metric, "").endswith(NEVER)


def by_start(values: Mapping[Work, T], starts: Mapping[Work, int]) -> list[list[T]]:
    """Values of each start; each alone where it is a unit."""
    groups: dict[int | Work, list[T]] = {}
    for work, value in values.items():
        groups.setdefault(starts.get(work, work), []).append(value)
    return list(groups.values())


def aligned(a: Mapping[Work, T], b: Mapping[Work, T]) -> tuple[dict[Work, T], dict[Work, T], bool]:
    """Values of both, and whether value i of both came from the same requests.

    Paired where most runs have a partner; those without one are then left out. Runs whose requests nobody
    knows have none.
    """
    common = [key for key in a if key in b and key[0]]
    if 2 * len(common) > min(len(a), len(b)):
        return {key: a[key] for key in common}, {key: b[key] for key in common}, True
    return dict(a), dict(b), False
