"""Standard output and error on anything: no file, a reader that went away, a full disk.

What is written to standard output on a terminal is inert: names and texts of others neither move its cursor
nor set its title. A pipe or a file gets every character as it is.
"""

import codecs
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from harness.errors import SetupError
from harness.untrusted import inert

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_OWN = re.compile(r"(\x1b\[(?:0|1|2|31|33|1;7)m)")  # colours of tables, which whoever sends them may use


# In place of what an encoding lacks, such as ASCII in a container or Latin-1 of an old terminal.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("−–", "-"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‘’", "'"),
        **dict(zip("▁▂▃▄▅▆▇█", "_.-:=+*#", strict=True)),
        **dict(zip("▏▎▍▌▋▊▉░", ".:-=+*#.", strict=True)),
        **dict(zip("●◐✕▸", "o%x>", strict=True)),  # a cell: VALID, SUSPECT, INVALID, the present one
        "∦": "||",
        "…": "...",
        "×": "x",
        "→": "->",
        "±": "+-",
        "≤": "<=",
        "≥": ">=",
        "≈": "~",
        "µ": "u",
        "²": "^2",
        "·": "*",
    }
)


class UnreadError(Exception):
    """The reader of our output went away, as in `bench list | head`."""


class _Stream(io.FileIO):
    """Gives up at the first failure and drops the rest: Python would try again at its exit, and complain."""

    _given_up = False

    def write(self, data: "ReadableBuffer", /) -> int:
        if not self._given_up:
            try:
                return super().write(data)
            except OSError as error:
                self._given_up = True
                self._failed(error)
        return memoryview(data).nbytes

    def _failed(self, error: OSError) -> None:
        """Ignores the error: nothing depends on standard error, so a run goes on if it cannot be written."""


class _Results(_Stream):
    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise UnreadError from None
        raise SetupError(f"cannot be written: {error.strerror}", where="standard output") from None


class Terminal(io.TextIOWrapper):
    """Replaces characters that a terminal would act upon."""

    def write(self, text: str, /) -> int:
        parts = _OWN.split(text)
        parts[::2] = map(inert, parts[::2])
        super().write("".join(parts))
        return len(text)


def prepare() -> None:
    """Opens all three, so that no file of ours takes their place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free
    if sys.stdout is sys.__stdout__:
        results = _Results(1, "w", closefd=False)
        kind = Terminal if results.isatty() else io.TextIOWrapper
        sys.stdout = _text(results, sys.stdout, kind)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Stream(2, "w", closefd=False), sys.stderr)


def _legible(error: UnicodeError) -> tuple[str, int]:
    """The signs of our own texts in plain characters; names and texts of others as Python escapes them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    plain = error.object[error.start : error.end].translate(_PLAIN)
    return plain.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error("legible", _legible)


def _text(stream: _Stream, was: TextIO | None, kind: type[io.TextIOWrapper] = io.TextIOWrapper) -> TextIO:
    """Takes every character, whatever the locale can write."""
    return kind(
        io.BufferedWriter(stream),
        encoding=was.encoding if was else None,
        errors="legible",
        line_buffering=stream.fileno() == 2 or stream.isatty(),
    )


@contextmanager
def printed() -> Iterator[None]:
    """Flushes at the end of the block, so that what was printed is written."""
    try:
        yield
    finally:
        sys.stdout.flush()
