"""Runs as tables for SQL: views `cells`, `requests`, `events` and `telemetry`, each with `run` and `cell`."""

import resource
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from harness.errors import SpecError
from harness.model import METRICS
from harness.model.json_path import value_at
from harness.store import columns, parquet, samples, seal
from harness.store.folder import RunFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Column of `cells`: its SQL type, and where its value stands in a cell of summary.json.
_CELLS = {
    "label": ("varchar", "label"),
    "backend": ("varchar", "backend"),
    "engine_version": ("varchar", "engine_version"),
    "simulated": ("boolean", "simulated"),
    "load_kind": ("varchar", "load.kind"),
    "load_value": ("double", "load.value"),
    "repeat": ("integer", "repeat"),
    "started_unix_ns": ("bigint", "started_unix_ns"),
    "validity": ("varchar", "validity.verdict"),
    "requests_ok": ("bigint", "requests.ok"),
    "requests_failed": ("bigint", "requests.failed"),
    "window_s": ("double", "window_s"),
    **{path.replace(".", "_"): ("double", path) for metric in METRICS.values() for path in metric.paths},
    "limiter": ("varchar", "limiter.code"),
}
_MEMORY = "2GB"  # of a query
_OF_RUN = {"run": "varchar", "cell": "varchar"}
# Files written before 0.2 have no start_ns: as record.response_start has it.
_WITH_START = """select r.* replace (coalesce(r.start_ns, case
    when c.load_kind = 'concurrency' then coalesce(r.sent_ns, r.intended_ns)
    when c.load_kind is not null then r.intended_ns end) as start_ns)"""
_FILES = {
    "requests": columns.REQUEST_COLUMNS,
    "events": columns.EVENT_COLUMNS,
    "telemetry": samples.COLUMNS,
}


@dataclass(frozen=True, slots=True)
class _File:
    """Of a cell, open: DuckDB reads it at `place`."""

    run: str
    cell: str
    view: str
    place: str


@contextmanager
def database(folders: Sequence[RunFolder]) -> Iterator[tuple["DuckDBPyConnection", list[SpecError]]]:
    """Open while the block lasts, and what is wrong with the runs that it leaves out.

    It reads the files of these runs and nothing else, and has no way to write.
    """
    kept: list[_File] = []
    faults: list[SpecError] = []
    with ExitStack() as stack, parquet.interruptible():
        _allow_descriptors()
        found = [(folder, _opened(folder, stack, faults)) for folder in folders]
        places = [file.place for _folder, files in found for file in files]
        connected = stack.enter_context(parquet.connection(places, _MEMORY))
        types = _OF_RUN | {name: kind for name, (kind, _place) in _CELLS.items()}
        connected.execute(f"create table cells ({', '.join(f'{n} {kind}' for n, kind in types.items())})")
        connected.execute("create table files (place varchar, run varchar, cell varchar)")
        for folder, files in found:
            try:
                _add(connected, folder, files)
                kept += files
            except SpecError as error:
                faults.append(error)
        for view in _FILES:
            connected.execute(f"create view {view} as {_view(view, kept)}")
        yield connected, faults


def _allow_descriptors() -> None:
    """As many as the system lets us have: each file of a run takes one."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _opened(folder: RunFolder, stack: ExitStack, faults: list[SpecError]) -> list[_File]:
    """The records and the telemetry of its complete cells."""
    files = []
    try:
        for cell in folder.cells():
            for view in _FILES:
                name = f"cells/{cell}/{view}.parquet"
                if view == "telemetry" and not folder.has(name):
                    continue
                descriptor = stack.enter_context(folder.files.opened(name))
                files.append(_File(folder.run_id, cell, view, parquet.by_descriptor(descriptor)))
    except SpecError as error:
        faults.append(error)
    except OSError as error:
        faults.append(SpecError(f"cannot be read: {error}", where=str(folder.path)))
    return files


def _add(connected: "DuckDBPyConnection", folder: RunFolder, files: Sequence[_File]) -> None:
    """Its cells. SpecError where a file cannot be opened; of a damaged page only a query knows."""
    cells = _cells(folder)
    for file in files:
        seal.check(folder.files, f"cells/{file.cell}/{file.view}.parquet")
        try:
            parquet.opened(connected, file.place).check_size()
        except (duckdb.Error, ValueError) as error:
            where = f"{folder.path}/cells/{file.cell}/{file.view}.parquet"
            raise SpecError(f"cannot be read: {parquet.first_line(error)}", where=where) from None
        connected.execute("insert into files values (?, ?, ?)", [file.place, file.run, file.cell])
    for view in _FILES:
        try:
            connected.execute(f"select * from ({_view(view, files)}) limit 0")
        except duckdb.Error as error:
            raise SpecError(
                f"{view} cannot be read: {parquet.first_line(error)}", where=str(folder.path)
            ) from None
    for cell in cells:
        connected.execute(f"insert into cells values ({', '.join('?' * len(cell))})", cell)


def _cells(folder: RunFolder) -> list[list[Any]]:
    return [
        [folder.run_id, cell.cell, *(value_at(cell, place) for _type, place in _CELLS.values())]
        for cell in folder.read_summary().cells
    ]


def _view(view: str, files: Sequence[_File]) -> str:
    rows = _rows(view, [file.place for file in files if file.view == view])
    return (
        rows if view != "requests" else f"{_WITH_START} from ({rows}) r left join cells c using (run, cell)"
    )


def _rows(view: str, places: Sequence[str]) -> str:
    """SQL. Columns that old files do not have are null, whatever the other files are."""
    types = _OF_RUN | _FILES[view]
    empty = ", ".join(f"null::{kind} as {name}" for name, kind in types.items())
    if not places:
        return f"select {empty} where false"
    return (
        f"select {empty} where false union all by name "
        f"select files.run, files.cell, rows.* exclude (filename) "
        f"from read_parquet({parquet.literals(places)}, union_by_name = true, filename = true) rows "
        f"join files on files.place = rows.filename"
    )
