"""Telemetry to Parquet and back: one row per sample, with the series' name, the time and the value."""

import numpy as np

from harness.records.series import Samples, Telemetry
from harness.store import parquet
from harness.store.confined import Confined

FILE = "telemetry.parquet"
_MOST_SERIES = 20_000  # a node of eight GPUs with every counter of its engine has some hundred
_MOST_VALUE = 1e18  # no series of ours comes near it, and sums of what is below are finite
COLUMNS = {"series": "varchar", "at_ns": "bigint", "value": "double"}  # with their SQL types


def write_telemetry(telemetry: Telemetry, files: Confined, folder: str) -> None:
    """Raises StorageError if the folder cannot be written."""
    names = list(telemetry.series)
    lengths = [len(samples.at_ns) for samples in telemetry.series.values()]
    at_ns = [samples.at_ns for samples in telemetry.series.values()]
    values = [samples.values for samples in telemetry.series.values()]
    codes = np.repeat(np.arange(len(names)), lengths)
    columns = {
        "series": parquet.named(codes, names),
        "at_ns": parquet.Column(np.concatenate([np.zeros(0, np.int64), *at_ns])),
        "value": parquet.Column(np.concatenate([np.zeros(0), *values])),
    }
    parquet.write(files, f"{folder}/{FILE}", [columns])


def read_telemetry(files: Confined, folder: str) -> Telemetry:
    """Empty for a cell that was measured without."""
    file = f"{folder}/{FILE}"
    if not files.has(file):
        return Telemetry()
    with parquet.reading(files, file) as source:
        names = source.distinct("series", _MOST_SERIES)
        if not names:
            return Telemetry()
        wanted = {
            "series": parquet.code_of("series", names),
            "at_ns": "at_ns::bigint",
            "value": "coalesce(value::double, 'nan')",
        }
        groups = list(source.groups(wanted))
    codes, at_ns, values = (np.concatenate([group[name] for group in groups]) for name in wanted)
    kept = np.flatnonzero(np.abs(values) < _MOST_VALUE)  # of NaN it is not
    by_series = kept[np.argsort(codes[kept], kind="stable")]
    ends = np.searchsorted(codes[by_series], np.arange(len(names)), side="right")
    parts = zip(names, np.split(by_series, ends[:-1]), strict=True)
    return Telemetry({name: Samples(at_ns[rows], values[rows]) for name, rows in parts})
