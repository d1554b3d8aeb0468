"""A measured run, read from its folder."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from harness.model import Conclusion, Manifest, Summary
    from harness.run.keep.loaded import LoadedRun

RESULTS = Path("results")


class LoadWarning(UserWarning):
    """The figures of a run are of another version, or were not verified."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """A run as `load` found it. Every call makes a new DataFrame: change it as you like.

    Times are in seconds; other units are in a column's name. A missing value is not known, which is not zero.
    docs/python.md lists the columns.
    """

    loaded: "LoadedRun"

    @property
    def name(self) -> str:
        return self.loaded.name

    @property
    def path(self) -> Path:
        return self.loaded.folder.path

    @property
    def summary(self) -> "Summary":
        """Everything derived from the records, typed as summary.json is. Times in ms, as the names say."""
        return self.loaded.summary

    @property
    def manifest(self) -> "Manifest":
        """Conditions under which it was measured: command, versions, machine, engines."""
        return self.loaded.manifest

    @property
    def verified(self) -> bool:
        """False where it was loaded with `unverified=True`."""
        return self.loaded.verified

    def cells(self) -> "pd.DataFrame":
        """One row per cell (a backend at a load in one repeat), in the order in which they were planned."""
        from harness.python import frames
        from harness.store import tables

        return frames.of_rows(tables.CELLS, tables.cell_rows(self.name, self.summary, self.manifest))

    def verdicts(self) -> "pd.DataFrame":
        """One row per pair of backends, load and metric. The verdict is about `a`; a ratio is a / b."""
        from harness.python import frames
        from harness.store import tables

        return frames.of_verdicts(tables.VERDICTS, tables.verdict_rows(self.name, self.summary.comparison))

    def requests(self) -> "pd.DataFrame":
        """One row per request, warm-up included. Times count from the start of the request's cell.

        Raises BenchError where a file of the run is not what was written.
        """
        from harness.python import frames

        return frames.of_view(self.loaded.folder, "requests")

    def events(self) -> "pd.DataFrame":
        """One row per event of a stream, in the order of arrival within a request. May be millions of rows.

        Raises BenchError where a file of the run is not what was written.
        """
        from harness.python import frames

        return frames.of_view(self.loaded.folder, "events")

    def telemetry(self) -> "pd.DataFrame":
        """One row per sample of a series, such as `engine.running`; empty where nothing was sampled.

        Raises BenchError where a file of the run is not what was written.
        """
        from harness.python import frames

        return frames.of_view(self.loaded.folder, "telemetry")

    def conclusion(self) -> "Conclusion":
        """What the run shows and leaves open, as `bench report --json` prints it."""
        from harness.report.findings.conclude import conclude

        return conclude(self.summary, self.manifest)

    def __repr__(self) -> str:
        from harness.model import labels
        from harness.model.numbers import counted

        names = labels(self.summary.cells)
        what = f"{self.summary.scenario}, {', '.join(names)}, {counted(len(self.summary.cells), 'cell')}"
        doubt = "" if self.verified else ", NOT VERIFIED"
        return f"<Run {self.name}: {what}{doubt}>"


def load(
    run: str | os.PathLike[str], *, out: str | os.PathLike[str] = RESULTS, unverified: bool = False
) -> Run:
    """The run in a folder: its path, or its name (or a unique beginning of it) in the folder `out`.

    Every file is checked and every figure is computed again from the records, as `bench compare` does.
    Raises DamagedError for a run that does not verify, and BenchError for a folder that is no run, links out
    of itself, or is of an unknown schema. `unverified=True` takes what summary.json says all the same, with a
    LoadWarning for each doubt.
    """
    from harness.run.keep.loaded import load_run

    loaded = load_run(os.fspath(run), Path(out), unverified=unverified)
    for note in loaded.notes:
        warnings.warn(note, LoadWarning, stacklevel=2)
    return Run(loaded)


def runs(out: str | os.PathLike[str] = RESULTS) -> list[Path]:
    """The folders of all runs in `out`, oldest first: `load(runs()[-1])` is the latest."""
    from harness.store import stored_runs

    return [folder.path for folder in stored_runs(Path(out))]
