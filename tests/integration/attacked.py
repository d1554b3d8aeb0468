"""A run on two simulated engines that something happens to, and what must hold afterwards."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.store import RunFolder, seal
from tests.integration.scripted import command, define
from tests.waiting import command_line

LIMIT_S = 120  # a night on a busy machine
_GONE_S = 8
# What names a dead one, in the summary or in what bench prints.
_NAMED = {
    "load worker": ("worker-lost",),
    "sampler": ("the sampler was killed",),
    "engine": ("killed by SIG", "ended", "exit code"),
    "guard": ("guard process was killed",),
}
MARKS = {
    "load worker": b"-m\0harness.load\0",
    "sampler": b"-m\0harness.sampling\0",
    "engine": b"-m\0harness\0truth\0",
    "guard": b"guard.py\0",
}


def _notices_a_hangup() -> None:
    """Also below `nohup`, whose children ignore SIGHUP: a strike would strike nothing."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Attacked:
    """`room` is an empty working directory, and the present one."""

    def __init__(self, room: Path) -> None:
        self.room, self.tmp = room, room / "tmp"
        for name in ("backends", "tmp"):
            (room / name).mkdir()
        for name in ("first", "second"):
            define(name, ttft_ms=100, gap_ms=5)
        self.environment = {**os.environ, "TMPDIR": str(self.tmp), "BENCH_CACHE": str(room / "cache")}
        self.said = ""
        self.shell = 'exec "$@"'

    def begin(self, *words: str, **environment: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            ["/bin/sh", "-c", self.shell, "sh", *command(*words)],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.room,
            preexec_fn=_notices_a_hangup,
        )

    def finish(self, bench: "subprocess.Popen[str]") -> int | None:
        """Its exit code; None where it has not ended in time."""
        try:
            self.said += "".join(bench.communicate(timeout=LIMIT_S))
        except subprocess.TimeoutExpired:
            return None
        finally:
            bench.kill()
            bench.wait()
        return bench.returncode

    # -- what must hold

    def left_running(self) -> Iterator[str]:
        until = time.monotonic() + _GONE_S
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in left:
            yield f"still running: {command_line(pid)!r:.120}"
            with suppress(ProcessLookupError):  # it may end by itself after all
                os.kill(pid, signal.SIGKILL)

    def resumed(self) -> Iterator[str]:
        """What can go on goes on, and ends whole."""
        if not self.whole():
            code = self.finish(self.begin("resume", str(self.run().path), "--no-report"))
            if code not in (0, 4):
                yield f"bench resume ended with {code}: {self.said[-200:]}"
        if self.state() != "complete":
            yield f"the run is {self.state()} at the end"
        yield from (f"no cell {place}" for place in (0, 1) if not self.cells(place))
        yield from (f"{fault.path} {fault.what}" for fault in self.faults())

    def left_behind(self) -> Iterator[str]:
        yield from (f"left: {path.name}" for path in self.tmp.iterdir())
        yield from (f"left: {path}" for path in self.run().path.rglob(".*"))
        yield from (f"left: {path}" for path in (self.room / "cache").glob("running/*"))

    def tracebacks(self) -> Iterator[str]:
        if "Traceback" in self.said:
            yield f"a traceback: {self.said[-600:]}"

    # -- what there is

    def run(self) -> RunFolder:
        (path,) = (self.room / "results").glob("2*")
        return RunFolder(path)

    def faults(self) -> list[seal.Fault]:
        found = seal.faults(self.run().files)
        return [] if found is None else found[1]

    def state(self) -> str:
        return str(self.run().read_manifest().state)

    def whole(self) -> bool:
        return self.state() == "complete" and all(map(self.cells, (0, 1)))

    def summary(self) -> dict[str, object]:
        return json.loads((self.run().path / "summary.json").read_text())

    def named(self, who: str) -> bool:
        told = self.said + json.dumps(self.summary())
        told += "".join(path.read_text() for path in self.run().path.glob("**/cell.json"))
        return any(words in told for words in _NAMED.get(who, ()))

    def cells(self, place: int) -> list[Path]:
        return list((self.room / "results").glob(f"2*/cells/{place:03d}-*/cell.json"))

    def processes(self, who: str | None = None) -> list[int]:
        """In the order of their start; those of the run are known by their folder for temporary files."""
        mark, found = f"TMPDIR={self.tmp}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark not in (entry / "environ").read_bytes():
                    continue
                line = (entry / "cmdline").read_bytes()
                born = int((entry / "stat").read_text().rpartition(")")[2].split()[19])
            except OSError:
                continue
            if who is None or (MARKS[who] in line and (who == "guard") == (MARKS["guard"] in line)):
                found.append((born, int(entry.name)))
        return [pid for _, pid in sorted(found)]
