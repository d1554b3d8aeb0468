"""A run on simulated engines of which one process is struck by a signal, and what must hold afterwards."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripted import command, define

from harness.store import RunFolder

WHO = ("load worker", "sampler", "engine", "guard", "bench")
STAGES = ("setup", "warm-up", "load", "after")
SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("KILL", "TERM", "HUP", "STOP")}
_STOPPED_S = 1.5  # then it goes on
_LIMIT_S = 60
_MARKS = {
    "load worker": b"-m\0harness.load\0",
    "sampler": b"-m\0harness.observe\0",
    "engine": b"-m\0harness\0truth\0",
    "guard": b"guard.py\0",
}
# What names the dead one, in the summary or in what bench prints.
_NAMED = {
    "load worker": ("worker-lost",),
    "sampler": ("the sampler was killed",),
    "engine": ("killed by SIG", "ended", "exit code"),
    "guard": ("guard process was killed",),
}
_RUN = (
    *("run", "--scenario", "fixed-length", "--backends", "first,second", "--repeats", "1"),
    *("--concurrency", "4", "--requests", "24", "--output-tokens", "8", "--no-probe", "--no-report"),
    *("--set", "load.warmup_requests=12", "--set", "load.min_answers=8", "--set", "load.min_seconds=0.1"),
    *("--set", "verdict.cool_down_s=0"),
)


@dataclass(frozen=True)
class Strike:
    who: str
    signal: str
    stage: str

    def __str__(self) -> str:
        return f"{self.signal} {self.who} in {self.stage}"


def strikes() -> list[Strike]:
    """Every one there can be: a load has its worker and its sampler, and nothing else has."""
    return [
        Strike(who, number, stage)
        for who in WHO
        for stage in STAGES
        for number in SIGNALS
        if stage in ("warm-up", "load") or who in ("engine", "guard", "bench")
    ]


def broken(room: Path, strike: Strike) -> list[str]:
    """Promises that did not hold. `room` is an empty working directory, and the present one."""
    for name in ("backends", "tmp"):
        (room / name).mkdir()
    for name in ("first", "second"):
        define(name, ttft_ms=100, gap_ms=5)
    return _Case(room, strike).broken()


class _Case:
    def __init__(self, room: Path, strike: Strike) -> None:
        self.room, self.strike = room, strike
        self.tmp = room / "tmp"
        self.environment = {**os.environ, "TMPDIR": str(self.tmp), "BENCH_CACHE": str(room / "cache")}
        self.said = ""

    def broken(self) -> list[str]:
        agreement = () if self.strike.stage == "after" else ("--no-agreement",)
        bench = subprocess.Popen(
            command(*_RUN, *agreement), env=self.environment, stdout=-1, stderr=-1, text=True, cwd=self.room
        )
        try:
            self._reach(bench)
            before = self._measured()
            self._hit(bench)
            self.said += "".join(bench.communicate(timeout=_LIMIT_S))
        except subprocess.TimeoutExpired:
            return [f"no end within {_LIMIT_S} s"]
        finally:
            bench.kill()
            bench.wait()
        return [*self._left_running(), *self._resumed(), *self._after(before)]

    # -- until the strike

    def _reach(self, bench: "subprocess.Popen[str]") -> None:
        """In the second engine's turn, so that there is something to lose."""
        self._until(bench, lambda: self._cells(0))
        before = set(self._processes("guard"))
        self._until(bench, lambda: set(self._processes("guard")) - before and self._processes("engine"))
        if self.strike.stage == "setup":
            return
        if self.strike.stage == "after":
            self._until(bench, lambda: self._cells(1))
            return
        self._until(bench, lambda: list(self.tmp.glob("bench-scratch-load-*/0/rows")))
        time.sleep(0.6 if self.strike.stage == "load" else 0.05)

    def _until(self, bench: "subprocess.Popen[str]", reached: Callable[[], object]) -> None:
        until = time.monotonic() + _LIMIT_S / 2
        while not reached():
            assert bench.poll() is None, f"bench ended too early: {bench.communicate()}"
            assert time.monotonic() < until, f"{self.strike.stage} was not reached"
            time.sleep(0.01)

    def _hit(self, bench: "subprocess.Popen[str]") -> None:
        pids = [bench.pid] if self.strike.who == "bench" else self._processes(self.strike.who)
        assert pids, f"there is no {self.strike.who} in {self.strike.stage}"
        os.kill(pids[-1], SIGNALS[self.strike.signal])
        if self.strike.signal == "STOP":
            time.sleep(_STOPPED_S)
            os.kill(pids[-1], signal.SIGCONT)

    # -- what must hold

    def _left_running(self) -> Iterator[str]:
        until = time.monotonic() + 8
        while (left := self._processes()) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in left:
            yield f"still running: {Path(f'/proc/{pid}/cmdline').read_bytes()!r:.120}"
            os.kill(pid, signal.SIGKILL)

    def _resumed(self) -> Iterator[str]:
        """What can go on goes on, and ends whole."""
        if self._state() != "complete" or not self._cells(1):
            done = subprocess.run(
                command("resume", str(self._run().path), "--no-report"),
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
                cwd=self.room,
            )
            self.said += done.stdout + done.stderr
            if done.returncode not in (0, 4):
                yield f"bench resume ended with {done.returncode}: {done.stderr[-200:]}"
        if self._state() != "complete":
            yield f"the run is {self._state()} at the end"
        yield from (f"no cell {place}" for place in (0, 1) if not self._cells(place))

    def _after(self, before: dict[str, bytes]) -> Iterator[str]:
        yield from (f"left: {path.name}" for path in self.tmp.iterdir())
        yield from (f"left: {path}" for path in self._run().path.rglob(".*"))
        yield from (f"left: {path}" for path in (self.room / "cache").glob("running/*"))
        now = self._measured()
        yield from (f"{name} is not as it was measured" for name in before if now.get(name) != before[name])
        if "Traceback" in self.said:
            yield f"a traceback: {self.said[-600:]}"
        cancelled = sum(cell["requests"]["cancelled"] for cell in self._summary()["cells"])
        if cancelled:
            yield f"{cancelled} requests count as cancelled, and nobody stopped the run"
        if self.strike.signal != "STOP" and self.strike.who != "bench" and not self._named():
            yield f"nothing names the {self.strike.who}"

    def _named(self) -> bool:
        told = self.said + json.dumps(self._summary())
        told += "".join(path.read_text() for path in self._run().path.glob("**/cell.json"))
        return any(words in told for words in _NAMED.get(self.strike.who, ()))

    # -- what there is

    def _run(self) -> RunFolder:
        (path,) = (self.room / "results").glob("2*")
        return RunFolder(path)

    def _state(self) -> str:
        return str(self._run().read_manifest().state)

    def _summary(self) -> dict[str, object]:
        return json.loads((self._run().path / "summary.json").read_text())

    def _cells(self, place: int) -> list[Path]:
        return list((self.room / "results").glob(f"2*/cells/{place:03d}-*/cell.json"))

    def _measured(self) -> dict[str, bytes]:
        """Of the first cell, which was whole before."""
        return {path.name: path.read_bytes() for path in self._cells(0)[0].parent.iterdir()}

    def _processes(self, who: str | None = None) -> list[int]:
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
            if who is None or (_MARKS[who] in line and (who == "guard") == (_MARKS["guard"] in line)):
                found.append((born, int(entry.name)))
        return [pid for _, pid in sorted(found)]
