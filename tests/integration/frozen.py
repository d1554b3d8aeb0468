"""A run on a simulated engine, some of whose processes are stopped for a while in the midst of its load."""

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import CellFacts, CellResult, from_json
from harness.store import columns, samples
from harness.store.confined import Confined
from tests.factories.recorded import summarise_cell
from tests.integration.attacked import Attacked
from tests.integration.scripted import define, reach

TTFT_MS, GAP_MS, TOKENS, SLOTS = 100, 10, 64, 8
TRUE_PER_S = SLOTS / (TTFT_MS + (TOKENS - 1) * GAP_MS) * 1000
_WAIT_S = 2.0  # from the first answers on


@dataclass(frozen=True)
class Outcome:
    """`struck`: the cell that was frozen, as it stands by its records. `kept`: the one in the summary."""

    struck: CellResult
    kept: CellResult
    warnings: Sequence[str]  # codes
    again: bool
    said: str


class Frozen(Attacked):
    """`room` is an empty working directory, and the present one."""

    def __init__(self, room: Path) -> None:
        super().__init__(room)
        define("first", ttft_ms=TTFT_MS, gap_ms=GAP_MS)

    def strike(self, who: str, seconds: float, requests: int = 160) -> Outcome:
        """Stops all processes, those of bench without its engine, or the engine alone, for `seconds`."""
        bench = self.begin(
            *("run", "--scenario", "fixed-length", "--backends", "first", "--repeats", "1", "--no-probe"),
            *("--concurrency", f"{SLOTS}", "--requests", f"{requests}", "--output-tokens", f"{TOKENS}"),
            *("--set", "load.warmup_requests=16", "--set", "load.min_seconds=1", "--no-report"),
            *("--no-agreement", "--set", "verdict.cool_down_s=0"),
        )
        try:
            reach(bench, lambda: any(path.stat().st_size for path in self._rows()), "load", every_s=0.01)
            time.sleep(_WAIT_S)
            self._freeze(who, seconds)
        except BaseException:
            bench.kill()
            raise
        code = self.finish(bench)
        assert code in (0, 4), self.said
        run = self.run().path
        (cell,) = run.glob("cells/*")
        first = run / "set-aside" / f"{cell.name}.1"
        again = first.is_dir()
        summary = json.loads((run / "summary.json").read_text())
        return Outcome(
            _summarised(first if again else cell),
            _summarised(cell),
            [warning["code"] for warning in summary["warnings"]],
            again,
            self.said,
        )

    def _rows(self) -> list[Path]:
        return list(self.tmp.glob("bench-scratch-load-*/0/rows"))

    def _freeze(self, who: str, seconds: float) -> None:
        pids = self._pids(who)
        assert pids or who == "nobody"
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def _pids(self, who: str) -> list[int]:
        if who == "nobody":
            return []
        if who == "engine":
            return self.processes("engine")
        beside = {*self.processes("engine"), *self.processes("guard")} if who == "client" else set()
        return [pid for pid in self.processes() if pid not in beside]


def _summarised(cell: Path) -> CellResult:
    facts = from_json(json.loads((cell / "cell.json").read_text()), CellFacts)
    files = Confined(cell.parent)
    records = columns.read_records(files, cell.name, closed_loop=True)
    return summarise_cell(records, facts, None, samples.read_telemetry(files, cell.name))
