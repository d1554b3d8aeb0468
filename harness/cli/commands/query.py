"""`bench query`: SQL over what runs have recorded."""

import argparse
import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness.cli.display.output import print_note
from harness.cli.display.result import Result, put
from harness.cli.flags import options
from harness.cli.typed import Flags
from harness.errors import SpecError
from harness.model.numbers import counted
from harness.untrusted import inert

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from harness.store import RunFolder

EPILOG = """Views, each with the column `run`, and all but estimates and verdicts with `cell`:
  cells      one row per cell: scenario, model, weights, hardware, load, and
             the figures of summary.json; times in ms
  estimates  one row per backend, load and metric: over the repeats, with its
             95% interval; in the unit of the metric
  verdicts   one row per pair of backends, load and metric; the verdict is
             about `a`, a ratio is a / b
  requests   one row per request; times in ns since the cell's clock started;
             ttft_ms, e2e_ms and tpot_ms of those that statistics count
  events     one row per SSE event, two where it has two kinds of text; times
             in ns since the cell's clock started
  telemetry  one row per sample of a series
  asked      one row per request of the workload: kind, session, turn, tokens;
             the same `seq` as in requests

Unknown is null. In CSV a text that begins like a formula (with = + - @, a tab
or a line break) gets an apostrophe before it; JSON has it as it is.
To list the columns of a view: `bench query "describe requests"`

Exit codes: 0 success; 2 an error in the SQL, or no run to read."""

TABLE_ROWS = 200
TABLE_WORD = 40  # characters of a value
_BATCH = 10_000  # rows
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # the last four are the same signs in full width
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)

Row = Sequence[Any]


@dataclass(frozen=True)
class Options(Flags):
    sql: str
    out: Path
    run: tuple[str, ...] | None
    csv: bool
    json: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help='one SELECT in DuckDB\'s SQL: "select * from cells"')
    options.add_runs_folder(parser)
    options.add_former_results_flag(parser)
    parser.add_argument(
        "--run", action="append", metavar="RUN", help="run to read (repeatable; default: all in DIR)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print CSV with a header; null is empty")
    options.add_json(form, "print JSON, one object per row")


def main(given: Options) -> Result:
    """Prints rows as they come, however many: they are never one document in memory."""
    import duckdb

    from harness.report.samples import tpot_ms_by_seq
    from harness.store import parquet
    from harness.store.database import ASKED, RECORDS, TABLES, database

    folders = _folders(given)
    with database(folders, tpot_ms_by_seq, _views_in(given.sql)) as (connected, faults):
        for fault in faults:
            if given.run:
                raise fault
            print_note(f"warning: run left out: {fault}")
        if len(faults) == len(folders):
            raise SpecError("no run can be read", where=str(given.out))
        try:
            names, rows = selected(connected, given.sql)
            if given.csv:
                write_csv(names, rows, sys.stdout)
            elif given.json:
                put(Result(_json_rows(names, rows)))
            else:
                put(Result(lambda screen: _table(names, rows, screen.rows)))
        except duckdb.Error as error:
            parquet.check_memory(error)
            views = "|".join((*TABLES, *RECORDS, ASKED))
            read = re.search(rf"\b(?:from|join)\s+({views})\b", given.sql, re.IGNORECASE)
            view = read[1] if read else "requests"
            raise SpecError(
                " ".join(str(error).split("\n\nLINE ")[0].split()),  # without DuckDB's drawing of the place
                where="SQL",
                hint=f'`bench query "describe {view}"` lists columns, `bench query --help` the views',
            ) from None
    return Result()


def _folders(given: Options) -> list["RunFolder"]:
    from harness.store import each_once, open_run, stored_runs

    opened = [open_run(name, given.out) for name in given.run] if given.run else stored_runs(given.out)
    if not opened:
        raise SpecError(
            "no runs here",
            where=str(given.out),
            hint="give the folder of the runs with --out",
        )
    return each_once(opened)


def _views_in(sql: str) -> tuple[str, ...]:
    """The views of records and requests that SQL may read: those that it names, or all where it names none.

    To open and check their files takes most of the time of a query.
    """
    from harness.store.database import ASKED, RECORDS, TABLES

    named = sql.lower()
    if not any(view in named for view in (*TABLES, *RECORDS, ASKED)):
        return RECORDS
    # Their tpot_ms is computed of the events.
    return tuple(
        view for view in (*RECORDS, ASKED) if view in named or (view == "events" and "requests" in named)
    )


def selected(connected: "DuckDBPyConnection", sql: str) -> tuple[list[str], Iterator[Row]]:
    """Column names and rows of one statement that only reads."""
    import duckdb

    statements = connected.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SpecError("must be one SELECT statement", where="SQL", hint="runs can be read, not changed")
    result = connected.execute(statements[0])
    batches = iter(lambda: result.fetchmany(_BATCH), list[Row]())
    return [column[0] for column in result.description or ()], chain.from_iterable(batches)


def _table(names: Sequence[str], rows: Iterator[Row], width: int) -> Iterator[str]:
    import pandas as pd

    shown = [[_word(value) for value in row] for row in islice(rows, TABLE_ROWS)]
    names = [inert(name) for name in names]
    frame = pd.DataFrame(shown, columns=pd.Index(names), dtype=object)
    yield frame.to_string(index=False, line_width=width) if shown else f"{'  '.join(names)}\n(no rows)"
    left = sum(1 for _row in rows)
    if left:
        print_note(f"{counted(left, 'more row')}: --csv or --json prints all")


def _word(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float | Decimal):
        return f"{value:.4g}" if -1000 < value < 1000 else f"{value:.0f}"
    text = inert(" ".join(str(value).split()))
    return text if len(text) <= TABLE_WORD else f"{text[: TABLE_WORD - 1]}…"


def write_csv(names: Sequence[str], rows: Iterator[Row], stream: TextIO) -> None:
    """A text that a spreadsheet would take for a formula gets an apostrophe in front;
    numbers stay numbers.
    """
    writer = csv.writer(_Lines(stream))
    writer.writerow(map(_cell, names))
    writer.writerows(map(_cell, row) for row in rows)


class _Lines:
    """Ends rows with a newline. Python quotes a lone carriage return only if rows end with one too."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: str) -> None:
        self._stream.write(row.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(_FORMULA):
        return value
    return value if _NUMBER.fullmatch(value) else f"'{value}"


def _json_rows(names: Sequence[str], rows: Iterator[Row]) -> Iterator[str]:
    """The lines of one array, a row each."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        what = f"two columns have the name {twice[0]}: an object of JSON has each name once"
        raise SpecError(what, where="SQL", hint=f"select … as another_{twice[0]}, or print --csv")
    line = ""
    for row in rows:
        yield f"{line}," if line else "["
        line = json_row(names, row)
    yield from (line, "]") if line else ("[]",)


def json_row(names: Sequence[str], row: Row) -> str:
    values = {name: _as_json(value) for name, value in zip(names, row, strict=True)}
    return json.dumps(values, ensure_ascii=False, allow_nan=False, default=str)


def _as_json(value: Any) -> Any:
    """The value, and what it holds, if JSON has a form for it. A decimal that no float is becomes text."""
    if isinstance(value, dict):
        return {str(_as_json(key)): _as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, Decimal):
        number = float(value)
        value = number if Decimal(repr(number)) == value else str(value)
    return None if isinstance(value, float) and not isfinite(value) else value
