"""Programs that take their time: their output goes to a log, its last line to the progress display."""

import fcntl
import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from harness.engines.provide.shared_folders import Say
from harness.errors import SetupError
from harness.host import paths
from harness.host.helper_process import follow, without_credentials
from harness.untrusted import inert

_INDEX = r"(PIP|UV)_\w+"  # how to get at a package index
_REPORT_EVERY_S = 2.0
_READ_BYTES = 1 << 20
_LINE_CHARS = 2000  # the beginning of a line has the reason; some end in all of a prompt
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Log:
    """A log file from byte `start` on: what is before it was written by an earlier program."""

    path: Path
    start: int = 0

    @classmethod
    def continued(cls, path: Path) -> Self:
        """What will be added to the file from now on, which need not exist."""
        return cls(path, path.stat().st_size if path.exists() else 0)

    def tail(self, lines: int) -> str:
        """The beginnings of the last `lines` non-empty lines, inert and without colours; "" when there is no
        log: an engine prints what its model's files say.

        Of the states of a progress bar, which a terminal writes over one another, it has the last.
        """
        try:
            with self.path.open("rb") as handle:
                handle.seek(max(self.start, self.path.stat().st_size - _READ_BYTES))
                text = COLOUR.sub("", handle.read().decode(errors="replace"))
        except FileNotFoundError:
            return ""
        shown = (inert(line.rstrip().rpartition("\r")[2]) for line in text.split("\n"))
        last = [line for line in shown if line.strip()][-lines:]
        return "\n".join(line[:_LINE_CHARS].rstrip() for line in last)

    def last_line(self) -> str:
        """Returns its beginning, for a display."""
        return self.tail(1)[:160]


def new_log(name: str) -> Path:
    """Creates a log in the cache, empty: of something that bench itself does, such as an installation."""
    log = paths.made(paths.cache_dir() / "logs") / f"{name}.log"
    log.write_bytes(b"")
    return log


@contextmanager
def own_log(path: Path) -> Iterator[Path]:
    """An empty log to which no other bench writes meanwhile: `path`, or one with a number in its name."""
    paths.made(path.parent)
    for number in itertools.count(1):
        log = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        with log.open("ab") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            handle.truncate(0)
            yield log
            return


class Reporter:
    """Says how long something has taken and what its state is now, every few seconds."""

    def __init__(self, say: Say, label: str, state: Callable[[], str]) -> None:
        self._say, self._label, self._state = say, label, state
        self._start = self._last = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._start

    def tick(self) -> None:
        if time.monotonic() - self._last >= _REPORT_EVERY_S:
            self._last = time.monotonic()
            line = self._state()
            self._say(f"{self._label} ({self.elapsed_s:.0f} s){f': {line}' if line else ''}")


def run_or_raise(
    command: Sequence[str], name: str, label: str, say: Say, *, failed: str, where: str, hint: str = ""
) -> None:
    """Runs a program whose failure the user has to see; `name` is that of its log.

    Raises SetupError with the last line of the log.
    """
    log = new_log(name)
    if run_logged(command, log, say, label):
        raise SetupError(f"{failed}: {Log(log).tail(1)}", where=where, hint=f"{hint}log: {log}")


def run_logged(
    command: Sequence[str], log: Path, say: Say, label: str, state: Callable[[Log], str] = Log.last_line
) -> int:
    """Exit status. An interruption ends the whole process group. `state`: what `log` says now, in a line."""
    reporter = Reporter(say, label, partial(state, Log.continued(log)))
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=without_credentials(os.environ, keep=_INDEX),
            start_new_session=True,
            # bench may be killed: what it was installing must not go on in a folder that is made again.
            preexec_fn=follow(signal.SIGKILL),
        )
    try:
        while True:
            try:
                return process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                reporter.tick()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
