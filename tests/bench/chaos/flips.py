"""Flipped bytes in every file of a run folder: each command shows the same as before, or names the damage."""

import argparse
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from msgspec import structs

from harness.cli.display.output import PlainLines
from harness.cli.display.result import Result
from harness.cli.main import main
from harness.cli.typed import RunOutput
from harness.model import as_json
from harness.run.execute import Run
from harness.run.setup.options import Ui
from harness.run.setup.prepare import Prepared
from harness.store import RunFolder, seal
from tests.bench.chaos.cheaper import cheaper
from tests.bench.chaos.page import Table
from tests.integration.scripted import bench, define

COMMANDS = ("report", "compare", "claims", "history", "resume", "verify")
_KINDS = (  # a row each: what is in the folder, by the pattern of its path
    *("manifest.json", "plan.json", "summary.json", "workload.json", "probe-*.json", "agreement/**/*.json"),
    *("workloads/*", "cells/*/cell.json", "cells/*/requests.parquet", "cells/*/events.parquet"),
    *("cells/*/telemetry.parquet", seal.FILE),
)
_RUN = (
    *("run", "--scenario", "fixed-length", "--backends", "first,second", "--repeats", "1"),
    *("--concurrency", "4", "--requests", "24", "--output-tokens", "8", "--no-report", "--agreement"),
    *("--set", "load.warmup_requests=4", "--set", "load.min_answers=8", "--set", "load.min_seconds=0.1"),
    *("--set", "verdict.cool_down_s=0"),
)

Said = tuple[int, str, str]  # exit code, results, all the words


def flips(arguments: argparse.Namespace) -> int:
    """`--only`: a part of a file's path, such as `cell.json`."""
    began, rows, wrong = time.monotonic(), {}, 0
    with tempfile.TemporaryDirectory(prefix="chaos-") as room, chdir(room):
        os.environ["BENCH_CACHE"] = f"{room}/cache"
        cheaper()
        tried = _Tried(_measured())
        for kind in _KINDS:
            if arguments.only not in kind:
                continue
            counts = tried.kind(kind, arguments, began + arguments.seconds)
            rows[kind] = [f"{counts[one]:,}" for one in ("flips", *COMMANDS, "silent", "tracebacks")]
            wrong += counts["silent"] + counts["tracebacks"]
    columns = ("file", "flips", *COMMANDS, "silent", "tracebacks")
    Table("flips", columns, _KINDS, summed=True).publish(rows, arguments)
    return 1 if wrong or not rows else 0


def _measured() -> RunFolder:
    """A whole run on two simulated engines, with every kind of file."""
    Path("backends").mkdir()
    for name in ("first", "second"):
        define(name, ttft_ms=100, gap_ms=5)
    bench(*_RUN, code=(0, 4))
    (path,) = Path("results").glob("2*")
    run = RunFolder(path.resolve())
    run.write_manifest(structs.replace(run.read_manifest(), state="interrupted"))  # for `bench resume`
    return run


def _resumed(words: list[str]) -> int:
    """As far as the folder is read: what it keeps, and what is still to be done."""

    def kept(prepared: Prepared, begin: Callable[[Ui], AbstractContextManager[Run]], _: RunOutput) -> Result:
        with begin(PlainLines()) as run:
            print([block.backend for block in run._remaining(prepared.plan)])
            print(json.dumps(as_json(run.summary)))
        return Result()

    with patch("harness.cli.commands.run_session.run_and_show", kept):
        return main(words)


class _Tried:
    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.aside = run.path.parents[1] / "kept"
        shutil.copytree(run.path, self.aside)
        self.whole = {name: self._said(name) for name in COMMANDS}
        again = {name: self._said(name) for name in COMMANDS}
        assert [said[:2] for said in again.values()] == [said[:2] for said in self.whole.values()]

    def kind(self, kind: str, arguments: argparse.Namespace, until: float) -> Counter[str]:
        """How often each command named the damage; what it did else."""
        counts: Counter[str] = Counter()
        names = sorted(path.relative_to(self.aside).as_posix() for path in self.aside.glob(kind))
        assert names, f"no {kind} in {self.aside}"
        rng = random.Random(f"{arguments.seed} {kind}")
        for place in range(arguments.count * len(names)):
            if time.monotonic() > until:
                break
            name = names[place % len(names)]
            data = bytearray((self.aside / name).read_bytes())
            at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
            data[at] ^= bit
            counts["flips"] += 1
            for command in COMMANDS:
                found = self._judged(command, name, bytes(data))
                counts[found] += 1
                if found in ("silent", "tracebacks"):
                    print(f"{command}: {found}: {name} at {at}, bit {bit}", file=sys.stderr, flush=True)
        return counts

    def _judged(self, command: str, name: str, data: bytes) -> str:
        try:
            said = self._said(command, {name: data})
        except Exception:  # whatever it is, it is the finding
            traceback.print_exc(limit=-4)
            return "tracebacks"
        if self._names(said, name):
            return command
        return "same" if said[:2] == self.whole[command][:2] else "silent"

    def _names(self, said: Said, name: str) -> bool:
        return "damaged" in said[2] and any(
            one in said[2] for one in (Path(name).name, Path(name).parent.name)
        )

    def _restore(self) -> None:
        shutil.rmtree(self.run.path)
        shutil.copytree(self.aside, self.run.path)
        shutil.rmtree(self.run.path.parent / "history", ignore_errors=True)

    def _said(self, command: str, damaged: Mapping[str, bytes] = MappingProxyType({})) -> Said:
        """In this process, with what it writes for people and scripts."""
        self._restore()
        for name, data in damaged.items():
            (self.run.path / name).write_bytes(data)
        words = [command, str(self.run.path)]
        results, rest = io.StringIO(), io.StringIO()
        with redirect_stdout(results), redirect_stderr(rest):
            if command == "resume":
                code = _resumed(words)
            else:
                more = {"compare": ["--json", "--force"], "history": ["--out", str(self.run.path.parent)]}
                code = main([*words, *more.get(command, [])])
        text = results.getvalue()
        if command == "report":
            text += (self.run.path / "summary.json").read_text(errors="replace")
        return code, text, text + rest.getvalue()
