"""Runs as tables for SQL: `cells`, `estimates`, `verdicts`, `requests`, `events`, `telemetry` and `asked`,
each with its `run`.
"""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import duckdb
import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from harness.errors import SpecError
from harness.host import descriptors
from harness.model import Record
from harness.records.request_table import NUMBERS, RequestTable
from harness.store import columns, parquet, samples, seal, tables
from harness.store.derived import computed_once
from harness.store.folder import RunFolder, names_apart

_MEMORY = "2GB"  # of a query
_OF_CELL = {"run": "varchar", "cell": "varchar"}
# Those that are made of summary.json.
TABLES: Mapping[str, Mapping[str, str]] = {
    "cells": tables.CELLS,
    "estimates": tables.ESTIMATES,
    "verdicts": tables.VERDICTS,
}
_ROWS_PER_INSERT = 2_000  # each statement takes 10 ms, whatever it inserts
# Files written before 0.2 have no start_ns: as record.response_start has it.
_WITH_START = """select r.* replace (coalesce(r.start_ns, case
    when c.load_kind = 'concurrency' then coalesce(r.sent_ns, r.intended_ns)
    when c.load_kind is not null then r.intended_ns end) as start_ns)"""
# The values that latencies of summary.json are made of: of measured requests that were answered.
_COUNTS = "phase = 'measure' and outcome = 'ok'"
_LATENCIES = f"""select *, case when {_COUNTS} then (first_text_ns - start_ns) / 1e6 end as ttft_ms,
    case when {_COUNTS} then (last_text_ns - start_ns) / 1e6 end as e2e_ms,
    case when {_COUNTS} then nullif(tpot_ms_of(run, cell, seq), 'nan') end as tpot_ms"""
_FILES: Mapping[str, Mapping[str, str]] = {
    "requests": columns.REQUEST_COLUMNS,
    "events": columns.EVENT_COLUMNS,
    "telemetry": samples.COLUMNS,
}
RECORDS = tuple(_FILES)  # the views that are made of the Parquet files of cells
ASKED = "asked"  # what each request asked for; its files are read whole, and only if a query needs them
_ASKED = tuple(name for name in NUMBERS if name != "expected")  # a position in another list
_ASKED_COLUMNS: Mapping[str, str] = {
    **_OF_CELL,
    "seq": "integer",
    "kind": "varchar",
    **dict.fromkeys(_ASKED, "bigint"),
}
_INSERT_ASKED = (
    f"insert into {ASKED} select ?, ?, unnest(range(?)), nullif(unnest(?), '')"
    + ", nullif(unnest(?), -1)" * len(_ASKED)
)


TpotMs = Callable[[RunFolder, str], NDArray[np.float64]]


_MADE_OF = ("summary.json", "manifest.json", "checksums.json")  # what TABLES are made of


class _Rows(Record, frozen=True, kw_only=True):
    """The rows of a run by table, under the name of its folder, which may be numbered among others."""

    tables: dict[str, list[tables.Row]]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a cell, which DuckDB reads at `place`."""

    run: str
    cell: str
    view: str
    place: str


@contextmanager
def database(
    folders: Sequence[RunFolder],
    tpot_ms: TpotMs,
    views: Sequence[str] = RECORDS,
    writes: Sequence[str] = (),
) -> Iterator[tuple[DuckDBPyConnection, list[SpecError]]]:
    """Yields the connection, and what is wrong with the runs that it leaves out.

    It reads the files of these runs and nothing else. `views`: those of RECORDS that are there, and ASKED if
    it has rows; no file of another one is opened. `writes`: places of open files, which alone it can write.
    `tpot_ms`: the values of a cell's requests by `seq`, NaN for none; asked for if a query reads that column.
    """
    kept: list[_File] = []
    faults: list[SpecError] = []
    records = [view for view in views if view in RECORDS]
    with ExitStack() as stack, parquet.interruptible():
        names = names_apart(folder.run_id for folder in folders)
        runs: list[tuple[RunFolder, str, list[str]]] = []
        for folder, run in zip(folders, names, strict=True):
            try:
                runs.append((folder, run, _cells(folder, run, whole=bool(records))))
            except SpecError as error:
                faults.append(error)
        count = len(records) * sum(len(cells) for *_run, cells in runs)
        fit = count + descriptors.SPARE <= descriptors.allow_all()
        found: list[tuple[RunFolder, str, list[_File]]] = []
        for folder, run, cells in runs:
            try:
                found.append((folder, run, list(_opened(folder, run, cells, records, stack, fit=fit))))
            except SpecError as error:
                faults.append(error)
        places = [file.place for *_run, files in found for file in files]
        connected = stack.enter_context(parquet.connection([*places, *writes], _MEMORY))
        for table, types in {**TABLES, ASKED: _ASKED_COLUMNS}.items():
            listed = ", ".join(f"{name} {kind}" for name, kind in types.items())
            connected.execute(f"create table {table} ({listed})")
        connected.execute("create table files (place varchar, run varchar, cell varchar)")
        _add_tpot(connected, {run: folder for folder, run, _files in found}, tpot_ms)
        rows: dict[str, list[tables.Row]] = {table: [] for table in TABLES}
        for folder, run, files in found:
            try:
                of_cells = list(_asked(folder, run)) if ASKED in views else []
                of_run = _added(connected, folder, run, records, files)
                for values in of_cells:
                    connected.execute(_INSERT_ASKED, values)
                kept += files
            except SpecError as error:
                faults.append(error)
                continue
            for table, more in of_run.items():
                rows[table] += more
                if len(rows[table]) >= _ROWS_PER_INSERT:
                    _insert(connected, table, rows[table])
                    rows[table] = []
        for table, left in rows.items():
            _insert(connected, table, left)
        for view in records:
            connected.execute(f"create view {view} as {_view(view, kept)}")
        yield connected, faults


def _add_tpot(connected: DuckDBPyConnection, folders: Mapping[str, RunFolder], tpot_ms: TpotMs) -> None:
    """A function for SQL: it takes events to compute, which no query waits for that leaves the column out."""

    @cache
    def values(run: str, cell: str) -> NDArray[np.float64]:
        return tpot_ms(folders[run], cell)

    def of_request(run: str, cell: str, seq: int) -> float:
        return float(values(run, cell)[seq])

    connected.create_function("tpot_ms_of", of_request, ["varchar", "varchar", "integer"], "double")


def _cells(folder: RunFolder, run: str, *, whole: bool) -> list[str]:
    """Names of its cells; `whole`: of those that are complete, which takes a look into the folder of each.

    Raises SpecError where they cannot be listed, or a name is no UTF-8.
    """
    try:
        cells = folder.cells() if whole else folder.files.children("cells")
        "".join((run, *cells)).encode()
    except UnicodeEncodeError:
        where = ascii(str(folder.path))
        raise SpecError("has a name that is not UTF-8", where=where, hint="rename it") from None
    except OSError as error:
        raise _unread(error, folder, "cells") from None
    return cells


def _opened(
    folder: RunFolder,
    run: str,
    cells: Sequence[str],
    views: Sequence[str],
    stack: ExitStack,
    *,
    fit: bool,
) -> Iterator[_File]:
    """The files of its cells that these views are made of. Raises SpecError if one is not as written.

    `fit`: whether this process may hold them all, until the end of `stack`. Of others the names are found to
    lead through no link, and DuckDB then opens the files by name, a few at a time.
    """
    for cell in cells:
        for view in views:
            name = f"cells/{cell}/{view}.parquet"
            try:
                seal.check(folder.files, name)
                if view == "telemetry" and not folder.has(name):
                    continue
                full_path = f"{folder.path.resolve()}/{name}"
                held = fit or not parquet.is_name(full_path)
                with ExitStack() as once:
                    descriptor = (stack if held else once).enter_context(folder.files.opened(name))
            except OSError as error:
                raise _unread(error, folder, name) from None
            yield _File(run, cell, view, parquet.by_descriptor(descriptor) if held else full_path)


def _unread(error: OSError, folder: RunFolder, name: str) -> OSError | SpecError:
    if error.errno in (errno.EMFILE, errno.ENFILE):  # not a fault of the run
        return error
    return SpecError(f"cannot be read: {error.strerror}", where=f"{folder.path}/{name}")


def _added(
    connected: DuckDBPyConnection,
    folder: RunFolder,
    run: str,
    views: Sequence[str],
    files: Sequence[_File],
) -> dict[str, list[tables.Row]]:
    """Adds its files, and returns its rows of TABLES.

    Raises SpecError if a file cannot be opened; only a query finds a damaged page.
    """
    rows = computed_once(folder.files, _Rows, partial(_rows_of, folder), _MADE_OF)
    _check_sizes(connected, folder, files)
    columns = [file.place for file in files], run, [file.cell for file in files]
    connected.execute("insert into files select unnest(?), ?, unnest(?)", columns)
    for view in views:
        try:
            connected.execute(f"select * from ({_view(view, files)}) limit 0")
        except duckdb.Error as error:
            parquet.check_memory(error)
            raise SpecError(
                f"{view} cannot be read: {parquet.first_line(error)}", where=str(folder.path)
            ) from None
    return {table: [[run, *row[1:]] for row in found] for table, found in rows.tables.items()}


def _rows_of(folder: RunFolder) -> "_Rows":
    """Rows of TABLES, which a large summary takes a hundred times as long to give as the cache."""
    run, summary = folder.run_id, folder.read_summary()
    return _Rows(
        tables={
            "cells": list(tables.cell_rows(run, summary, folder.read_manifest())),
            "estimates": list(tables.estimate_rows(run, summary.estimates)),
            "verdicts": list(tables.verdict_rows(run, summary.comparison)),
        }
    )


def _check_sizes(connected: DuckDBPyConnection, folder: RunFolder, files: Sequence[_File]) -> None:
    """One query is for all files of a run: a query for each took half of the time of a short SELECT."""
    try:
        parquet.check_sizes(connected, [file.place for file in files])
        return
    except (duckdb.Error, ValueError):
        pass  # which file it was
    for file in files:
        try:
            parquet.check_sizes(connected, [file.place])
        except (duckdb.Error, ValueError) as error:
            parquet.check_memory(error)
            where = f"{folder.path}/cells/{file.cell}/{file.view}.parquet"
            raise SpecError(f"cannot be read: {parquet.first_line(error)}", where=where) from None


def _asked(folder: RunFolder, run: str) -> Iterator[list[Any]]:
    """Values of _INSERT_ASKED for each cell that kept its workload. Raises SpecError for a damaged file."""
    known: dict[str | None, RequestTable | None] = {None: None}  # cells of several backends share one
    for cell in folder.cells():
        facts = folder.read_facts(cell)
        file = facts.workload.file
        if file not in known:
            known[file] = folder.read_requested(facts)
        if table := known[file]:
            numbers = (table.numbers[name].tolist() for name in _ASKED)
            yield [run, cell, len(table), list(table.kinds), *numbers]


def _insert(connected: DuckDBPyConnection, table: str, rows: Sequence[tables.Row]) -> None:
    if rows:
        columns = ", ".join(f"unnest(?::{kind}[])" for kind in TABLES[table].values())
        connected.execute(f"insert into {table} select {columns}", list(zip(*rows, strict=True)))


def _view(view: str, files: Sequence[_File]) -> str:
    rows = _rows(view, [file.place for file in files if file.view == view])
    if view != "requests":
        return rows
    started = f"{_WITH_START} from ({rows}) r left join cells c using (run, cell)"
    return f"{_LATENCIES} from ({started})"


def _rows(view: str, places: Sequence[str]) -> str:
    """SQL for the rows. Columns that old files do not have are null, whatever the other files have."""
    types = {**_OF_CELL, **_FILES[view]}
    empty = ", ".join(f"null::{kind} as {name}" for name, kind in types.items())
    if not places:
        return f"select {empty} where false"
    return (
        f"select {empty} where false union all by name "
        f"select files.run, files.cell, rows.* exclude (filename) "
        f"from read_parquet({parquet.literals(places)}, union_by_name = true, filename = true, "
        f"hive_partitioning = false) rows "
        f"join files on files.place = rows.filename"
    )
