"""A run on simulated engines of which one process is struck by a signal, and what must hold afterwards."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.integration.attacked import LIMIT_S, Attacked
from tests.integration.scripted import reach

WHO = ("load worker", "sampler", "engine", "guard", "bench", "nightly")
_MASTERS = ("bench", "nightly")
STAGES = ("setup", "warm-up", "load", "after")
SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("KILL", "TERM", "HUP", "STOP")}
_STOPPED_S = 1.5  # then it goes on
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


@dataclass(frozen=True)
class Moment:
    """A strike at any time of a run, or of a night, against whoever is there then."""

    share: float  # of the time that it takes when nothing strikes it
    signal: str
    night: bool
    pick: float  # 0 to 1: who of those that are there

    def __str__(self) -> str:
        return f"{self.signal} at {self.share:.3f} of {'a night' if self.night else 'a run'}, {self.pick:.3f}"


def moments(count: int, seed: int) -> list[Moment]:
    """A quarter of them in nights."""
    rng = random.Random(seed)
    return [
        Moment(rng.random(), rng.choice(list(SIGNALS)), rng.random() < 0.25, rng.random())
        for _ in range(count)
    ]


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


def broken_at(room: Path, moment: Moment, whole_s: float) -> tuple[str, list[str]]:
    """Who was struck ("": it had ended by then), and the promises that did not hold."""
    return _AnyTime(room, moment).broken(whole_s)


def whole_s(room: Path, *, night: bool) -> float:
    """Seconds that it takes when nothing strikes it."""
    case = _AnyTime(room, Moment(0, "KILL", night, 0))
    began = time.monotonic()
    assert case.finish(case.begin(*case.words())) in (0, 4), case.said
    return time.monotonic() - began


class _AnyTime(Attacked):
    def __init__(self, room: Path, moment: Moment) -> None:
        super().__init__(room)
        self.moment = moment

    def words(self) -> tuple[str, ...]:
        if not self.moment.night:
            return (*_RUN, "--no-agreement")
        (self.room / "struck.toml").write_text(_SUITE)
        return ("nightly", "struck.toml")

    def broken(self, whole_s: float) -> tuple[str, list[str]]:
        bench = self.begin(*self.words())
        try:
            with suppress(subprocess.TimeoutExpired):
                bench.wait(self.moment.share * whole_s)
            before = self._sealed()
            who = self._hit(bench)
        except BaseException:
            bench.kill()
            raise
        if not who:
            self.finish(bench)
            return "", []
        if self.finish(bench) is None:
            return who, [f"no end within {LIMIT_S} s"]
        return who, [*self.left_running(), *self._rest(who), *self.tracebacks(), *self._changed(before)]

    def _hit(self, bench: "subprocess.Popen[str]") -> str:
        there = {
            "nightly" if self.moment.night else "bench": [bench.pid],
            **{who: self.processes(who) for who in WHO if who not in _MASTERS},
        }
        names = [who for who in WHO if there.get(who)]
        if bench.poll() is not None:
            return ""
        who = names[int(self.moment.pick * len(names))]
        try:
            os.kill(there[who][-1], SIGNALS[self.moment.signal])
            if self.moment.signal == "STOP":
                time.sleep(_STOPPED_S)
                os.kill(there[who][-1], signal.SIGCONT)
        except ProcessLookupError:  # it ended by itself in between
            return ""
        return who

    def _rest(self, who: str) -> Iterator[str]:
        """Of a run that had begun: it was told as it went, and goes on to a whole one."""
        if not list((self.room / "results").glob("2*/manifest.json")):
            yield from (f"left: {path.name}" for path in self.tmp.iterdir() if who not in _MASTERS)
            return
        whole = self.whole()
        asked = [cell["requests"] for cell in self.summary()["cells"]] if whole else []
        if whole and who in _MASTERS:  # what a killed one leaves, the next clears
            self.finish(self.begin("resume", str(self.run().path), "--no-report"))
        yield from self.resumed()
        yield from self.left_behind()
        if cancelled := sum(cell["requests"]["cancelled"] for cell in self.summary()["cells"]):
            yield f"{cancelled} requests count as cancelled, and nobody stopped the run"
        unhurt = whole and all(one["planned"] == one["ok"] for one in asked)
        if self.moment.signal != "STOP" and who not in _MASTERS and not unhurt and not self.named(who):
            yield f"nothing names the {who}"

    def _sealed(self) -> dict[Path, bytes]:
        """Files of cells that were whole then."""
        sealed = "".join(path.read_text() for path in (self.room / "results").glob("2*/checksums.json"))
        cells = [path.parent for place in (0, 1) for path in self.cells(place)]
        whole = [cell for cell in cells if f"{cell.name}/cell.json" in sealed]
        return {path: path.read_bytes() for cell in whole for path in cell.iterdir()}

    def _changed(self, before: dict[Path, bytes]) -> Iterator[str]:
        for path, data in before.items():
            if not path.exists() or path.read_bytes() != data:
                yield f"{path.parent.name}/{path.name} is not as it was measured"


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
        reach(bench, reached, self.strike.stage, every_s=0.01)

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
        if (
            self.strike.signal != "STOP"
            and self.strike.who not in _MASTERS
            and not self.named(self.strike.who)
        ):
            yield f"nothing names the {self.strike.who}"

    def _measured(self) -> dict[str, bytes]:
        """Of the first cell, which was whole before."""
        return {path.name: path.read_bytes() for path in self.cells(0)[0].parent.iterdir()}
