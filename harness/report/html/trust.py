"""Whether anything is wrong with a run, in a few lines."""

from collections.abc import Iterator

from harness.model import Summary
from harness.model.numbers import counted
from harness.report.findings.conclude import WARNINGS, conclude
from harness.report.html.cells import counted_cells
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, tag
from harness.report.wording import listing, were


def wrong(source: Source) -> Iterator[Html]:
    """Validity of the cells, requests without an answer, and the most important warnings.

    Their hints are with the other notes: this has to fit on the first screen.
    """
    summary = source.summary
    if not summary.cells:
        return
    found = conclude(summary).warnings
    lines = [warning.text for warning in found[:WARNINGS]]
    if len(found) > WARNINGS:
        lines.append(tag("a", f"{counted(len(found) - WARNINGS, 'more warning')}, and hints", href="#notes"))
    elif any(warning.hint for warning in found):
        lines.append(tag("a", "hints for these", href="#notes"))
    parts = [tag("span", counted_cells(summary.cells), class_=_worst(summary)), f" {_answered(summary)}"]
    yield tag(
        "div",
        tag("h3", "Is anything wrong with this run?"),
        tag("p", *parts, None if found else " No warning."),
        items(lines) if lines else None,
        class_="small",
    )


def _worst(summary: Summary) -> str | None:
    verdicts = {cell.validity.verdict for cell in summary.cells}
    return next((word.lower() for word in ("INVALID", "SUSPECT") if word in verdicts), None)


def _answered(summary: Summary) -> str:
    """What never became due has not failed: a duration may end the load before all is sent."""
    requests = [cell.requests for cell in summary.cells]
    planned = sum(counts.planned for counts in requests)
    answered = sum(counts.ok for counts in requests)
    if answered >= planned:
        who = "The one request was" if planned == 1 else f"All {planned} requests were"
        return f"{who} answered." if planned else ""
    failed = sum(counts.failed for counts in requests)
    dropped = sum(counts.dropped for counts in requests)
    cancelled = sum(counts.cancelled for counts in requests)
    left = sum(counts.abandoned for counts in requests)
    others = {
        "failed": failed,
        f"{were(left)} hung up on": left,
        f"{were(dropped)} due and not sent": dropped,
        f"{were(cancelled)} cancelled": cancelled,
        "never became due": planned - answered - failed - dropped - cancelled - left,
    }
    words = listing([f"{count} {what}" for what, count in others.items() if count])
    if planned == 1:
        return f"The one request was not answered; it {words.removeprefix('1 ')}."
    return f"{answered} of {planned} requests {were(answered)} answered; {words}."
