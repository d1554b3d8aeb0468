"""Columns to a Parquet file and back, through pyarrow, which is loaded on first use (0.2 s)."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.store.atomic import storage_error

_INTEGER = {"int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64", "uint8": "UInt8"}


def numbers(values: NDArray[Any], unknown: NDArray[np.bool_] | None = None) -> Any:
    """A column with null where `unknown`."""
    import pyarrow as pa

    return pa.array(values, mask=unknown)


def texts(values: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.string())


def named(codes: NDArray[Any], names: Sequence[str]) -> Any:
    """A column of `names` by their position: text for every reader, a category for those that know it."""
    import pyarrow as pa

    kind = np.int8 if len(names) < 128 else np.int32
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(kind)), pa.array(names, pa.string()))


def write(path: Path, groups: Iterable[Mapping[str, Any]]) -> None:
    """Whole or not at all: one row group for each of `groups`, which are made one after the other.

    Raises StorageError when there is no room, or the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.partial")
    writer = None
    try:
        with partial.open("wb") as file:
            for columns in groups:
                table = pa.table(dict(columns))
                table = table.replace_schema_metadata({"pandas": _for_pandas(table.schema)})
                writer = writer or pq.ParquetWriter(
                    file, table.schema, compression="snappy", write_statistics=False
                )
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            if writer:
                writer.close()
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise storage_error(error, path) from error


def _for_pandas(schema: Any) -> str:
    """Without it, pandas makes floats of integers with nulls, in which nanoseconds lose digits."""
    columns = [
        {
            "name": field.name,
            "field_name": field.name,
            "pandas_type": str(field.type),
            "numpy_type": _INTEGER[str(field.type)],
            "metadata": None,
        }
        for field in schema
        if str(field.type) in _INTEGER
    ]
    about = {"index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": None}
    return json.dumps(about)


@dataclass(frozen=True, slots=True)
class Source:
    """An open file."""

    file: Any

    @property
    def names(self) -> list[str]:
        return list(self.file.schema_arrow.names)

    @property
    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def groups(self, names: Sequence[str]) -> Iterator[Any]:
        for index in range(self.file.num_row_groups):
            yield self.file.read_row_group(index, columns=list(names))

    def column(self, name: str) -> Any:
        return self.file.read(columns=[name]).column(name)

    def texts(self, name: str) -> list[str]:
        found: list[str] = self.column(name).to_pylist()
        return found


@contextmanager
def reading(path: Path) -> Iterator[Source]:
    """Raises FileNotFoundError; ValueError, also from inside the block, for a file that is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as opened:
        try:
            with pq.ParquetFile(opened) as file:
                yield Source(file)
        except (pa.ArrowException, OSError, KeyError, TypeError, MemoryError, OverflowError) as error:
            raise ValueError(f"{path.name}: {error}") from error


def numbers_of(column: Any, dtype: np.dtype[Any], unknown: int) -> NDArray[Any]:
    import pyarrow as pa

    return np.asarray(column.cast(pa.int64()).fill_null(unknown).to_numpy()).astype(dtype)


def codes_of(column: Any, codes: Mapping[str, int]) -> NDArray[np.uint8]:
    """KeyError for a name that `codes` does not have."""
    found = np.zeros(len(column), np.uint8)
    start = 0
    for chunk in _dictionaries(column):
        known = np.array([codes[name] for name in chunk.dictionary.to_pylist()], np.uint8)
        found[start : start + len(chunk)] = known[chunk.indices.to_numpy(zero_copy_only=False)]
        start += len(chunk)
    return found


def names_of(column: Any) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct names in the order of their first row, and the position among them of each row."""
    names: dict[str, int] = {}
    positions = []
    for chunk in _dictionaries(column):
        known = [names.setdefault(name, len(names)) for name in chunk.dictionary.to_pylist()]
        positions.append(np.array(known, np.int64)[chunk.indices.to_numpy(zero_copy_only=False)])
    return list(names), np.concatenate([np.zeros(0, np.int64), *positions])


def _dictionaries(column: Any) -> Iterator[Any]:
    import pyarrow as pa

    for chunk in column.chunks:
        yield chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
