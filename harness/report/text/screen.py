"""The first screen of a run: its findings, one table, what is wrong with it, and what to do next."""

import shlex
from collections.abc import Callable, Iterator, Sequence

from harness.model import Summary
from harness.model.lines import NO_BREAK, wrap
from harness.model.numbers import counted
from harness.report.findings.backend_words import marked_names
from harness.report.findings.conclude import WARNINGS, conclude
from harness.report.findings.grid import Column, fitting, width
from harness.report.findings.notes import banner, odd_tracks, prices
from harness.report.findings.sentences import load_words
from harness.report.tables.sessions import session_tables
from harness.report.tables.subject import subject_tables
from harness.report.text.figure_rows import figure_rows
from harness.report.text.first_lines import first_lines
from harness.report.text.terminal_text import BOLD, DIM, LOUD, YELLOW, Paint, hanging
from harness.report.view import Group, Row, asked_words, first_cells, groups, labels, repeats_words
from harness.report.wording import listing, plain

NAMED = 3  # backends that the headline names
LABEL = 40
Sketch = Callable[[Summary, int], str]  # of a width: pictures between the table and its conclusion


def screen(summary: Summary, columns: int, color: bool, sketch: Sketch | None = None) -> str:
    """Fits `columns` from 60 on. With `sketch`: the table first, then it, then the conclusion."""
    paint = Paint(color)
    table, conclusion = list(_table(summary, columns, paint)), list(first_lines(summary, columns, paint))
    if sketch is None:
        middle = [*conclusion, "", *table]
    else:
        drawn = sketch(summary, columns)
        middle = [*table, "", *([drawn, ""] if drawn else []), *conclusion]
    loud = [paint(line, LOUD) for line in wrap(banner(summary), columns)]
    head = [paint(line, BOLD) for line in wrap(headline(summary), columns)]
    return "\n".join([*loud, *head, "", *middle, *_warnings(summary, columns, paint)]).rstrip() + "\n"


def headline(summary: Summary) -> str:
    """`batch-1-8-32, SmolLM2: vllm and llamacpp, 3 repeats each; prompts of 512 tokens`."""
    names = labels(summary)
    who = listing(names) if len(names) <= NAMED else counted(len(names), "backend")
    model = f", {summary.model.title}" if summary.model else ""
    each = " each" if len(names) > 1 else ""
    what = f"{who}, {repeats_words(summary)}{each}" if names else "nothing measured"
    asked = asked_words(summary)
    return plain(f"{summary.scenario}{model}: {what}{f'; {asked}' if asked else ''}")


def _table(summary: Summary, columns: int, paint: Paint) -> Iterator[str]:
    """A row per load and backend."""
    by_load = groups(summary)
    if not by_load:
        return
    names, rows = _names(summary, by_load, columns)
    firsts = [max(map(len, column)) for column in zip(*names, strict=True)]
    used = sum(firsts) + 2 * (len(firsts) - 1)
    kept, left_out = fitting(rows, columns - used, summary.verdict_rules.metrics)
    columns_kept = [(column, [*map(column.entry, rows)], width(column, rows)) for column in kept]
    lefts = ["  ".join(text.ljust(size) for text, size in zip(name, firsts, strict=True)) for name in names]
    yield from figure_rows(lefts, columns_kept, paint)
    for line in _below_table(summary, left_out, columns):
        yield paint(line, DIM)
    for table in (*subject_tables(summary), *session_tables(summary)):
        yield from table.lines(columns)


def _names(
    summary: Summary, by_load: Sequence[Group], columns: int
) -> tuple[list[tuple[str, ...]], list[Row]]:
    """Heads and names left of the figures, and the rows they belong to."""
    marked = marked_names(summary, min(LABEL, columns // 3))
    several = len(marked) > 1
    names: list[tuple[str, ...]] = [("load", "backend") if several else ("load",)]
    rows = []
    for group in by_load:
        for index, row in enumerate(group.rows):
            load = "" if index else load_words(group.point)
            names.append((load, marked[row.label]) if several else (load,))
            rows.append(row)
    return names, rows


def _below_table(summary: Summary, left_out: Sequence[Column], columns: int) -> Iterator[str]:
    yield from wrap(_weights(summary), columns, subsequent_indent="  ")
    names = [column.title for column in left_out if column.title != "errors"]
    clean = "No request failed. " if len(names) < len(left_out) else ""
    others = f"Not shown: {', '.join(names)} (-v, or a wider terminal)." if names else ""
    yield from wrap(f"{clean}{others}", columns, subsequent_indent="  ")
    for line in prices(summary):
        yield from wrap(line, columns, subsequent_indent="  ")
    if summary.agreement and summary.agreement.values:
        yield from wrap(summary.agreement.values.words, columns, subsequent_indent="  ")


def _weights(summary: Summary) -> str:
    """The meaning of the `*` of a name; "" without one."""
    odd = odd_tracks(summary)
    if not odd:
        return ""
    weights: dict[bool, dict[str, None]] = {True: {}, False: {}}  # by whether they are starred
    for label, cell in first_cells(summary).items():
        weights[label in odd][cell.quantisation or cell.track or "unknown"] = None
    starred, others = (listing(list(weights[key])) for key in (True, False))
    return plain(f"* weights {starred}, the others {others}: a difference may be theirs")


def _warnings(summary: Summary, columns: int, paint: Paint) -> Iterator[str]:
    found = conclude(summary).warnings
    if not found:
        return
    yield ""
    for warned in found[:WARNINGS]:
        first, *rest = wrap(f"warning: {warned.text}", columns, subsequent_indent="  ")
        yield from (paint(first, YELLOW), *rest)
        if warned.hint:
            yield from hanging("  hint: ", warned.hint, columns)
    if len(found) > WARNINGS:
        yield f"{counted(len(found) - WARNINGS, 'more warning')}: -v, or the report"


def next_lines(summary: Summary, columns: int, run: str | None = None) -> Iterator[str]:
    """What to run next, and why. `run`: the path of the folder, if it is known.

    A command with the run stays whole, so that it can be copied: half of it is another command.
    """
    for step in conclude(summary).next_steps[:1]:
        do = step.do
        if do.startswith("bench "):
            *command, names = do.split(" ", 2)
            stored = plain(summary.run)
            names = names.replace(shlex.quote(stored), shlex.quote(run or stored), 1)
            do = NO_BREAK.join([*command, *names.split(" ")])
        yield from hanging("next:       ", f"{step.why}: {do}", columns, cut=False)
