"""Tables, pictures and a page from a run folder alone: no engine, no network, the same bytes every time."""

import os
from pathlib import Path

from harness.store import RunFolder


def build(folder: RunFolder) -> list[Path]:
    """(Re)writes everything a person reads in a run folder; paths of what was written.

    A missing or broken cell becomes a warning in all of it. Raises SpecError without a readable summary.json.
    """
    os.environ["MPLBACKEND"] = "agg"  # matplotlib does not load where this names one that it does not know
    from harness.report.files import build_all  # matplotlib takes half a second that the table does not need

    return build_all(folder)
