"""Tables, pictures and a page from a run folder alone: no engine, no network, the same bytes every time."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import RunComparison

if TYPE_CHECKING:  # these load numpy, which words and tables of commands do not need
    from harness.report.blocks.block import Block
    from harness.store import RunFolder
    from harness.verdicts.baseline import Run


def build(folder: "RunFolder") -> list[Path]:
    """Writes everything a person reads in a run folder, again if need be; returns the paths.

    A missing or broken cell becomes a warning in all of it. Raises SpecError without a readable
    summary.json.
    """
    from harness.report.files import build_all  # matplotlib takes half a second that the table does not need

    return build_all(folder)


def page_of_several(runs: "Sequence[Run]", document: RunComparison, first: "Sequence[Block]" = ()) -> str:
    """All runs on common axes, as HTML, below `first`. Raises SpecError if nothing can be compared."""
    from harness.report.html.several import page

    return page(runs, document, first)
