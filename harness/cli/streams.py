"""Standard output and error, whatever is behind them: nothing, a reader that went away, a full disk."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from harness.errors import SetupError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
        """Of what goes to standard error nothing depends: a run goes on where nobody can read it any more."""


class _Results(_Stream):
    def _failed(self, error: OSError) -> None:
        if isinstance(error, BrokenPipeError):
            raise UnreadError from None
        raise SetupError(f"cannot be written: {error.strerror}", where="standard output") from None


def prepare() -> None:
    """All three are open, so that no file of ours takes their place."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text(_Results(1, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Stream(2, "w", closefd=False), sys.stderr)


def _text(stream: _Stream, was: TextIO | None) -> TextIO:
    """For every character, whatever the locale can write."""
    return io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=was.encoding if was else None,
        errors="backslashreplace",
        line_buffering=stream.fileno() == 2 or stream.isatty(),
    )


@contextmanager
def printed() -> Iterator[None]:
    """What is printed inside has been written at its end."""
    try:
        yield
    finally:
        sys.stdout.flush()
