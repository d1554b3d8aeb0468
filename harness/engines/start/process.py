"""An engine as a process on this machine that cannot outlive the harness."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from harness.engines.start.orphans import fields_of
from harness.errors import SetupError
from harness.host import paths
from harness.host.helper_process import how_it_ended

_GUARD = Path(__file__).parents[1] / "shims" / "guard.py"
_GUARD_DIED = "its guard process was killed"


class _Report(msgspec.Struct):
    """A line of the guard: first the engine's pid or why there is none, at the end how it ended."""

    pid: int | None = None
    error: str = _GUARD_DIED
    exit: int | None = None  # None: the guard was killed and could not clean up


class EngineProcess:
    """Started under a guard of its own (shims/guard.py); output goes to `log`."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        grace_s: float = 10.0,
        cores: Sequence[int] = (),
    ) -> None:
        """`cores`: that it is held to; (): any."""
        self._grace_s = grace_s  # from SIGTERM to SIGKILL
        self._socket, theirs = socket.socketpair()
        listed = ",".join(map(str, cores)) or "any"
        paths.made(log.parent)
        with theirs, log.open("ab") as output:
            # Isolated and without site-packages: it starts in milliseconds, whatever the engine's settings.
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_GUARD), str(grace_s), listed, *command],
                stdin=theirs.fileno(),
                stdout=output,
                stderr=output,
                env=dict(env),
                start_new_session=True,
            )
        self._reports = self._socket.makefile("rb")
        first = self._report()
        if first.pid is None:
            self._end()
            raise SetupError(f"cannot be started: {first.error}", where=command[0])
        self.pid = first.pid
        self._ending: str | None = None

    def exited(self) -> str | None:
        """None while it runs, else one sentence. Once it is dead, this waits until nothing of it is left."""
        if self._ending is None and (self._guard.poll() is not None or self._died()):
            report = self._report()
            if report.exit is None:
                self._kill_group()
            self._ending = _GUARD_DIED if report.exit is None else how_it_ended(report.exit)
        return self._ending

    def stop(self) -> None:
        """SIGTERM to the group, SIGKILL after a grace period; returns when nothing of it is left."""
        if self._guard.poll() is None:
            self._socket.shutdown(socket.SHUT_WR)
            try:
                self._guard.wait(timeout=self._grace_s + 10)
            except subprocess.TimeoutExpired:
                self._kill_group()
                self._guard.kill()
        self.exited()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _died(self) -> bool:
        """Whether it is dead, though its guard still collects what it left behind."""
        return fields_of(self.pid)[:1] in ([], ["Z"], ["X"])

    def _report(self) -> _Report:
        line = self._reports.readline()
        return msgspec.json.decode(line, type=_Report) if line else _Report()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def _end(self) -> None:
        self._reports.close()
        self._socket.close()
        self._guard.wait()
