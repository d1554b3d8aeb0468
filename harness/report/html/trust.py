"""Whether anything is wrong with a run, in a few lines."""

from collections.abc import Iterator

from harness.model import Summary, Warned
from harness.report.conclude import conclude
from harness.report.html.cells import counted_cells
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag
from harness.report.screen import WARNINGS
from harness.report.text import counted


def wrong(source: Source) -> Iterator[Html]:
    """Validity of the cells, requests without an answer, and the most important warnings."""
    summary = source.summary
    if not summary.cells:
        return
    found = conclude(summary).warnings
    lines = [_warning(one) for one in found[:WARNINGS]]
    if len(found) > WARNINGS:
        more = counted(len(found) - WARNINGS, "more warning")
        lines.append(tag("a", f"{more}, with hints", href="#notes"))
    said = [tag("span", counted_cells(summary.cells), class_=_worst(summary)), f" {_unanswered(summary)}"]
    nothing = [] if found else [" No warning."]
    yield tag(
        "div",
        tag("h3", "Is anything wrong with this run?"),
        tag("p", join([*said, *nothing])),
        *([items(lines)] if lines else []),
        class_="small",
    )


def _warning(warned: Warned) -> Html:
    hint = [tag("span", f" Hint: {warned.hint}", class_="hint")] if warned.hint else []
    return join([warned.text, *hint])


def _worst(summary: Summary) -> str | None:
    verdicts = {cell.validity.verdict for cell in summary.cells}
    return next((word.lower() for word in ("INVALID", "SUSPECT") if word in verdicts), None)


def _unanswered(summary: Summary) -> str:
    requests = [cell.requests for cell in summary.cells]
    lost = sum(counts.failed + counts.dropped for counts in requests)
    planned = sum(counts.planned for counts in requests)
    if not lost:
        return f"All {planned} requests were answered." if planned else ""
    return f"{lost} of {counted(planned, 'request')} failed or were not sent."
