"""`bench export`: rows of runs as CSV or JSON lines, for other programs."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from harness.cli import options
from harness.cli.query import Row, json_row, selected, write_csv
from harness.errors import ExitCode, SpecError, StorageError

EPILOG = """cells: one row per cell, with the figures of summary.json; requests and events: one row each,
times in ns since the cell's clock started. The columns are those of `bench query`; null is empty in CSV.

Exit codes: 0 success; 2 no such run, or a damaged one; 3 the file cannot be written"""

_WHAT = ("cells", "requests", "events")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    options.add_runs(parser)
    options.add_runs_folder(parser)
    parser.add_argument("--what", choices=_WHAT, default="cells", help="rows to export (default: cells)")
    parser.add_argument(
        "--format", choices=tuple(_FORMATS), default="csv", help="format of the rows (default: csv)"
    )
    parser.add_argument(
        "--to", default="-", metavar="FILE", help="file to write; - is standard output (default: -)"
    )


def main(arguments: argparse.Namespace) -> int:
    import duckdb

    from harness.store import open_run
    from harness.store.database import database

    opened = [open_run(name, arguments.out) for name in arguments.runs]
    folders = list({folder.path.resolve(): folder for folder in opened}.values())
    with database(folders) as (connected, faults):
        if faults:
            raise faults[0]
        try:
            # No order by: rows come as they were written, however many, and are not held.
            names, rows = selected(connected, f"select * from {arguments.what}")
            with _opened(arguments.to) as stream:
                _FORMATS[arguments.format](names, rows, stream)
        except duckdb.Error as error:
            raise SpecError(str(error).strip(), where=arguments.what) from None
    return ExitCode.OK


@contextmanager
def _opened(to: str) -> Iterator[TextIO]:
    if to == "-":
        yield sys.stdout
        return
    try:
        with Path(to).open("w", encoding="utf-8", newline="") as stream:
            yield stream
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}", where=to) from None


def _write_jsonl(names: Sequence[str], rows: Iterator[Row], stream: TextIO) -> None:
    for row in rows:
        stream.write(json_row(names, row) + "\n")


_FORMATS: dict[str, Callable[[Sequence[str], Iterator[Row], TextIO], None]] = {
    "csv": write_csv,
    "jsonl": _write_jsonl,
}
