"""Telemetry to Parquet and back: one row per sample, with the series' name, the time and the value."""

from pathlib import Path

import numpy as np

from harness.store import parquet
from harness.telemetry import Samples, Telemetry

FILE = "telemetry.parquet"


def write_telemetry(telemetry: Telemetry, folder: Path) -> None:
    """Raises StorageError when the folder cannot be written."""
    names = list(telemetry.series)
    lengths = [len(samples.at_ns) for samples in telemetry.series.values()]
    at_ns = [samples.at_ns for samples in telemetry.series.values()]
    values = [samples.values for samples in telemetry.series.values()]
    codes = np.repeat(np.arange(len(names)), lengths)
    columns = {
        "series": parquet.named(codes, names),
        "at_ns": parquet.numbers(np.concatenate([np.zeros(0, np.int64), *at_ns])),
        "value": parquet.numbers(np.concatenate([np.zeros(0), *values])),
    }
    parquet.write(folder / FILE, [columns])


def read_telemetry(folder: Path) -> Telemetry:
    """Empty for a cell that was measured without."""
    if not (folder / FILE).exists():
        return Telemetry()
    with parquet.reading(folder / FILE) as source:
        names, codes = parquet.names_of(source.column("series"))
        at_ns, values = (np.asarray(source.column(name).to_numpy()) for name in ("at_ns", "value"))
    at_ns, values = at_ns.astype(np.int64), values.astype(np.float64)
    return Telemetry(
        {name: Samples(at_ns[codes == code], values[codes == code]) for code, name in enumerate(names)}
    )
