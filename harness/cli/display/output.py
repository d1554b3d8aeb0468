"""Results to stdout, everything else to stderr. Colour only on a terminal that wants it."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from harness.cli.display.live import LiveView, size_of, wrapped
from harness.cli.display.progress import Display, load_text
from harness.errors import BenchError
from harness.model.lines import shell_lines

if TYPE_CHECKING:
    from harness.load.job import Progress
    from harness.plan import Cell

UNBROKEN = 10_000  # columns of a pipe: a program reads a row as one line
LOG_EVERY_S = 10.0  # a log gets a line of a stage that goes on this often
LONG_WORD = 200  # characters; longer ones in an error are cut in their middle
_LONG_WORD = re.compile(rf"\S{{{LONG_WORD},}}")


def wants_color(stream: TextIO) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def page_width(otherwise: int = 100) -> int:
    """Columns of the terminal, or COLUMNS; `otherwise` if neither is known."""
    return shutil.get_terminal_size((otherwise, 24)).columns


def printed_command(head: str, words: Sequence[str]) -> str:
    """One line for a pipe; broken between words on a terminal, so that it can still be copied as it is."""
    if not sys.stdout.isatty():
        return head + shlex.join(words)
    return "\n".join(shell_lines(words, page_width(), head.rstrip()))


def can_ask() -> bool:
    """Whether a person sees a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Whether the person at the terminal says yes; anything else is a no."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_note(text: str) -> None:
    """What a person may want to know next to the result."""
    print(fitted(text), file=sys.stderr, flush=True)


def print_error(error: BenchError) -> None:
    text = fitted(_readable(f"error: {error}" + (f"\nhint: {error.hint}" if error.hint else "")))
    red, plain = ("\x1b[31m", "\x1b[0m") if wants_color(sys.stderr) else ("", "")
    print(text.replace("error:", f"{red}error:{plain}", 1), file=sys.stderr)


def fitted(text: str) -> str:
    """What is for standard error, wrapped where that is a terminal."""
    return wrapped(text, page_width(size_of(sys.stderr)[0])) if sys.stderr.isatty() else text


def _readable(text: str) -> str:
    """Shortens texts that contain names of any length."""
    return _LONG_WORD.sub(lambda word: f"{word[0][: LONG_WORD // 2]}…{word[0][-LONG_WORD // 4 :]}", text)


class PlainLines(Display):
    """Lines for logs and pipes: one when something begins, and one for every ten seconds of load."""

    def __init__(self) -> None:
        super().__init__()
        self._last = 0.0

    def stage(self, text: str) -> None:
        other = self._is_other_stage(text)
        super().stage(text)
        if other or self._due():
            self._line(text)

    def note(self, text: str) -> None:
        self._line(text)

    def load(self, cell: "Cell", progress: "Progress") -> None:
        super().load(cell, progress)
        if self._due():
            self._line(load_text(self.state.cell_words(cell), progress))

    def close(self) -> None:
        """Does nothing: lines stay."""

    def _due(self) -> bool:
        return self._clock() - self._last >= LOG_EVERY_S

    def _line(self, text: str) -> None:
        self._last = self._clock()
        print(f"[{self._last - self.state.began:6.1f}s] {text}", file=sys.stderr, flush=True)


def progress_display(*, verbose: bool = False) -> Display:
    live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    display: Display = LiveView(color=wants_color(sys.stderr)) if live else PlainLines()
    display.details = verbose
    return display
