"""Columns to a Parquet file through DuckDB; back through pandas too, which takes a second to load."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.store.atomic import storage_error

if TYPE_CHECKING:
    import pandas as pd
    from duckdb import DuckDBPyConnection

_INTEGERS = {1: "tinyint", 2: "smallint", 4: "integer", 8: "bigint"}  # by bytes
_GROUP = 1_000_000  # rows: a row group as it is written, about as many as are read at a time
SCRATCH = ".scratch"  # suffix of the folder that a file is made in
_VECTOR = 2048  # rows: what DuckDB counts a chunk in


@dataclass(frozen=True, slots=True)
class Column:
    """To be written: an array, and what becomes of it: from its name to SQL."""

    values: NDArray[Any]
    sql: Callable[[str], str] = str
    pandas_type: str = ""  # where pandas.read_parquet would choose another


def integers(values: NDArray[Any], unknown: int) -> Column:
    """Null where `unknown`."""
    return Column(values, lambda name: f"nullif({name}, {unknown})", f"Int{8 * values.dtype.itemsize}")


def texts(values: Sequence[str]) -> Column:
    return Column(np.array(values, dtype=object))


def named(codes: NDArray[Any], names: Sequence[str]) -> Column:
    """Each code becomes the name at its position."""
    return Column(codes.astype(np.int32), lambda name: f"{literals(names)}[{name} + 1]::varchar")


def connection(directories: Sequence[Path] = (), files: Sequence[Path] = ()) -> "DuckDBPyConnection":
    """A database in memory that reaches nothing but `directories` and `files`: no network, no extensions."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "temp_directory": "",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_external_file_cache": "false",
    }
    connected = duckdb.connect(config=settings)
    connected.execute("set allowed_directories = $1", [[str(path) for path in directories]])
    connected.execute("set allowed_paths = $1", [[str(path) for path in files]])
    connected.execute("set enable_external_access = false")
    connected.execute("set lock_configuration = true")
    return connected


@contextmanager
def interruptible() -> Iterator[None]:
    """KeyboardInterrupt where a signal's handler raised it in a query: DuckDB makes a RuntimeError of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


@lru_cache(maxsize=1)
def _of_cells(folder: Path) -> "DuckDBPyConnection":
    """Kept for the next file: one takes 20 ms to open, and a run has three files for each cell."""
    return connection([folder])


@contextmanager
def _cursor(path: Path) -> Iterator["DuckDBPyConnection"]:
    """For a file of one cell; it reaches the other cells of its run too."""
    with interruptible(), _of_cells(path.parent.parent).cursor() as cursor:
        try:
            yield cursor
        except BaseException:
            _of_cells.cache_clear()  # some errors spoil the whole database
            raise


def write(path: Path, groups: Iterable[Mapping[str, Column]]) -> None:
    """Whole or not at all: one row group for each of `groups`, which are made one after the other.

    Raises StorageError when there is no room, or the folder cannot be written.
    """
    import duckdb

    # DuckDB cannot add to a file: each group is a file of its own first, and a last pass joins them.
    scratch = path.resolve().with_name(f".{path.name}{SCRATCH}")
    try:
        shutil.rmtree(scratch, ignore_errors=True)  # of a bench that was killed
        scratch.mkdir()
        with _cursor(path.resolve()) as connected:
            parts = [
                _part(connected, scratch / f"{index}.parquet", columns)
                for index, columns in enumerate(groups)
            ]
            whole = parts[0] if len(parts) == 1 else _joined(connected, parts, scratch / "whole.parquet")
        with whole.open("rb") as file:
            os.fsync(file.fileno())
        whole.replace(path)
    except (duckdb.Error, OSError, ValueError) as error:
        raise storage_error(_system_error(error), path) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _part(connected: "DuckDBPyConnection", path: Path, columns: Mapping[str, Column]) -> Path:
    connected.register("part", {name: column.values for name, column in columns.items()})
    wanted = ", ".join(f"{column.sql(name)} as {name}" for name, column in columns.items())
    options = _options(_for_pandas(columns))
    connected.execute(f"copy (select {wanted} from part) to {literal(str(path))} ({options})")
    connected.unregister("part")
    return path


def _joined(connected: "DuckDBPyConnection", parts: Sequence[Path], path: Path) -> Path:
    """In their order, with the note that each of them has."""
    note = connected.execute(
        "select decode(value) from parquet_kv_metadata($1) where key = 'pandas'::blob", [str(parts[0])]
    ).fetchall()[0][0]
    rows = f"select * from read_parquet({literals(parts)})"
    connected.execute(f"copy ({rows}) to {literal(str(path))} ({_options(note)})")
    return path


def _options(note: str) -> str:
    return (
        f"format parquet, compression snappy, row_group_size {_GROUP}, use_tmp_file false, "
        f"kv_metadata {{pandas: {literal(note)}}}"
    )


def _for_pandas(columns: Mapping[str, Column]) -> str:
    """Without it, pandas.read_parquet makes floats of integers with nulls, and nanoseconds lose digits."""
    about = [
        {
            "name": name,
            "field_name": name,
            "pandas_type": column.pandas_type.lower(),
            "numpy_type": column.pandas_type,
            "metadata": None,
        }
        for name, column in columns.items()
        if column.pandas_type
    ]
    whole = {"index_columns": [], "column_indexes": [], "columns": about, "pandas_version": None}
    return json.dumps(whole)


def _system_error(error: Exception) -> OSError | ValueError:
    """DuckDB has the system's words and no errno."""
    if isinstance(error, OSError | ValueError):
        return error
    known = [code for code in (errno.ENOSPC, errno.EDQUOT) if os.strerror(code) in str(error)]
    return OSError(known[0], os.strerror(known[0])) if known else OSError(first_line(error))


@dataclass(frozen=True, slots=True)
class Source:
    """An open file."""

    path: Path
    connected: "DuckDBPyConnection"
    names: Sequence[str]
    rows: int

    def groups(self, columns: Mapping[str, str]) -> Iterator["pd.DataFrame"]:
        """SQL expressions by name, in the order of the file, a part of the rows at a time."""
        wanted = ", ".join(f"{expression} as {name}" for name, expression in columns.items())
        result = self.connected.execute(f"select {wanted} from read_parquet($1)", [str(self.path)])
        while len(frame := result.fetch_df_chunk(_GROUP // _VECTOR)):
            yield frame

    def texts(self, name: str) -> list[str]:
        return [
            text for frame in self.groups({name: f"coalesce({name}::varchar, '')"}) for text in frame[name]
        ]

    def distinct(self, name: str) -> list[str]:
        """In the order of their first row."""
        rows = self.connected.execute(
            f"select {name}::varchar from read_parquet($1, file_row_number = true) "
            "group by 1 order by min(file_row_number)",
            [str(self.path)],
        )
        return [row[0] for row in rows.fetchall()]


@contextmanager
def reading(path: Path) -> Iterator[Source]:
    """Raises FileNotFoundError; ValueError, also from inside the block, for a file that is damaged."""
    import duckdb

    path = path.resolve()
    with path.open("rb"):
        pass  # OSError in the system's words
    try:
        with _cursor(path) as connected:
            about = connected.execute("describe from read_parquet($1)", [str(path)]).fetchall()
            rows = connected.execute("select count(*) from read_parquet($1)", [str(path)]).fetchall()
            yield Source(path, connected, [column[0] for column in about], rows[0][0])
    except (duckdb.Error, MemoryError) as error:
        raise ValueError(f"{path.name}: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literals(values: Iterable[Any]) -> str:
    return "[" + ", ".join(literal(str(value)) for value in values) + "]"


def sql_type(dtype: np.dtype[Any]) -> str:
    """Of an array of integers."""
    return _INTEGERS[dtype.itemsize]


def known(name: str, dtype: np.dtype[Any], unknown: int) -> str:
    return f"coalesce({name}, {unknown})::{sql_type(dtype)}"


def one_of(name: str, names: Sequence[str]) -> str:
    """An error where the column has another name, so that nobody counts it as one of these."""
    return f"{name}::varchar::enum({', '.join(map(literal, names))})"


def codes_of(column: "pd.Series[Any]") -> NDArray[Any]:
    """Of a column read through `one_of`: positions among its names. ValueError where there is none."""
    codes: NDArray[Any] = column.cat.codes.to_numpy()
    if (codes < 0).any():
        raise ValueError(f"a row has no {column.name}")
    return codes
