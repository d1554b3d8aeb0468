"""Mutation testing of what figures and words are made of: metrics, stats, validity, compare.

    python -m tests.bench.mutants [--count 500] [--seed 0] [--only PART-OF-A-NAME] [--page]

Draws mutants (mutmut: one operator, constant or argument changed), runs for each the unit tests that reach
it, and prints a Markdown table with how many a test noticed, then the name of each that none did: `mutmut
show NAME` shows it. A mutant that runs into the time limit counts as noticed, as in mutmut; one that no test
reaches does not. Works in the folder `mutants`, where what was tried stays known until the code changes.
"""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.bench.chaos.page import Table
from tests.bench.command import options

_MUTMUT = Path(sys.executable).with_name("mutmut")
_NOTICED = {"killed", "timeout", "segfault", "suspicious"}
_ROOMS = ("verdicts", "metrics", "stats", "validity")
_NAMES_PER_RUN = 1000  # of a command line


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="NAME", help="of mutants with this in their names")
    parser.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
    arguments = parser.parse_args()
    if not Path("mutants").exists():
        _run("harness.stats.binomial.*__mutmut_1")  # makes the mutants, so that their names are known
    names = sorted(name for name in _results() if arguments.only in name)
    drawn = random.Random(arguments.seed).sample(names, min(arguments.count, len(names)))
    for start in range(0, len(drawn), _NAMES_PER_RUN):
        _run(*drawn[start : start + _NAMES_PER_RUN])
    results = _results()
    rows, missed = {}, []
    for room in _ROOMS:
        here = [name for name in drawn if name.split(".")[1] == room]
        counts = Counter(results[name] for name in here)
        noticed = sum(counts[status] for status in _NOTICED)
        missed += [f"{results[name]}: {name}" for name in here if results[name] not in _NOTICED]
        if here:
            rows[room] = [
                *(f"{count:,}" for count in (sum(name.split(".")[1] == room for name in names), len(here))),
                *(f"{count:,}" for count in (noticed, counts["survived"], counts["no tests"])),
            ]
    columns = ("room", "mutants", "tried", "noticed", "survived", "reached by no test")
    Table("mutants", columns, _ROOMS, summed=True).publish(rows, arguments)
    print(f"\n{1 - len(missed) / len(drawn):.1%} of {len(drawn):,} were noticed.", *missed, sep="\n")
    return 0


def _run(*names: str) -> None:
    done = subprocess.run([_MUTMUT, "run", "--max-children", "2", *names], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"mutmut ended with {done.returncode}: {done.stdout[-2000:]}")


def _results() -> dict[str, str]:
    """Of every mutant, by name; `not checked` where it was not tried."""
    told = subprocess.run([_MUTMUT, "results", "--all", "true"], check=True, capture_output=True, text=True)
    lines = (line.strip().rpartition(": ") for line in told.stdout.splitlines() if line.strip())
    return {name: status for name, _, status in lines}


if __name__ == "__main__":
    sys.exit(main())
