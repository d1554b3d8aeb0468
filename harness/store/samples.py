"""Telemetry to Parquet and back: one row per sample, with the series' name, the time and the value."""

from pathlib import Path

import numpy as np
import pandas as pd

from harness.store.columns import read_frame, write_frames
from harness.telemetry import Samples, Telemetry

FILE = "telemetry.parquet"


def write_telemetry(telemetry: Telemetry, folder: Path) -> None:
    """Raises StorageError when the folder cannot be written."""
    names = list(telemetry.series)
    lengths = [len(samples.at_ns) for samples in telemetry.series.values()]
    at_ns = [samples.at_ns for samples in telemetry.series.values()]
    values = [samples.values for samples in telemetry.series.values()]
    frame = pd.DataFrame(
        {
            "series": pd.Categorical.from_codes(np.repeat(np.arange(len(names)), lengths), pd.Index(names)),
            "at_ns": np.concatenate([np.zeros(0, np.int64), *at_ns]),
            "value": np.concatenate([np.zeros(0), *values]),
        }
    )
    write_frames(folder / FILE, [frame])


def read_telemetry(folder: Path) -> Telemetry:
    """Empty for a cell that was measured without."""
    if not (folder / FILE).exists():
        return Telemetry()
    frame = read_frame(folder / FILE)
    at_ns, values = frame["at_ns"].to_numpy(np.int64), frame["value"].to_numpy(np.float64)
    codes = frame["series"].cat.codes.to_numpy()
    return Telemetry(
        {
            str(name): Samples(at_ns[codes == code], values[codes == code])
            for code, name in enumerate(frame["series"].cat.categories)
        }
    )
