"""Tables, pictures and a page from a run folder alone: no engine, no network, the same bytes every time."""

import os
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from harness.store import RunFolder

if TYPE_CHECKING:
    from harness.model import RunComparison
    from harness.verdicts.baseline import Run
    from harness.verdicts.history import Series


def build(folder: RunFolder) -> list[Path]:
    """Writes everything a person reads in a run folder, again if need be; returns the paths.

    A missing or broken cell becomes a warning in all of it. Raises SpecError without a readable
    summary.json.
    """
    _without_display()
    from harness.report.files import build_all  # matplotlib takes half a second that the table does not need

    return build_all(folder)


def page_of_several(runs: "Sequence[Run]", document: "RunComparison") -> str:
    """All runs on common axes, as HTML. Raises SpecError if nothing of them can be compared."""
    _without_display()
    from harness.report.html.several import page

    return page(runs, document)


def page_of_courses(
    title: str,
    remarks: "Sequence[str]",
    lines: "Sequence[str]",
    series: "Sequence[Series]",
    primary: "Set[str]",
) -> str:
    """The course of each figure over its runs, as HTML. `primary`: metrics whose charts are open."""
    _without_display()
    from harness.report.html.several import page_of_courses as made

    return made(title, remarks, lines, series, primary)


def _without_display() -> None:
    """Matplotlib does not load if this variable names a display that it does not know."""
    os.environ["MPLBACKEND"] = "agg"
