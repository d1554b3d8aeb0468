"""The view of a run on a terminal: a few lines at its bottom that are drawn again, notes above them.

Drawn when progress is reported, at most four times a second: no thread, nothing that wakes during the load.
"""

import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TextIO

from harness.cli.display.progress import Display, State, cell_left_s, in_flight_text, speed_parts
from harness.model.lines import NO_BREAK, wrap
from harness.model.numbers import duration
from harness.report.wording import short_names

if TYPE_CHECKING:
    from harness.load.job import Progress
    from harness.plan import Cell

REDRAW_S = 0.25
SAMPLE_S = 0.5  # a bar of the sparkline
BARS = 24
ROWS = 8  # of backends
LABEL = 30
MARKS = {"VALID": "●", "SUSPECT": "◐", "INVALID": "✕"}  # distinguished by shape, not by colour
NOW = "▸"
_WHOLE = re.compile(r"^  bench [^\n]+|`[^`\n]+`|--[\w-]+ (?=[^\s-]|-\d)|\d (?=[a-z])", re.MULTILINE)
_EIGHTHS = "▁▂▃▄▅▆▇█"
_STYLES = {"bold": "\x1b[1m", "dim": "\x1b[2m"}
_PLAIN = "\x1b[0m"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"

Line = tuple[str, str]  # bold, dim or plain; text


class LiveView(Display):
    """`size`: columns and lines of the terminal."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        color: bool = False,
        size: Callable[[], tuple[int, int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(clock)
        self._stream = stream or sys.stderr
        self._size = size or partial(size_of, self._stream)
        self._color = color
        self._ttft_ms: deque[float] = deque(maxlen=BARS)
        self._lock = threading.Lock()
        self._drawn = 0  # lines of the view on the screen
        self._last_draw = self._last_sample = float("-inf")

    def stage(self, text: str) -> None:
        other = self.state.load is not None or self._is_other_stage(text)
        super().stage(text)
        self._ttft_ms.clear()
        self._draw(force=other)

    def note(self, text: str) -> None:
        lines = wrapped(text, max(self._size()[0] - 1, 1))
        with self._lock:
            self._write(f"{self._erased()}{lines}\n")
        self._draw(force=True)

    def load(self, cell: "Cell", progress: "Progress") -> None:
        begins = self.state.load is None
        super().load(cell, progress)
        now = self._clock()
        if progress.recent_ttft_ms is not None and now - self._last_sample >= SAMPLE_S:
            self._last_sample = now
            self._ttft_ms.append(progress.recent_ttft_ms)
        self._draw(force=begins or progress.done == progress.planned)

    def close(self) -> None:
        with self._lock:
            self._write(self._erased())

    def _draw(self, *, force: bool) -> None:
        now = self._clock()
        if not force and now - self._last_draw < REDRAW_S:
            return
        self._last_draw = now
        columns, rows = self._size()
        lines = frame(self.state, self._ttft_ms, now, max(columns - 1, 1))[: max(rows - 1, 1)]
        text = "".join(f"{self._styled(*line)}\n" for line in lines)
        with self._lock:
            erased = self._erased()
            self._drawn = len(lines)
            self._write(f"{erased}{_NO_WRAP}{text}{_WRAP}")

    def _styled(self, style: str, text: str) -> str:
        code = _STYLES.get(style, "") if self._color else ""
        return f"{code}{text}{_PLAIN}" if code else text

    def _erased(self) -> str:
        """Moves to the first line of the view and clears from there on."""
        up = f"\x1b[{self._drawn}F\x1b[J" if self._drawn else ""
        self._drawn = 0
        return up

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def frame(state: State, ttft_ms: Iterable[float], now: float, width: int) -> list[Line]:
    """Lines of at most `width` characters."""
    elapsed = int(now - state.began)
    lines: list[Line] = [("bold", f"{elapsed // 60}:{elapsed % 60:02}  {state.words(now)}".rstrip())]
    if state.load is None:
        lines.append(("plain", state.stage))
    else:
        cell, progress = state.load
        figures = in_flight_text("", progress)  # which stay to be seen, however long the engine's name is
        lines.append(("plain", _cut(state.cell_words(cell), max(width - len(figures), LABEL // 2)) + figures))
        lines.append(("plain", "  ".join(_speed(progress, ttft_ms))))
    lines += _grid(state, width)
    return [(style, _cut(" ".join(text.split("\n")), width)) for style, text in lines if text]


def _speed(progress: "Progress", ttft_ms: Iterable[float]) -> Iterator[str]:
    yield from filter(None, (sparkline(ttft_ms), *speed_parts(progress)))
    left = cell_left_s(progress)
    if left:
        yield f"{duration(left)} left"


def size_of(stream: TextIO) -> tuple[int, int]:
    """Columns and lines of a terminal, which may be gone, or not know them."""
    columns = lines = 0
    with suppress(OSError):
        columns, lines = os.get_terminal_size(stream.fileno())
    return columns or 80, lines or 24


def wrapped(text: str, width: int) -> str:
    """Wraps between words, each line below its own beginning. A command, a flag with its value and a path
    stay whole so that they can be copied, and a number next to what it counts.
    """
    lines = []
    for line in _WHOLE.sub(lambda found: found[0].replace(" ", NO_BREAK), text).splitlines():
        indent = min(len(line) - len(line.lstrip()), width // 4) + 2
        lines += wrap(line, width, subsequent_indent=" " * indent, break_long_words=False) or [""]
    return "\n".join(lines)


def sparkline(values: Iterable[float]) -> str:
    """A bar each, from 0 to the highest."""
    numbers = list(values)
    most = max(numbers, default=0.0)
    return "".join(_EIGHTHS[min(int(8 * value / most), 7)] for value in numbers) if most > 0 else ""


def _grid(state: State, width: int) -> Iterator[Line]:
    """A row per backend: its load points, with a mark per repeat; the last of them where they are many."""
    run = state.run
    if run is None or not (run.cells or state.load):
        return
    labels = run.prepared.labels
    names = short_names(labels, LABEL)
    longest = max(map(len, names.values()))
    for index, label in enumerate(labels[:ROWS]):
        points = "  ".join(f"{point} {marks}" for point, marks in _marks(state, index, label).items())
        room = max(width - longest - 4, 1)
        shown = points if len(points) <= room else f"…{points[len(points) - room + 1 :]}"
        yield "plain", f"  {names[label]:<{longest}}  {shown}".rstrip()
    if len(labels) > ROWS:
        yield "dim", f"  and {len(labels) - ROWS} more"
    yield "dim", "  " + "  ".join(f"{mark} {word}" for word, mark in MARKS.items())


def _marks(state: State, index: int, label: str) -> dict[str, str]:
    marks: dict[str, str] = {}
    for done in state.run.cells if state.run else ():
        if done.label == label:
            point = done.load.point.label
            marks[point] = marks.get(point, "") + MARKS[done.validity.verdict]
    if state.load is not None and state.load[0].backend == index:
        point = state.load[0].load.label
        marks[point] = marks.get(point, "") + NOW
    return marks


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
