"""A run on simulated engines of which one process is struck by a signal, and what must hold afterwards."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from attacked import LIMIT_S, Attacked

WHO = ("load worker", "sampler", "engine", "guard", "bench", "nightly")
_MASTERS = ("bench", "nightly")
STAGES = ("setup", "warm-up", "load", "after")
SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("KILL", "TERM", "HUP", "STOP")}
_STOPPED_S = 1.5  # then it goes on
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
_SUITE = """
[suite]
name = "struck"
purpose = "A night that is struck."
budget_minutes = 5
[[run]]
scenario = "fixed-length"
backends = ["first", "second"]
repeats = 1
concurrency = [4]
requests = 24
output_tokens = 8
set = ["load.warmup_requests=12", "load.min_answers=8", "load.min_seconds=0.1", "verdict.cool_down_s=0"]
"""


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
        if stage in ("warm-up", "load") or who in ("engine", "guard", *_MASTERS)
    ]


def broken(room: Path, strike: Strike) -> list[str]:
    """Promises that did not hold. `room` is an empty working directory, and the present one."""
    return _Case(room, strike).broken()


class _Case(Attacked):
    def __init__(self, room: Path, strike: Strike) -> None:
        super().__init__(room)
        self.strike = strike

    def broken(self) -> list[str]:
        bench = self.begin(*self._words())
        try:
            self._reach(bench)
            before = self._measured()
            self._hit(bench)
        except BaseException:
            bench.kill()
            raise
        if self.finish(bench) is None:
            return [f"no end within {LIMIT_S} s"]
        return [*self.left_running(), *self.resumed(), *self.left_behind(), *self._after(before)]

    def _words(self) -> tuple[str, ...]:
        if self.strike.who == "nightly":
            (self.room / "struck.toml").write_text(_SUITE)
            return ("nightly", "struck.toml")
        return (*_RUN, "--agreement" if self.strike.stage == "after" else "--no-agreement")

    # -- until the strike

    def _reach(self, bench: "subprocess.Popen[str]") -> None:
        """In the second engine's turn, so that there is something to lose."""
        self._until(bench, lambda: self.cells(0))
        before = set(self.processes("guard"))
        self._until(bench, lambda: set(self.processes("guard")) - before and self.processes("engine"))
        if self.strike.stage == "setup":
            return
        if self.strike.stage == "after":
            self._until(bench, lambda: self.cells(1))
            return
        self._until(bench, lambda: list(self.tmp.glob("bench-scratch-load-*/0/rows")))
        time.sleep(0.6 if self.strike.stage == "load" else 0.05)

    def _until(self, bench: "subprocess.Popen[str]", reached: Callable[[], object]) -> None:
        until = time.monotonic() + LIMIT_S / 2
        while not reached():
            assert bench.poll() is None, f"bench ended too early: {bench.communicate()}"
            assert time.monotonic() < until, f"{self.strike.stage} was not reached"
            time.sleep(0.01)

    def _hit(self, bench: "subprocess.Popen[str]") -> None:
        pids = [bench.pid] if self.strike.who in _MASTERS else self.processes(self.strike.who)
        assert pids, f"there is no {self.strike.who} in {self.strike.stage}"
        os.kill(pids[-1], SIGNALS[self.strike.signal])
        if self.strike.signal == "STOP":
            time.sleep(_STOPPED_S)
            os.kill(pids[-1], signal.SIGCONT)

    # -- what must hold

    def _after(self, before: dict[str, bytes]) -> Iterator[str]:
        now = self._measured()
        yield from (f"{name} is not as it was measured" for name in before if now.get(name) != before[name])
        yield from self.tracebacks()
        cancelled = sum(cell["requests"]["cancelled"] for cell in self.summary()["cells"])
        if cancelled:
            yield f"{cancelled} requests count as cancelled, and nobody stopped the run"
        if self.strike.signal != "STOP" and self.strike.who not in _MASTERS and not self._named():
            yield f"nothing names the {self.strike.who}"

    def _measured(self) -> dict[str, bytes]:
        """Of the first cell, which was whole before."""
        return {path.name: path.read_bytes() for path in self.cells(0)[0].parent.iterdir()}

    def _named(self) -> bool:
        told = self.said + json.dumps(self.summary())
        told += "".join(path.read_text() for path in self.run().path.glob("**/cell.json"))
        return any(words in told for words in _NAMED.get(self.strike.who, ()))
