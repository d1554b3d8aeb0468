"""Records to figures, verdicts and warnings: what summary.json says of a cell and of a run."""

from harness.summary.cell import summarise_view, view_of
from harness.summary.run import (
    FolderSamples,
    extras_of,
    look_of,
    summarise_folder,
    summarise_run,
)
