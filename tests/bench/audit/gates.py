"""Gates and `bench verify`: a baseline and a new run of one server whose behaviour changes in between."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.store import RunFolder, seal
from tests.bench.audit.row import Row, Seen
from tests.bench.audit.servers_gates import Served, serving
from tests.bench.command import bench

LIMIT_S = 300
GATE = ("--fail-on", "slower")
REQUESTS = 100


@dataclass(frozen=True)
class Place:
    """An empty folder, with a cache of its own: what is known of runs is what was measured in it."""

    room: Path
    served: Served

    def bench(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return bench(*words, limit_s=LIMIT_S, BENCH_CACHE=self.room / "cache")

    def run(self, name: str, *more: str, repeats: int = 3, requests: int = REQUESTS) -> Path:
        """One run of the server as it behaves now; its folder, called `name`."""
        done = self.bench(
            *("run", "--scenario", "fixed-length", "--backends", f"openai={self.served.url}"),
            *("--input-tokens", "40", "--output-tokens", "20", "--concurrency", "4"),
            *("--set", "load.warmup_requests=12", "--requests", str(requests), "--repeats", str(repeats)),
            *("--no-probe", "--no-report", "--json", "--out", str(self.room / "runs"), *more),
        )
        try:
            made = self.room / "runs" / json.loads(done.stdout)["run"]
        except (ValueError, KeyError):
            raise RuntimeError(f"bench run ended with {done.returncode}: {done.stderr[-2000:]}") from None
        return made.rename(self.room / name)


@contextmanager
def place(room: Path) -> Iterator[Place]:
    with serving() as served:
        yield Place(room, served)


def mend(path: Path) -> None:
    """New checksums for what lies there now, as whoever changes a run can make them."""
    files = RunFolder(path).files
    (path / seal.FILE).unlink(missing_ok=True)
    seal.begin(files)
    names = [*seal.measured(files), *(["summary.json"] if files.has("summary.json") else [])]
    seal.enter(files, {name: files.sha256(name) for name in names})


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def _said(done: "subprocess.CompletedProcess[str]", room: Path, part: str) -> str:
    """What the gate said, or the line with this part: on one line of a table."""
    lines = (done.stdout + done.stderr).replace(f"{room}/", "").splitlines()
    found = [line.strip() for line in lines if line.strip()]
    said = (index for index, line in enumerate(found) if line.startswith("gate:") or part in line)
    gate = next(said, 0)
    return f"{'; '.join(found[gate : gate + 3])[:300]}; exit {done.returncode}".replace("|", "\\|")


def _gate(
    change: Callable[[Place], object], expected: tuple[int, str], repeats: int = 3, requests: int = REQUESTS
) -> Callable[[Path], Seen]:
    """A baseline of three runs, `change`, a new run, and the gate; `expected`: exit code, and part of it."""

    def try_it(room: Path) -> Seen:
        with place(room) as here:
            old = here.run("base", requests=requests)
            change(here)
            new = here.run("new", repeats=repeats, requests=requests)
            return _judged(here, here.bench("compare", str(old), str(new), *GATE), expected)

    return try_it


def _judged(here: Place, done: "subprocess.CompletedProcess[str]", expected: tuple[int, str]) -> Seen:
    code, part = expected
    printed = _said(done, here.room, part)
    right = done.returncode == code and part in done.stdout + done.stderr
    return Seen(printed, "" if right else f"expected exit {code} and '{part}'")


def _slower(here: Place) -> None:
    here.served.behaviour.slower = 2.0


def _stalling(here: Place) -> None:
    here.served.behaviour.stall_every_s, here.served.behaviour.stall_s = 5.0, 0.9


def _refusing(here: Place) -> None:
    here.served.behaviour.refused = 0.01


def _nothing(_: Place) -> None:
    """The server stays as it is."""


def _damaged(room: Path) -> Seen:
    with place(room) as here:
        old = here.run("base")
        new = here.run("new")
        records = next(new.glob("cells/*r1/requests.parquet"))
        records.write_bytes(records.read_bytes()[:-40])
        return _judged(here, here.bench("compare", str(old), str(new), *GATE), (2, "does not verify"))


def _forged(command: str, expected: tuple[int, str]) -> Callable[[Path], Seen]:
    """E2E of summary.json times 0.7, with mended checksums, on a machine that did not measure the run."""

    def try_it(room: Path) -> Seen:
        with place(room) as here:
            old = here.run("base")
            _slower(here)
            new = here.run("new")
            change_json(new / "summary.json", _faster)
            mend(new)
            shutil.rmtree(room / "cache")
            words = (command, str(old), str(new), *GATE) if command == "compare" else (command, str(new))
            done = here.bench(*words)
            # A changed checkout counts as another version: its figures are computed again, and compared.
            again = (
                (1, "slower: openai c4 E2E p50")
                if command == "compare" and done.returncode == 1
                else expected
            )
            return _judged(here, done, again)

    return try_it


def _faster(summary: Any) -> None:
    for cell in summary["cells"]:
        for name in ("p50", "p90", "p95", "mean"):
            if cell["e2e_ms"].get(name) is not None:
                cell["e2e_ms"][name] *= 0.7


def _dropped(room: Path) -> Seen:
    """A repeat is taken out, the summary is made again from the rest, and the checksums are mended."""
    with place(room) as here:
        new = here.run("new", repeats=4)
        shutil.rmtree(next(new.glob("cells/*r2")))
        here.bench("report", str(new))
        mend(new)
        shutil.rmtree(room / "cache")
        return _judged(here, here.bench("verify", str(new)), (1, "was planned and is missing"))


ROWS: tuple[Row, ...] = (
    Row(
        "gate: one run, twice as slow",
        "slower; one run cannot show it",
        _gate(_slower, (1, "1 run, the baseline has 3"), repeats=1),
    ),
    Row("gate: three runs, twice as slow", "slower", _gate(_slower, (1, "slower: openai c4 TTFT p50"))),
    Row(
        "gate: 0.9 s without a token every 5 s",
        "medians equal, tail slower",
        _gate(_stalling, (1, "slower: openai c4 E2E p99"), requests=160),
    ),
    Row(
        "gate: 1% of requests refused",
        "times equal, more failures",
        _gate(_refusing, (1, "requests failed, 0 of"), requests=200),
    ),
    Row("gate: nothing changed", "equal", _gate(_nothing, (0, "gate: passed"))),
    Row("gate: records of a cell cut", "not known", _damaged),
    Row("verify: E2E × 0.7, checksums mended", "twice as slow", _forged("verify", (1, "(-30%)"))),
    Row("compare: E2E × 0.7, checksums mended", "not known", _forged("compare", (2, "does not verify"))),
    Row("verify: a repeat taken out, all made again", "a planned cell is missing", _dropped),
)
