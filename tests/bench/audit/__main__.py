"""Whether figures, marks and verdicts are right, from the wire to the printed text.

    python -m tests.bench.audit [--only PART-OF-A-NAME] [--page]

Prints a Markdown table; with --page it goes into tests/bench/tried.md. Exits 1 where a row is wrong.
"""

import sys
import tempfile
import time
from contextlib import chdir
from pathlib import Path

from tests.bench.audit import gates, load, tokens
from tests.bench.audit.row import Row
from tests.bench.chaos.page import Table
from tests.bench.command import options

ROWS: tuple[Row, ...] = (*load.ROWS, *tokens.ROWS, *gates.ROWS)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--page", action="store_true", help="write the table into tests/bench/tried.md")
    arguments = parser.parse_args()
    shown, wrong = {}, 0
    for row in ROWS:
        if arguments.only not in row.name:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="audit-") as room, chdir(room):
            seen = row.try_it(Path(room))
        wrong += bool(seen.wrong)
        result = f"{seen.printed}{f' **wrong: {seen.wrong}**' if seen.wrong else ''}"
        shown[row.name] = [row.truth, result]
        print(f"{row.name} ({time.monotonic() - began:.0f} s): {result}", file=sys.stderr, flush=True)
    names = tuple(row.name for row in ROWS)
    Table("audit", ("what", "true", "printed"), names).publish(shown, arguments)
    return 1 if wrong or not shown else 0


if __name__ == "__main__":
    sys.exit(main())
