"""Whether anything is wrong with a run, in a few lines."""

from collections.abc import Iterator

from harness.model import VERDICTS, CellResult, Reason, Summary
from harness.report import notes
from harness.report.html.cells import counted_cells
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, tag
from harness.report.text import counted, listing, plain

MOST = 3  # warnings on the first screen; the others are in their own section
LETTERS = 90  # of one of them


def wrong(source: Source) -> Iterator[Html]:
    """Validity of the cells, requests without an answer, and the most important warnings."""
    summary = source.summary
    if not summary.cells:
        return
    found = list(_warnings(summary))
    lines: list[str] = found[:MOST]
    if len(found) > MOST:
        more = counted(len(found) - MOST, "more warning")
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


def doubts_by_code(summary: Summary) -> list[tuple[Reason, list[CellResult]]]:
    """What cells are doubted for, each with its cells: INVALID before SUSPECT, then what is about most cells.

    The reason is that of the first cell; those of the others may have other figures and hints.
    """
    found: dict[tuple[str, str], list[tuple[Reason, CellResult]]] = {}
    for cell in summary.cells:
        for reason in cell.validity.reasons:
            found.setdefault((reason.verdict, reason.code), []).append((reason, cell))
    ranked = sorted(found.values(), key=lambda mine: (-VERDICTS.index(mine[0][0].verdict), -len(mine)))
    return [(mine[0][0], [cell for _reason, cell in mine]) for mine in ranked]


def _warnings(summary: Summary) -> Iterator[str]:
    """About the run as a whole, about its cells, and what was noticed while it ran."""
    of_run = list(notes.warnings(summary))
    about_cells = ("SUSPECT ", "INVALID ")
    for note in notes.notes(summary):
        if note.kind == "warning" and note not in of_run and not note.text.startswith(about_cells):
            yield plain(note.text, LETTERS)
    for reason, cells in doubts_by_code(summary):
        backends = listing(list(dict.fromkeys(cell.label for cell in cells)))
        where = notes.place(cells[0]) if len(cells) == 1 else f"{counted(len(cells), 'cell')} of {backends}"
        yield plain(f"{reason.verdict} {reason.code}: {where}", LETTERS)
    yield from (plain(note.text, LETTERS) for note in of_run)


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
