"""The progress of a run: for a terminal, a log and the metrics port, and in words."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.model.numbers import counted, digits_apart, duration, fixed

if TYPE_CHECKING:
    from harness.load.job import Progress
    from harness.plan import Cell
    from harness.run.execute import Run

BAR = 12


@dataclass
class State:
    """What is going on. Other threads read it, so each field is replaced as a whole."""

    began: float
    run: "Run | None" = None
    already: int = 0  # cells that were measured before it began to be followed
    stage: str = ""
    load: "tuple[Cell, Progress] | None" = None  # while a cell is measured

    def cell_words(self, cell: "Cell") -> str:
        """`vllm, 8 in flight, repeat 1`; the cell's name before the run is known."""
        from harness.run.status_lines import cell_words

        if self.run is None:
            return cell.name
        return cell_words(self.run.prepared.of(cell).label, cell)

    @property
    def cells_left(self) -> int | None:
        """The most that are left, in a run that ends when all pairs are decided; None in a search, which
        chooses its cells."""
        if self.run is None or self.run.prepared.options.find_capacity:
            return None
        return max(self.run.prepared.cells - len(self.run.cells), 0)

    def left_s(self, now: float) -> float | None:
        """Estimates by the time that the cells so far took, engine starts included and downloads left out.

        None before the first cell.
        """
        run, left = self.run, self.cells_left
        if run is None or run.provided_s is None or left is None:
            return None
        done = len(run.cells) - self.already
        return (now - run.provided_s) / done * left if done else None

    def words(self, now: float) -> str:
        """`first-look: 3 of at most 20 cells, decided 1 of 3 pairs, about 4 min left at most`."""
        run = self.run
        if run is None:
            return ""
        name = run.prepared.scenario.name
        if self.cells_left is None:
            return f"{name}: {counted(len(run.cells), 'cell')} measured"
        most = "at most " if run.prepared.looks else ""
        at = f"{name}: {len(run.cells)} of {most}{run.prepared.cells} cells"
        if run.progress:
            return f"{at}, {run.progress}"
        left = self.left_s(now)
        return f"{at}, about {duration(left)} left{' at most' if most else ''}" if left else at


class Display(ABC):
    """A Ui that also looks at the run itself, and that ends."""

    details = False  # of the engines' internals: whether they are shown

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.state = State(began=clock())

    def follow(self, run: "Run") -> None:
        self.state.run, self.state.already = run, len(run.cells)

    def stage(self, text: str) -> None:
        self.state.stage, self.state.load = text, None

    def load(self, cell: "Cell", progress: "Progress") -> None:
        self.state.load = cell, progress

    def _is_other_stage(self, text: str) -> bool:
        """`engine: loading (12 s): …` is the same stage as a moment ago."""
        return text.partition(" (")[0] != self.state.stage.partition(" (")[0]

    @abstractmethod
    def note(self, text: str) -> None:
        """A line that stays."""

    def detail(self, text: str) -> None:
        if self.details:
            self.note(text)

    @abstractmethod
    def close(self) -> None:
        """Ends the display."""


def cell_left_s(progress: "Progress") -> float | None:
    """Estimates by the time that the requests so far took, and by the duration if that ends first."""
    share = _share(progress)
    return progress.elapsed_s * (1 / share - 1) if 0 < share < 1 else None


def _share(progress: "Progress") -> float:
    by_requests = progress.done / progress.planned if progress.planned else 1.0
    left_s = (progress.duration_s or 0.0) - progress.measured_s
    by_time = progress.elapsed_s / (progress.elapsed_s + max(left_s, 0.0)) if progress.duration_s else 0.0
    return min(max(by_requests, by_time), 1.0)


def in_flight_text(words: str, progress: "Progress") -> str:
    full = round(BAR * _share(progress))
    most = "/" if progress.duration_s is None else " of at most "  # a duration may end before all is due
    failed = f"  {progress.failed} failed" if progress.failed else ""
    done = f"{progress.done}{most}{progress.planned}"
    return f"{words}  {'█' * full}{'░' * (BAR - full)} {done}  {progress.in_flight} now{failed}"


def speed_parts(progress: "Progress") -> list[str]:
    ttft, tokens = progress.recent_ttft_ms, progress.recent_output_tokens_per_s
    parts = [] if ttft is None else [f"TTFT {_whole(ttft)} ms"]
    parts += [] if tokens is None else [f"{_whole(tokens)} tok/s"]
    items = progress.recent_items_per_s
    return parts + ([] if items is None else [f"{_whole(items)} items/s"])


def _whole(value: float) -> str:
    """No decimals, unless a value above 0 would read as 0."""
    return fixed(value, digits_apart(value, 0.0, least=0))


def load_text(words: str, progress: "Progress") -> str:
    return "  ".join([in_flight_text(words, progress), *speed_parts(progress)])
