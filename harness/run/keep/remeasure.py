"""Cells that are INVALID by no doing of the engine: set aside, and measured again a few times at most."""

from harness.model import CellResult
from harness.run.keep.manifest import ManifestWriter
from harness.store import RunFolder
from harness.validity import blame, notices

MOST_AGAIN = 2  # of a cell


def set_aside(folder: RunFolder, manifest: ManifestWriter, cell: CellResult) -> str | None:
    """Returns why the cell is to be measured again, its files moved and a warning kept; None where it is
    to stay.
    """
    name, reason = cell.cell, blame(cell.validity)
    if reason is None or reason[0] not in ("client", "machine"):
        return None
    if folder.times_set_aside(name) >= MOST_AGAIN:
        return None
    kept = folder.set_aside(name)
    measured = next(doubt.measured for doubt in cell.validity.reasons if doubt.code == reason[1])
    text = f"{name} was measured again: {reason[1]}, {measured}"
    hint = f"the {reason[0]} was at fault, not the engine; see {kept}"
    manifest.warn(notices.MEASURED_AGAIN.warning(text, hint))
    return text
