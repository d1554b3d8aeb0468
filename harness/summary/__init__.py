"""Records to figures, verdicts and warnings: what summary.json says of a cell and of a run."""

from harness.summary.cell import summarise_view, view_of
from harness.summary.run import (
    extras_of,
    folder_samples,
    look_of,
    summarise_folder,
    summarise_run,
    summary_and_samples,
)
