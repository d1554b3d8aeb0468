"""How CPU time and memory grow: of commands with the number of runs, of a cell with its requests and classes.

    python -m tests.bench.growth [--runs 6] [--requests 1500]

Makes so many runs, and four times as many, of 18 cells each: copies of one that was made up. Each command
reads both in a process of its own. Prints a markdown table. Exits 1 where four times the runs take more than
five times the CPU time, or more than 1.25 times the memory, where an import of four times the requests takes
more than five times the CPU time or four times the memory, or where the events of 160 classes of a cell take
more than five times the time of the cell's.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from harness.metrics.view import RequestView
from harness.records.layout import EVENT_DTYPE, Records, empty_requests
from harness.store import RunFolder
from tests.bench.audit.gates import mend
from tests.bench.command import ROOT, options
from tests.factories import foreign
from tests.factories.runs import Shape, make_run

MORE, MOST_TIME, MOST_MEMORY = 4, 5.0, 1.25
CLASSES = 160
_MEASURED = """
import sys, time
from pathlib import Path
from harness.cli.main import main
code = main(sys.argv[1:])
(peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(time.process_time(), peak.split()[1], file=sys.stderr)
sys.exit(code)
"""
COMMANDS: dict[str, Callable[[list[str], Path], list[str]]] = {
    "list runs": lambda _, folder: ["list", "runs", "--out", str(folder)],
    "query": lambda _, folder: ["query", "select count(*) from verdicts", "--out", str(folder)],
    "verify": lambda runs, _: ["verify", *runs],
    "compare": lambda runs, _: ["compare", *runs],
    "compare --html": lambda runs, folder: ["compare", *runs, "--html", str(folder / "page.html")],
    "history": lambda runs, folder: ["history", *runs, "--out", str(folder)],
    "export": lambda runs, folder: ["export", *runs, "--to", str(folder / "cells.csv")],
}
IMPORTED = 25_000  # requests of a file


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=6, metavar="N")
    parser.add_argument("--requests", type=int, default=1500, metavar="N")
    arguments = parser.parse_args()
    print("| command | count | CPU s | MB | times the CPU | times the memory |\n|---|--:|--:|--:|--:|--:|")
    bounded = True
    with tempfile.TemporaryDirectory() as root:
        few, many = Path(root, "few"), Path(root, "many")
        shape = Shape(concurrency=(1, 4, 16), repeats=3, requests=arguments.requests)
        runs = _made(few, arguments.runs, shape), _made(many, MORE * arguments.runs, shape)
        for name, words in COMMANDS.items():
            commands = [words(*where) for where in zip(runs, (few, many), strict=True)]
            times, grown = _grown(f"{name}, of runs", (len(runs[0]), len(runs[1])), commands)
            bounded = bounded and times <= MOST_TIME and grown <= MOST_MEMORY
        counts = IMPORTED, MORE * IMPORTED
        commands = []
        for count in counts:
            file = foreign.write(Path(root, f"{count}.json"), foreign.vllm(requests=count))
            commands.append(["import", str(file), "--out", root])
        times, grown = _grown("import, of requests", counts, commands)
        bounded = bounded and times <= MOST_TIME and grown <= MORE
    whole_s, classes_s = map(_parts_s, (1, CLASSES))
    times = classes_s / whole_s
    print(f"| events of a cell | | {whole_s:.2f} | | | |")
    print(f"| of its {CLASSES} classes | | {classes_s:.2f} | | {times:.1f} | |")
    return 0 if bounded and times <= MOST_TIME else 1


def _grown(name: str, counts: tuple[int, int], commands: list[list[str]]) -> tuple[float, float]:
    """How many times as much CPU time and memory the second command takes."""
    spent = [_spent(words) for words in commands]
    times, grown = (more / less for less, more in zip(*spent, strict=True))
    for label, count, (cpu_s, megabytes), ratios in zip(
        (name, ""), counts, spent, ("| |", f"{times:.1f} | {grown:.2f} |"), strict=True
    ):
        print(f"| {label} | {count:,} | {cpu_s:.1f} | {megabytes:.0f} | {ratios}", flush=True)
    return times, grown


def _parts_s(classes: int) -> float:
    """CPU seconds to take a cell of 20,000 answers of 64 tokens apart into so many classes."""
    rows = empty_requests(20_000)
    rows["seq"] = np.arange(len(rows))
    events = np.zeros(64 * len(rows), EVENT_DTYPE)
    events["seq"] = np.repeat(rows["seq"], 64)
    view = RequestView(Records(rows, events, (), (), ()))
    began = time.process_time()
    taken = sum(len(view.part(rows["seq"] % classes == number).records.events) for number in range(classes))
    assert taken == len(events)
    return time.process_time() - began


def _made(folder: Path, count: int, shape: Shape) -> list[str]:
    folder.mkdir()
    paths = []
    for number in range(count):
        (scratch := folder / "scratch").mkdir()
        made = make_run(scratch, shape)
        run = f"2026{number:04d}T051744Z-shared-prefix-{number:06x}"
        copied = RunFolder(made.path.rename(folder / run))
        scratch.rmdir()
        copied.write_manifest(replace(copied.read_manifest(), run=run))
        copied.write_summary(replace(copied.read_summary(), run=run))
        mend(copied.path)
        paths.append(str(copied.path))
    return paths


def _spent(words: list[str]) -> tuple[float, float]:
    """CPU seconds, and MB of memory at most."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        check=False,
    )
    *_, last = done.stderr.splitlines()
    if done.returncode not in (0, 1):  # 1: a comparison found something
        raise SystemExit(f"bench {words[0]}: {done.stderr}")
    cpu_s, kilobytes = last.split()
    return float(cpu_s), int(kilobytes) / 1000


if __name__ == "__main__":
    sys.exit(main())
