"""What goes where: results to stdout, everything else to stderr. Colour only on a terminal that wants it."""

import os
import re
import shutil
import sys
import threading
import time
from typing import TextIO

from harness.errors import BenchError
from harness.load.job import Progress
from harness.plan import Cell

# A terminal line is redrawn at most this often; a log gets a line of a stage that goes on this often.
REDRAW_S = 0.1
LOG_EVERY_S = 10.0
LONG_WORD = 200  # characters; longer ones in an error are cut in their middle
_LONG_WORD = re.compile(rf"\S{{{LONG_WORD},}}")


def wants_color(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def page_width(otherwise: int = 100) -> int:
    """Columns of the terminal, or of COLUMNS; `otherwise` where neither says."""
    return shutil.get_terminal_size((otherwise, 24)).columns


def print_error(error: BenchError) -> None:
    red, plain = ("\x1b[31m", "\x1b[0m") if wants_color(sys.stderr) else ("", "")
    print(f"{red}error:{plain} {_readable(str(error))}", file=sys.stderr)
    if error.hint:
        print(f"hint: {_readable(error.hint)}", file=sys.stderr)


def _readable(text: str) -> str:
    """With names of any length."""
    return _LONG_WORD.sub(lambda word: f"{word[0][: LONG_WORD // 2]}…{word[0][-LONG_WORD // 4 :]}", text)


class PlainLines:
    """For logs and pipes: a line when something begins, and one every ten seconds of load."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = 0.0
        self._stage = ""

    def stage(self, text: str) -> None:
        # "engine: loading (12 s): …" is the same stage as a moment ago.
        stage = text.partition(" (")[0]
        if stage != self._stage or self._due():
            self._stage = stage
            self._line(text)

    def note(self, text: str) -> None:
        self._line(text)

    def load(self, cell: Cell, progress: Progress) -> None:
        if self._due():
            self._line(load_text(cell, progress))

    def close(self) -> None:
        pass

    def _due(self) -> bool:
        return time.monotonic() - self._last >= LOG_EVERY_S

    def _line(self, text: str) -> None:
        self._last = time.monotonic()
        print(f"[{time.monotonic() - self._began:6.1f}s] {text}", file=sys.stderr, flush=True)


class LiveLine:
    """One line at the bottom of the terminal that shows what happens now; notes scroll above it."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._text = ""
        self._last_draw = 0.0
        self._lock = threading.Lock()

    def stage(self, text: str) -> None:
        self._draw(text, force=False)

    def note(self, text: str) -> None:
        with self._lock:
            print(f"\r\x1b[K{text}", file=sys.stderr)
            self._text = ""

    def load(self, cell: Cell, progress: Progress) -> None:
        self._draw(load_text(cell, progress), force=progress.done == progress.planned)

    def close(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _draw(self, text: str, *, force: bool) -> None:
        now = time.monotonic()
        with self._lock:
            if (
                not force
                and now - self._last_draw < REDRAW_S
                and text.split(" ")[0] == self._text.split(" ")[0]
            ):
                return
            self._last_draw, self._text = now, text
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            line = f"{now - self._began:5.0f}s  {text}".replace("\n", " ")
            print(f"\r\x1b[K{line[: width - 1]}", end="", file=sys.stderr, flush=True)


def progress_display() -> PlainLines | LiveLine:
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return LiveLine() if live else PlainLines()


def load_text(cell: Cell, progress: Progress) -> str:
    ttft = "" if progress.recent_ttft_ms is None else f"  TTFT {progress.recent_ttft_ms:.0f} ms"
    tokens = progress.recent_output_tokens_per_s
    speed = "" if tokens is None else f"  {tokens:.0f} tok/s"
    failed = f"  {progress.failed} failed" if progress.failed else ""
    share = progress.done / progress.planned if progress.planned else 1.0
    bar = "█" * round(12 * share) + "░" * (12 - round(12 * share))
    return (
        f"{cell.name}  {bar} {progress.done}/{progress.planned}  {progress.in_flight} in flight"
        f"{ttft}{speed}{failed}"
    )
