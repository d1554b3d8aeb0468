"""Sets aside cells that the client or the machine spoiled, so that they are measured again."""

from harness.model import CellResult
from harness.run.keep.manifest import ManifestWriter
from harness.store import RunFolder
from harness.validity import blame, notices

MOST_AGAIN = 2  # times that one cell is measured again


def set_aside(folder: RunFolder, manifest: ManifestWriter, cell: CellResult) -> str | None:
    """Moves the files of a spoiled cell, warns, and returns why it is to be measured again.

    None: the cell stays, because the engine is at fault or it was measured again `MOST_AGAIN` times.
    """
    name, reason = cell.cell, blame(cell.validity)
    if reason is None or reason[0] not in ("client", "machine"):
        return None
    if folder.times_set_aside(name, whole=True) >= MOST_AGAIN:
        return None
    kept = folder.set_aside(name)
    measured = next(doubt.measured for doubt in cell.validity.reasons if doubt.code == reason[1])
    text = f"{name} was measured again: {reason[1]}, {measured}"
    hint = f"put down to the {reason[0]}, not to the engine; see {kept}"
    manifest.warn(notices.MEASURED_AGAIN.warning(text, hint))
    return text
