"""Random alterations of a measured run, with mended checksums: does `bench verify` notice each?

    python -m tests.bench.audit.alterations [--number 100] [--seed 0] [--page]

Each alteration is verified on the machine that measured; elsewhere; and elsewhere after summary.json was
computed again from the altered records as well, so that the folder agrees with itself.
Prints a Markdown table; with --page it goes into tests/bench/tried.md. Exits 1 where the machine that
measured missed one, or another machine one that is not an edit of conditions.
"""

import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.cli.main import main as bench
from harness.errors import BenchError
from harness.records.layout import UNKNOWN, Outcome, Phase, Records
from harness.store import RunFolder, columns
from harness.summary import summarise_folder
from tests.bench.audit.gates import change_json, mend, place
from tests.bench.chaos.page import Table
from tests.bench.command import options

Alter = Callable[[Path, random.Random], object]
CONDITIONS = "an edited condition"


def _cell(run: Path, draw: random.Random) -> Path:
    return draw.choice(sorted(run.glob("cells/*")))


def _records(change: Callable[[Records, int], object]) -> Alter:
    """`change` gets the records of a cell, and the row of a measured request that was answered."""

    def alter(run: Path, draw: random.Random) -> None:
        cell, folder = _cell(run, draw), RunFolder(run)
        records, _ = folder.read_cell(cell.name)
        rows = records.requests
        answered = (rows["phase"] == Phase.MEASURE) & (rows["outcome"] == Outcome.OK)
        change(records, int(draw.choice(answered.nonzero()[0])))
        columns.write_records(records, folder.files, f"cells/{cell.name}")

    return alter


def _earlier(records: Records, row: int) -> None:
    for name in ("first_text_ns", "last_text_ns", "end_ns"):
        records.requests[name][row] -= 30_000_000


def _fewer_tokens(records: Records, row: int) -> None:
    if records.requests["output_tokens"][row] != UNKNOWN:
        records.requests["output_tokens"][row] -= 1


def _moved_event(records: Records, row: int) -> None:
    events = records.events["seq"] == records.requests["seq"][row]
    records.events["stamp_ns"][events.nonzero()[0][3]] += 5_000_000


def _not_answered(records: Records, row: int) -> None:
    records.requests["outcome"][row] = Outcome.CANCELLED


def _without_cell(run: Path, draw: random.Random) -> None:
    shutil.rmtree(_cell(run, draw))


def _without_repeat(run: Path, draw: random.Random) -> None:
    repeat = draw.randrange(3)
    for cell in run.glob(f"cells/*-r{repeat}"):
        shutil.rmtree(cell)


def _unplanned(run: Path, draw: random.Random) -> None:
    """A cell is taken out of the plan and of the manifest's order as well; the hash of the plan is mended."""
    cell = _cell(run, draw)
    shutil.rmtree(cell)

    def without(plan: Any) -> None:
        for block in plan["blocks"]:
            block["cells"] = [one for one in block["cells"] if one["cell"] != cell.name]

    change_json(run / "plan.json", without)
    sha256 = RunFolder(run).files.sha256("plan.json")

    def about(manifest: Any) -> None:
        manifest["order"].remove(cell.name)
        manifest["plan_sha256"] = sha256

    change_json(run / "manifest.json", about)


def _verdict(run: Path, draw: random.Random) -> None:
    def change(summary: Any) -> None:
        one = draw.choice(summary["comparison"])
        others = {"faster", "slower", "same", "not enough runs"} - {one["verdict"]}
        one["verdict"] = draw.choice(sorted(others))

    change_json(run / "summary.json", change)


def _rank(run: Path, draw: random.Random) -> None:
    def change(summary: Any) -> None:
        one = draw.choice(summary["rankings"])
        one["line"] = one["line"].replace("≈", ">").replace("?", ">>") + " "

    change_json(run / "summary.json", change)


def _figure(run: Path, draw: random.Random) -> None:
    def change(summary: Any) -> None:
        cell = draw.choice(summary["cells"])
        name = draw.choice(("ttft_ms", "tpot_ms", "e2e_ms", "itl_ms"))
        cell[name]["p50"] *= draw.choice((0.7, 0.95, 0.999))

    change_json(run / "summary.json", change)


def _validity(run: Path, draw: random.Random) -> None:
    def change(summary: Any) -> None:
        cell = draw.choice(summary["cells"])
        cell["validity"] = {"verdict": "INVALID" if cell["validity"]["verdict"] == "VALID" else "VALID"} | {
            "reasons": []
        }

    change_json(run / "summary.json", change)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        if isinstance(below, str | int | float):
            yield (*path, key)
        else:
            yield from _leaves(below, (*path, key))


def _edit(document: Any, draw: random.Random) -> None:
    """One value of a document: a number is doubled, a text gets another end."""
    skipped = ("schema", "run", "state", "cell", "kind")
    path = draw.choice([path for path in _leaves(document) if path[-1] not in skipped])
    for key in path[:-1]:
        document = document[key]
    value = document[path[-1]]
    if isinstance(value, bool):
        document[path[-1]] = not value
    else:
        document[path[-1]] = f"{value}x" if isinstance(value, str) else 2 * value + 1


def _condition(run: Path, draw: random.Random) -> None:
    name = draw.choice([run / "manifest.json", _cell(run, draw) / "cell.json"])
    change_json(name, lambda document: _edit(document, draw))


KINDS: Mapping[str, Alter] = MappingProxyType(
    {
        "a latency in the records, 30 ms less": _records(_earlier),
        "a token less in the records": _records(_fewer_tokens),
        "an event moved by 5 ms": _records(_moved_event),
        "an answer called cancelled": _records(_not_answered),
        "a cell removed": _without_cell,
        "a repeat removed": _without_repeat,
        "a cell removed from plan and manifest as well": _unplanned,
        "a verdict in summary.json": _verdict,
        "a rank line in summary.json": _rank,
        "a figure in summary.json": _figure,
        "a validity in summary.json": _validity,
        CONDITIONS: _condition,
    }
)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    tried: Counter[str] = Counter()
    caught: dict[str, Counter[str]] = {name: Counter() for name in ("here", "elsewhere", "again")}
    with tempfile.TemporaryDirectory(prefix="alterations-") as name:
        room = Path(name)
        with place(room) as here:
            run = here.run("run", "--aa", "--no-agreement", "--set", "load.requests=40", requests=40)
        known, nowhere = room / "cache", room / "nowhere"
        # The record is of the folder's own name.
        original = run.rename(room / json.loads((run / "manifest.json").read_bytes())["run"])
        assert not _notices(original, known), "the run itself does not verify"
        for number in range(arguments.number):
            kind = list(KINDS)[number % len(KINDS)]
            altered = room / "altered" / original.name
            shutil.copytree(original, altered)
            KINDS[kind](altered, draw)
            mend(altered)
            tried[kind] += 1
            caught["here"][kind] += _notices(altered, known)
            caught["elsewhere"][kind] += _notices(altered, nowhere)
            caught["again"][kind] += not _agrees(altered) or _notices(altered, nowhere)
            shutil.rmtree(room / "altered")
            print(f"{number + 1}: {kind}", file=sys.stderr, flush=True)
    columns_ = (
        "alteration",
        "tried",
        "noticed where it was measured",
        "elsewhere",
        "elsewhere, all made again",
    )
    rows = {kind: [str(tried[kind]), *(str(count[kind]) for count in caught.values())] for kind in tried}
    Table("alterations", columns_, tuple(KINDS), summed=True).publish(rows, arguments)
    missed = [kind for kind in tried if caught["here"][kind] < tried[kind]]
    missed += [kind for kind in tried if kind != CONDITIONS and caught["elsewhere"][kind] < tried[kind]]
    return 1 if missed else 0


def _notices(run: Path, cache: Path) -> bool:
    """Whether `bench verify` says anything but identical, with what is known in this cache."""
    os.environ["BENCH_CACHE"] = str(cache)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return bench(["verify", str(run)]) != 0


def _agrees(run: Path) -> bool:
    """Makes the summary of the altered records, as `bench report` does, and mends every checksum.

    False where bench refuses to read them.
    """
    folder = RunFolder(run)
    try:
        folder.write_summary(summarise_folder(folder))
    except BenchError:
        return False
    mend(run)
    return True


if __name__ == "__main__":
    sys.exit(main())
