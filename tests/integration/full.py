"""A run whose disk is full from one step on: a file or folder that is made, renamed, written or synced."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from harness.errors import ExitCode
from tests.integration.attacked import LIMIT_S, Attacked

SOURCE = Path(__file__).with_name("full.c")
RUN = (
    *("run", "--scenario", "fixed-length", "--backends", "first,second", "--repeats", "1"),
    *("--concurrency", "4", "--requests", "8", "--output-tokens", "8", "--no-probe", "--no-report"),
    *("--no-agreement", "--set", "load.warmup_requests=2", "--set", "load.min_answers=8"),
    *("--set", "load.min_seconds=0.1", "--set", "verdict.cool_down_s=0"),
)
STEPS = ("mkdir", "create", "write", "sync", "rename")
_NAMES = (  # what differs from run to run, and between the two cells
    (re.compile(r"^results/2[^/]+"), "RUN"),
    (re.compile(r"cells/[^/]+"), "cells/CELL"),
    (re.compile(r"/\.(\w[\w.]*)\.[0-9a-f]{16}\.partial \(deleted\)"), r"/\1 in parts"),
    (re.compile(r"/\.(\w[\w.]*)\.[0-9a-f]{16}\.partial"), r"/\1"),
    (re.compile(r"(logs|workloads)/.+"), r"\1/*"),
    (re.compile(r"^tmp/#.*"), "TMP/unnamed"),
    (re.compile(r"^tmp/bench-scratch-(\w+)-[^/]+"), r"TMP/\1"),
    (re.compile(r"^tmp/[^/]+"), "TMP/*"),
    (re.compile(r"(running|begun)/[^/]+"), r"\1/*"),
)


@cache
def library(folder: Path, source: Path = SOURCE) -> Path:
    made = folder / f"{source.stem}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl"], check=True)
    return made


class Full(Attacked):
    """`under`: which folders are on that disk; all that bench writes to, by default."""

    def __init__(self, room: Path, under: tuple[str, ...] = ("results", "tmp", "cache")) -> None:
        super().__init__(room)
        self.steps, self.log = room / "steps", room / "log"
        self.shim = {
            "LD_PRELOAD": str(library(room.parent)),
            "FULL_UNDER": ":".join(str(room / name) for name in under),
            "FULL_STEPS": str(self.steps),
            "FULL_LOG": str(self.log),
        }

    def places(self) -> list[tuple[int, tuple[str, str]]]:
        """The steps of a run that is left alone: number, kind of file, what is done to it."""
        code = self.run_with()
        assert code in (ExitCode.OK, ExitCode.INVALID), self.said
        lines = (line.split(" ", 1) for line in self.log.read_text().splitlines())
        return [(int(number), self._kind(*what.split(" ", 1))) for number, what in lines]

    def broken(self, step: int) -> list[str]:
        """Promises that did not hold with a disk that is full from `step` on."""
        code = self.run_with(FULL_AT=str(step))
        if code is None:
            return [f"no end within {LIMIT_S} s"]
        return [*self.left_running(), *self.tracebacks(), *self._told(code), *self._kept()]

    def run_with(self, **environment: str) -> int | None:
        self.steps.write_bytes(bytes(8))
        return self.finish(self.begin(*RUN, **self.shim, **environment))

    def _kind(self, step: str, path: str) -> tuple[str, str]:
        name = path.removeprefix(f"{self.room}/")
        for pattern, instead in _NAMES:
            name = pattern.sub(instead, name)
        return name, step

    def _told(self, code: int) -> Iterator[str]:
        """A run that is whole may have lost scratch files; any other one says what is wrong."""
        whole = code in (ExitCode.OK, ExitCode.INVALID)
        if whole and not (self.cells(0) and self.cells(1)):
            yield f"exit code {code}, and a cell is missing"
        if not whole and (code != ExitCode.SETUP or "error:" not in self.said):
            yield f"exit code {code}: {self.said[-200:]}"

    def _kept(self) -> Iterator[str]:
        """What was measured is whole, and `bench resume` goes on from it."""
        runs = list((self.room / "results").glob("2*/manifest.json"))
        if not runs:  # it ended before there was anything to keep
            return
        # Until then a file may be entered that never came, or be there before its cell was entered.
        yield from (f"{one.path} {one.what}" for one in self.faults() if "damaged" in one.what)
        before = {path: path.read_bytes() for place in (0, 1) for path in self.cells(place)}
        yield from self.resumed()
        yield from (f"{path.parent.name} was measured again" for path in self._others(before))
        yield from self.left_behind()
        yield from self.tracebacks()

    def _others(self, before: dict[Path, bytes]) -> Iterator[Path]:
        for path, data in before.items():
            if b'"interrupted": true' not in data and path.read_bytes() != data:
                yield path


def has_compiler() -> bool:
    return any(os.access(Path(folder) / "cc", os.X_OK) for folder in os.get_exec_path())
