"""Mutation testing of the rooms that pyproject.toml names (`only_mutate` of mutmut).

    python -m tests.bench.mutants [--each 25] [--seed 0] [--only PART-OF-A-NAME] [--page]

Draws mutants of each room (mutmut: one operator, constant or argument changed), runs for each the unit tests
that reach it, and prints a Markdown table with how many a test noticed, then the name of each that none did:
`mutmut show NAME` shows it. What is drawn of a room does not depend on the other rooms. A mutant that runs
into the time limit counts as noticed, as in mutmut; one that no test reaches does not. Works in the folder
`mutants`, where what was tried stays known until the code changes.
"""

import random
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.bench.chaos.page import Table
from tests.bench.command import options

_MUTMUT = Path(sys.executable).with_name("mutmut")
_NOTICED = {"killed", "timeout", "segfault", "suspicious"}
_NAMES_PER_RUN = 1000  # of a command line


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--each", type=int, default=25, metavar="COUNT", help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="NAME", help="of mutants with this in their names")
    parser.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
    arguments = parser.parse_args()
    if not Path("mutants").exists():
        _run("harness.stats.binomial.*__mutmut_1")  # makes the mutants, so that their names are known
    names = sorted(name for name in _results() if arguments.only in name)
    by_room = {room: [name for name in names if name.split(".")[1] == room] for room in _rooms()}
    drawn = {
        room: random.Random(f"{arguments.seed} {room}").sample(known, min(arguments.each, len(known)))
        for room, known in by_room.items()
        if known
    }
    tried = [name for here in drawn.values() for name in here]
    for start in range(0, len(tried), _NAMES_PER_RUN):
        _run(*tried[start : start + _NAMES_PER_RUN])
    results = _results()
    rows, missed = {}, []
    for room, here in drawn.items():
        counts = Counter(results[name] for name in here)
        noticed = sum(counts[status] for status in _NOTICED)
        missed += [f"{results[name]}: {name}" for name in here if results[name] not in _NOTICED]
        shown = (len(by_room[room]), len(here), noticed, counts["survived"], counts["no tests"])
        rows[room] = [f"{count:,}" for count in shown]
    columns = ("room", "mutants", "tried", "noticed", "survived", "reached by no test")
    Table("mutants", columns, tuple(by_room), summed=True).publish(rows, arguments)
    print(f"\n{1 - len(missed) / len(tried):.1%} of {len(tried):,} were noticed.", *missed, sep="\n")
    return 0


def _rooms() -> list[str]:
    mutmut = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    return [Path(pattern).parts[1] for pattern in mutmut["only_mutate"]]


def _run(*names: str) -> None:
    done = subprocess.run([_MUTMUT, "run", "--max-children", "2", *names], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"mutmut ended with {done.returncode}: {done.stdout[-2000:]}")


def _results() -> dict[str, str]:
    """Of every mutant, by name; `not checked` where it was not tried."""
    done = subprocess.run([_MUTMUT, "results", "--all", "true"], check=True, capture_output=True, text=True)
    lines = (line.strip().rpartition(": ") for line in done.stdout.splitlines() if line.strip())
    return {name: status for name, _, status in lines}


if __name__ == "__main__":
    sys.exit(main())
