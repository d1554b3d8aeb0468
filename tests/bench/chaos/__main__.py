"""What `make chaos` tries.

    python -m tests.bench.chaos parsers [--count 100000] [--seed 0] [--part 1/4]
    python -m tests.bench.chaos processes
    python -m tests.bench.chaos moments [--count 200] [--seed 0] [--log FILE]
    python -m tests.bench.chaos flips [--count 50] [--seed 0]
    python -m tests.bench.chaos folders [--count 1000] [--seed 0]
    python -m tests.bench.chaos writes
    python -m tests.bench.chaos places
    python -m tests.bench.chaos freezes

parsers: foreign data of drawn shapes through every parser. processes: processes of a run struck by signals at
every stage. moments: the same at any time of a run or a night. flips: flipped bits in every file of a run
folder. folders: run folders that a stranger made, through every command. writes: a full disk at each kind of
write of a run. places: folders, streams, locales and limits that lack something. freezes: a machine, a load
generator or an engine that stands still for a while.

Each takes [--seconds 1200] [--only NAME] and prints a Markdown table; with --page it goes into
tests/bench/tried.md, where what was not tried now stays. Exits 1 where anything failed: a traceback, with the
case that brings it, or a broken promise.
"""

import sys
from pathlib import Path

from tests.bench.chaos.flips import flips
from tests.bench.chaos.folders import folders
from tests.bench.chaos.freezes import freezes
from tests.bench.chaos.moments import moments
from tests.bench.chaos.parsers import parsers, part
from tests.bench.chaos.places import places
from tests.bench.chaos.processes import processes
from tests.bench.chaos.writes import writes
from tests.bench.command import options

_COUNTS = {parsers: 100_000, flips: 50, folders: 1000, moments: 200}


def main() -> int:
    parser = options(__doc__)
    kinds = parser.add_subparsers(required=True)
    for work in (parsers, processes, moments, flips, folders, writes, places, freezes):
        one = kinds.add_parser(work.__name__)
        one.set_defaults(work=work)
        one.add_argument("--seconds", type=float, default=1200)
        one.add_argument("--only", default="", metavar="NAME")
        one.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
        if work in _COUNTS:
            one.add_argument("--count", type=int, default=_COUNTS[work])
            one.add_argument("--seed", type=int, default=0)
        if work is moments:
            one.add_argument("--log", type=Path, metavar="FILE", help="of outcomes: go on where it ends")
        if work is parsers:
            one.add_argument(
                "--part", type=part, default=(1, 1), metavar="K/N", help="every Nth parser from K on"
            )
    arguments = parser.parse_args()
    return int(arguments.work(arguments))


if __name__ == "__main__":
    sys.exit(main())
