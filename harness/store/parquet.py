"""Columns to Parquet files and back, through DuckDB, and without pandas, which takes a second to load.

DuckDB is given descriptors and not names, where these fit: a name could be a pattern, a key of a partition or
a link.
"""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.store.confined import Confined, storage_error

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_INTEGERS = {1: "tinyint", 2: "smallint", 4: "integer", 8: "bigint"}  # by bytes
_PANDAS_TYPES = {kind: f"Int{8 * size}" for size, kind in _INTEGERS.items()}
_GROUP = 1_000_000  # rows: a row group as it is written, about as many as are read at a time
_READ_MEMORY = "1GB"  # of DuckDB itself; what is read comes on top
# What a file may say that it holds, by its size on the disk. Stamps do not compress: a row takes 7 bytes.
_FREE_ROWS, _ROWS_PER_BYTE = 20_000, 1
_FREE_BYTES, _BYTES_PER_BYTE = 64 << 20, 64
_TEXT_BYTES = 1 << 20  # of texts on their way into Python
# Of a column in a row group, in what a file declares.
_ROWS, _VALUE_BYTES = "if(column_id = 0, row_group_num_rows, 0)", "total_uncompressed_size"


@dataclass(frozen=True, slots=True)
class Column:
    """An array to be written, and the SQL that makes its column."""

    values: NDArray[Any]
    sql: Callable[[str], str] = str
    pandas_type: str = ""  # where pandas.read_parquet would choose another


def integers(values: NDArray[Any], unknown: int) -> Column:
    """Null where a value is `unknown`."""
    return Column(values, lambda name: f"nullif({name}, {unknown})", f"Int{8 * values.dtype.itemsize}")


def texts(values: Sequence[str]) -> Column:
    return Column(np.array(values, dtype=object))


def named(codes: NDArray[Any], names: Sequence[str]) -> Column:
    """Each code becomes the name at its position."""
    return Column(codes.astype(np.int32), lambda name: f"{literals(names)}[{name} + 1]::varchar")


def connection(files: Sequence[str] | None, memory: str | None = None) -> "DuckDBPyConnection":
    """A database in memory without extensions, so without a network.

    `files`: all that it may open, which must exist. None, for a connection that runs no SQL but ours: any.
    `memory`: the most that it may take, such as "1GB". None: what DuckDB takes by default.
    """
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "temp_directory": "",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_external_file_cache": "false",
    }
    if memory is not None:
        settings["memory_limit"] = memory
    connected = duckdb.connect(config=settings)
    if files is not None:
        connected.execute("set allowed_paths = $1", [list(files)])
        connected.execute("set enable_external_access = false")
    connected.execute("set lock_configuration = true")
    return connected


def by_descriptor(descriptor: int) -> str:
    """The name under which DuckDB opens a file that is already open."""
    return f"/dev/fd/{descriptor}"


def is_name(path: str) -> bool:
    """Whether DuckDB takes the path for this file alone. It knows patterns, and no name but UTF-8."""
    return set("*?[").isdisjoint(path) and path.encode(errors="ignore").decode() == path


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises KeyboardInterrupt if a signal's handler raised it in a query: DuckDB makes a RuntimeError of
    it.
    """
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


@lru_cache(maxsize=2)
def _kept(memory: str | None) -> "DuckDBPyConnection":
    """A connection that stays open: opening one takes 20 ms, and a run has three files per cell."""
    return connection(None, memory)


@contextmanager
def _cursor(memory: str | None = None) -> Iterator["DuckDBPyConnection"]:
    with interruptible(), _kept(memory).cursor() as cursor:
        try:
            yield cursor
        except BaseException:
            _kept.cache_clear()  # some errors spoil the whole database
            raise


def write(files: Confined, name: str, groups: Iterable[Mapping[str, Column]]) -> None:
    """Writes the file whole or not at all: one row group for each of `groups`, which are made one after the
    other.

    Raises StorageError if there is no room, or the folder cannot be written.
    """
    import duckdb

    # DuckDB cannot add to a file: each group is a file of its own first, and a last pass joins them.
    try:
        with ExitStack() as stack:
            connected = stack.enter_context(_cursor())
            whole = stack.enter_context(files.replacing(name))
            parts: list[IO[bytes]] = []
            for columns in groups:
                parts.append(stack.enter_context(files.unnamed(name)))
                _part(connected, parts[-1], columns)
            if len(parts) == 1:
                shutil.copyfileobj(parts[0], whole)
            else:
                _join(connected, parts, whole)
    except (duckdb.Error, ValueError) as error:
        raise storage_error(_system_error(error), files.path(name)) from error


def _place(file: IO[bytes]) -> str:
    return by_descriptor(file.fileno())


def _part(connected: "DuckDBPyConnection", file: IO[bytes], columns: Mapping[str, Column]) -> None:
    connected.register("part", {name: column.values for name, column in columns.items()})
    wanted = ", ".join(f"{column.sql(name)} as {name}" for name, column in columns.items())
    types = {name: column.pandas_type for name, column in columns.items() if column.pandas_type}
    options = _options(_for_pandas(types))
    connected.execute(f"copy (select {wanted} from part) to {literal(_place(file))} ({options})")
    connected.unregister("part")


def _join(connected: "DuckDBPyConnection", parts: Sequence[IO[bytes]], whole: IO[bytes]) -> None:
    """Joins the parts in order, with the metadata that each of them has."""
    places = [_place(part) for part in parts]
    note = connected.execute(
        "select decode(value) from parquet_kv_metadata($1) where key = 'pandas'::blob", [places[0]]
    ).fetchall()[0][0]
    rows = f"select * from read_parquet({literals(places)})"
    connected.execute(f"copy ({rows}) to {literal(_place(whole))} ({_options(note)})")


def _options(note: str) -> str:
    return (
        f"format parquet, compression snappy, row_group_size {_GROUP}, use_tmp_file false, "
        f"kv_metadata {{pandas: {literal(note)}}}"
    )


def export(connected: "DuckDBPyConnection", view: str, path: str) -> None:
    """Writes all rows of a table or view into the open file at `path`. Raises OSError if the disk is full."""
    import duckdb

    described = connected.execute(f"describe {view}").fetchall()
    types = {
        name: _PANDAS_TYPES[kind.lower()] for name, kind, *_ in described if kind.lower() in _PANDAS_TYPES
    }
    try:
        connected.execute(f"copy (select * from {view}) to {literal(path)} ({_options(_for_pandas(types))})")
    except duckdb.Error as error:
        known = _system_error(error)
        if isinstance(known, OSError) and known.errno is not None:
            raise known from None
        raise


def _for_pandas(types: Mapping[str, str]) -> str:
    """The metadata for pandas. Without it pandas.read_parquet makes floats of integers with nulls, and
    nanoseconds lose digits."""
    about = [
        {
            "name": name,
            "field_name": name,
            "pandas_type": pandas_type.lower(),
            "numpy_type": pandas_type,
            "metadata": None,
        }
        for name, pandas_type in types.items()
    ]
    whole = {"index_columns": [], "column_indexes": [], "columns": about, "pandas_version": None}
    return json.dumps(whole)


def _system_error(error: Exception) -> OSError | ValueError:
    """DuckDB reports the system's text and no errno."""
    if isinstance(error, ValueError):
        return error
    known = [code for code in (errno.ENOSPC, errno.EDQUOT) if os.strerror(code) in str(error)]
    return OSError(known[0], os.strerror(known[0])) if known else OSError(first_line(error))


@dataclass(slots=True)
class _Texts:
    """A column of texts as it is read. `left`: bytes that those to come may have."""

    name: str
    left: int
    values: list[str] = field(default_factory=list)
    distinct: dict[str, str] = field(default_factory=dict)

    def add(self, values: Sequence[str]) -> None:
        new = set(values) - self.distinct.keys()
        self.left -= sum(map(len, new))
        if self.left < 0:
            raise ValueError(f"{self.name}: more text than a file of this size may hold")
        self.distinct.update(zip(new, new, strict=True))
        self.values.extend(map(self.distinct.__getitem__, values))


@dataclass(frozen=True, slots=True)
class Source:
    """An open file, and what it declares: its columns, its rows and the size of its values."""

    place: str
    connected: "DuckDBPyConnection"
    names: Sequence[str]
    rows: int
    value_bytes: int

    def groups(self, columns: Mapping[str, str]) -> Iterator[Mapping[str, NDArray[Any]]]:
        """SQL expressions by name, in the order of the file, a part of the rows at a time. Raises ValueError
        where an expression is null."""
        wanted = ", ".join(f"{expression} as {name}" for name, expression in columns.items())
        whole = f"select {wanted} from read_parquet($1"
        for start in range(0, self.rows, _GROUP):
            rows = f"file_row_number >= {start} and file_row_number < {start + _GROUP}"
            query = f"{whole}, file_row_number = true) where {rows}" if self.rows > _GROUP else f"{whole})"
            part: dict[str, Any] = self.connected.execute(query, [self.place]).fetchnumpy()
            for name, values in part.items():
                if np.ma.is_masked(values):
                    raise ValueError(f"a row has no {name}")
                if len(values) != min(_GROUP, self.rows - start):
                    raise ValueError(f"{self.rows:,} rows are declared, and not all are there")
            yield part

    def texts(self, names: Sequence[str]) -> list[list[str]]:
        """The texts of each column. Equal texts of a column are one object. Raises ValueError for more than a
        file of this size may hold."""
        wanted = {name: f"coalesce({name}::varchar, '')" for name in names}
        longest = self._longest(wanted)
        there = [name for name in names if longest[name]]
        most_bytes = _most_bytes(_stored(self.place))
        columns = {name: _Texts(name, most_bytes) for name in there}
        if there:
            query = f"select {', '.join(map(wanted.__getitem__, there))} from read_parquet($1)"
            result = self.connected.execute(query, [self.place])
            # A single text may stand in every row and be long.
            at_once = 1 + _TEXT_BYTES // sum(longest.values())
            while rows := result.fetchmany(at_once):
                for column, values in zip(columns.values(), zip(*rows, strict=True), strict=True):
                    column.add(values)
        return [columns[name].values if name in columns else [""] * self.rows for name in names]

    def _longest(self, wanted: Mapping[str, str]) -> dict[str, int]:
        """Bytes of the longest value of each SQL expression, by name; 0 where all are empty."""
        lengths = ", ".join(f"coalesce(max(strlen({expression})), 0)" for expression in wanted.values())
        found = self.connected.execute(f"select {lengths} from read_parquet($1)", [self.place]).fetchall()[0]
        return dict(zip(wanted, found, strict=True))

    def distinct(self, name: str, most: int) -> list[str]:
        """Sorted by their first row. Raises ValueError for more than `most`, and where one is null."""
        rows = self.connected.execute(
            f"select {name}::varchar from read_parquet($1, file_row_number = true) "
            f"group by 1 order by min(file_row_number) limit {most + 1}",
            [self.place],
        ).fetchall()
        if len(rows) > most:
            raise ValueError(f"{name}: more than {most:,} different values")
        if (None,) in rows:
            raise ValueError(f"a row has no {name}")
        return [row[0] for row in rows]


def _stored(file: str) -> int:
    return Path(file).stat().st_size


def _most_bytes(stored: int) -> int:
    return max(_FREE_BYTES, _BYTES_PER_BYTE * stored)


def _check_size(file: str, rows: int, value_bytes: int) -> None:
    """Raises ValueError if the file says that it holds more than one of its size can."""
    stored = _stored(file)
    if rows > max(_FREE_ROWS, _ROWS_PER_BYTE * stored) or value_bytes > _most_bytes(stored):
        raise ValueError(
            f"{stored:,} bytes that claim to hold {rows:,} rows and {value_bytes:,} bytes of values"
        )


def check_sizes(connected: "DuckDBPyConnection", places: Sequence[str]) -> None:
    """Does as `reading` for many files at once. Raises ValueError, and duckdb.Error for a damaged one."""
    query = f"select file_name, sum({_ROWS}), sum({_VALUE_BYTES}) from parquet_metadata($1) group by all"
    for file, rows, value_bytes in connected.execute(query, [list(places)]).fetchall() if places else ():
        _check_size(file, int(rows), int(value_bytes))


@contextmanager
def reading(files: Confined, name: str) -> Iterator[Source]:
    """Raises FileNotFoundError, and ValueError, also from inside the block, for a damaged file."""
    import duckdb

    try:
        with files.opened(name) as descriptor, _cursor(_READ_MEMORY) as connected:
            source = opened(connected, by_descriptor(descriptor))
            _check_size(source.place, source.rows, source.value_bytes)
            yield source
    except (duckdb.Error, MemoryError) as error:
        check_memory(error)
        raise ValueError(f"{name.rpartition('/')[2]}: {first_line(error)}") from error


def opened(connected: "DuckDBPyConnection", path: str) -> Source:
    """Raises duckdb.Error for a damaged file."""
    columns = "select name, 0, 0 from parquet_schema($1)"
    query = f"{columns} union all select '', {_ROWS}, {_VALUE_BYTES} from parquet_metadata($1)"
    names, rows, value_bytes = zip(*connected.execute(query, [path]).fetchall(), strict=True)
    return Source(path, connected, names, sum(rows), sum(value_bytes))


def check_memory(error: Exception) -> None:
    """Raises MemoryError where this machine had no memory for DuckDB, which is no fault of what it read."""
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException) and "Allocation failure" in str(error):
        raise MemoryError from error


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literals(values: Iterable[Any]) -> str:
    return "[" + ", ".join(literal(str(value)) for value in values) + "]"


def sql_type(dtype: np.dtype[Any]) -> str:
    return _INTEGERS[dtype.itemsize]


def known(name: str, dtype: np.dtype[Any], unknown: int) -> str:
    return f"coalesce({name}, {unknown})::{sql_type(dtype)}"


def code_of(name: str, names: Sequence[str]) -> str:
    """SQL for the position among the names. It fails for another name, and is null for null."""
    return f"enum_code({name}::varchar::enum({', '.join(map(literal, names))}))"
