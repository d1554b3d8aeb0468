"""Rows with SQL types as DataFrames: times in seconds, and no unit in the name of a time.

`ttft_ms_p50` becomes `ttft_p50`, `sent_ns` becomes `sent`, `started_unix_ns` a moment called `started`.
Rates, counts and bytes keep their names and values.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from harness.model import STATISTICS

if TYPE_CHECKING:
    from harness.store import RunFolder

_PER_SECOND = {"ns": 1e9, "ms": 1e3, "s": 1.0}
_TIME = re.compile(rf"(?P<name>.+?)(?<!_per)_(?P<unit>ns|ms|s)(?P<rest>_(?:{'|'.join(STATISTICS)}))?")
_MOMENT = "started_unix_ns"
_DTYPES = {"varchar": "string", "boolean": "boolean", "double": "float64"}  # integers: Int64


def in_seconds(column: str) -> tuple[str, float]:
    """The name of a column in a DataFrame, and by how much its values are divided."""
    if not (time := _TIME.fullmatch(column)):
        return column, 1.0
    return time["name"] + (time["rest"] or ""), _PER_SECOND[time["unit"]]


def of_rows(types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """`types`: SQL type by column, in the order of a row's values. None is a missing value."""
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return _frame(
        {name: (kind, list(column)) for (name, kind), column in zip(types.items(), columns, strict=True)}
    )


def of_verdicts(types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Does as `of_rows`, with metrics under their names in the DataFrame of cells, and differences in its
    unit."""
    frame = of_rows(types, rows)
    columns = [in_seconds(path.replace(".", "_")) for path in frame["metric"]]
    frame["metric"] = pd.Series([name for name, _scale in columns], index=frame.index, dtype="string")
    scales = pd.Series([scale for _name, scale in columns], index=frame.index, dtype="float64")
    for name in ("difference_low", "difference", "difference_high", "value_a", "value_b"):
        if name in types:
            frame[name] /= scales
    return frame


def of_view(folder: "RunFolder", view: str) -> pd.DataFrame:
    """A view of the database, in the order in which its rows were written.

    Raises SpecError where a file of the run is not what was written.
    """
    import duckdb

    from harness.errors import SpecError
    from harness.report.samples import tpot_ms_by_seq
    from harness.store import parquet
    from harness.store.database import database

    with database([folder], tpot_ms_by_seq, [view]) as (connected, faults):
        if faults:
            raise faults[0]
        try:
            described = connected.execute(f"describe {view}").fetchall()
            raw = connected.execute(f"select * from {view}").df()
        except duckdb.Error as error:
            what = f"{view} cannot be read: {parquet.first_line(error)}"
            raise SpecError(what, where=str(folder.path)) from None
    return _frame({name: (kind.lower(), raw[name]) for name, kind, *_rest in described})


def _frame(columns: Mapping[str, tuple[str, Any]]) -> pd.DataFrame:
    """`columns`: raw name to SQL type and values."""
    built: dict[str, pd.Series[Any]] = {}
    for column, (kind, values) in columns.items():
        if column == _MOMENT:
            built["started"] = pd.Series(pd.to_datetime(pd.array(values, dtype="Int64"), unit="ns", utc=True))
            continue
        name, scale = in_seconds(column)
        series = pd.Series(values, dtype=_DTYPES.get(kind, "Int64"))
        built[name] = series if scale == 1.0 else series.astype("float64") / scale
    return pd.DataFrame(built)
