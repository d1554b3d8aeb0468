"""Runs as tables for SQL: views `cells`, `requests`, `events` and `telemetry`, each with `run` and `cell`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
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
_PATH = "parse_path(filename, 'forward_slash')"
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


@contextmanager
def database(folders: Sequence[RunFolder]) -> Iterator[tuple["DuckDBPyConnection", list[SpecError]]]:
    """Open while the block lasts, and what is wrong with the runs that it leaves out.

    It reads the files of these runs and nothing else, and has no way to write.
    """
    folders = [RunFolder(folder.path.resolve()) for folder in folders]
    files = [path for folder in folders for view in _FILES for path in _paths(folder, view)]
    kept, faults = [], []
    with parquet.interruptible(), parquet.connection(files=files) as connected:
        types = _OF_RUN | {name: kind for name, (kind, _place) in _CELLS.items()}
        connected.execute(f"create table cells ({', '.join(f'{n} {kind}' for n, kind in types.items())})")
        for folder in folders:
            try:
                _add(connected, folder)
                kept.append(folder)
            except SpecError as error:
                faults.append(error)
        for view in _FILES:
            connected.execute(f"create view {view} as {_view(view, kept)}")
        yield connected, faults


def _add(connected: "DuckDBPyConnection", folder: RunFolder) -> None:
    """Its cells. SpecError where a file cannot be opened; of a damaged page only a query knows."""
    cells = _cells(folder)
    for path in (path for view in _FILES for path in _paths(folder, view)):
        seal.check(folder.path, path.relative_to(folder.path).as_posix())
    for view in _FILES:
        try:
            connected.execute(f"select * from ({_view(view, [folder])}) limit 0")
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


def _paths(folder: RunFolder, view: str) -> list[Path]:
    paths = [folder.cell_path(cell) / f"{view}.parquet" for cell in folder.cells()]
    return [path for path in paths if view != "telemetry" or path.exists()]


def _view(view: str, folders: Sequence[RunFolder]) -> str:
    rows = _rows(view, folders)
    return (
        rows if view != "requests" else f"{_WITH_START} from ({rows}) r left join cells c using (run, cell)"
    )


def _rows(view: str, folders: Sequence[RunFolder]) -> str:
    """SQL. Columns that old files do not have are null, whatever the other files are."""
    types = _OF_RUN | _FILES[view]
    empty = ", ".join(f"null::{kind} as {name}" for name, kind in types.items())
    paths = [path for folder in folders for path in _paths(folder, view)]
    if not paths:
        return f"select {empty} where false"
    return (
        f"select {empty} where false union all by name "
        f"select {_PATH}[-4] as run, {_PATH}[-2] as cell, * exclude (filename) "
        f"from read_parquet({parquet.literals(paths)}, union_by_name = true, filename = true)"
    )
