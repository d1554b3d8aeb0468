"""Records to figures, verdicts and warnings: what summary.json says of a cell and of a run."""

from harness.summary.cell import summarise_cell, summarise_view, view_of
from harness.summary.run import beside, folder_samples, standing, summarise_folder, summarise_run

__all__ = [
    "beside",
    "folder_samples",
    "standing",
    "summarise_cell",
    "summarise_folder",
    "summarise_run",
    "summarise_view",
    "view_of",
]
