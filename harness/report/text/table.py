"""The result table as text, for a terminal and as Markdown. Rows are in the user's order, never a ranking."""

from collections.abc import Iterator, Mapping, Sequence

from harness.model import Summary
from harness.model.lines import wrap
from harness.model.numbers import counted
from harness.report.findings import verdict_words
from harness.report.findings.backend_words import engine_words, marked_names
from harness.report.findings.conclude import conclude
from harness.report.findings.grid import GAP, shown
from harness.report.findings.notes import Note, banner, notes
from harness.report.tables.agreement_tables import agreement_tables
from harness.report.tables.engines import engine_tables
from harness.report.tables.per_user import per_user_tables
from harness.report.tables.sessions import session_tables
from harness.report.tables.subject import subject_tables
from harness.report.text.figure_rows import Drawn, figure_rows
from harness.report.text.first_lines import first_lines, markdown_lines
from harness.report.text.terminal_text import BOLD, LOUD, YELLOW, Paint
from harness.report.view import Group, Row, asked_words, groups, labels, point_words, repeats, repeats_words
from harness.report.wording import Table, blocks, markdown_escaped, markdown_row, plain

LABEL_LIMIT = 40


def terminal(summary: Summary, width: int, color: bool) -> str:
    """Fits `width` from 60 on: a wider table is broken into blocks."""
    return "\n".join(_lines(summary, width, Paint(color))) + "\n"


def _lines(summary: Summary, width: int, paint: Paint) -> Iterator[str]:
    loud = [paint(line, LOUD) for line in wrap(banner(summary), width)]
    yield from loud
    for line in wrap(headline(summary, "± largest deviation"), width):
        yield paint(line, BOLD)
    yield ""
    verdicts = list(verdict_words.lines(summary))
    yield from first_lines(summary, width, paint, verdicts)
    yield from _figures(summary, width, paint)
    for table in _more_tables(summary):
        yield from table.lines(width)
    yield ""
    yield from _legend(summary, width)
    for line in verdicts:
        yield from wrap(line, width, subsequent_indent="  ")
    for note in notes(summary):
        yield from _wrapped(note, width, paint)
    yield from loud


def _more_tables(summary: Summary) -> Iterator[Table]:
    for tables in (subject_tables, per_user_tables, session_tables, engine_tables, agreement_tables):
        yield from tables(summary)


def headline(summary: Summary, spread: str) -> str:
    count, names = repeats(summary), labels(summary)
    pooled = f"; median of {repeats_words(summary)}, {spread}" if count > 1 else ""
    what = counted(len(names), "backend") if names else "nothing measured"
    asked = asked_words(summary)
    return plain(f"{summary.scenario}: {what}{f'; {asked}' if asked else ''}{pooled}")


def _figures(summary: Summary, width: int, paint: Paint) -> Iterator[str]:
    """A table per load, or a row per load if there is one backend."""
    by_load, marked = groups(summary), marked_names(summary, LABEL_LIMIT)
    if len(marked) == 1 and len(by_load) > 1:
        rows = [row for group in by_load for row in group.rows]
        yield ""
        yield from _blocks(("load", *(point_words(group.point) for group in by_load)), rows, width, paint)
        return
    for group in by_load:
        yield ""
        yield paint(point_words(group.point), BOLD)
        names = ("backend", *(marked[row.label] for row in group.rows))
        yield from _blocks(names, group.rows, width, paint)


def _blocks(names: Sequence[str], rows: Sequence[Row], width: int, paint: Paint) -> Iterator[str]:
    """`names`: the heading of the first column, then a name per row."""
    first = max(map(len, names))
    lefts = [name.ljust(first) for name in names]
    columns: list[Drawn] = []
    for column in shown(rows):
        entries = [column.entry(row) for row in rows]
        texts = (text for entry in entries for text in (entry.text, entry.spread))
        columns.append((column, entries, GAP + max(map(len, (*column.heads, *texts)))))
    for part in blocks([size for *_, size in columns], width - first):
        if part.start:
            yield ""
        yield from figure_rows(lefts, columns[part], paint, spreads=True)


def _legend(summary: Summary, width: int) -> Iterator[str]:
    marked = marked_names(summary, LABEL_LIMIT)
    for label, engine in engine_words(summary).items():
        yield from wrap(f"{marked[label]}: {engine}", width, subsequent_indent="  ")


def _wrapped(note: Note, width: int, paint: Paint) -> Iterator[str]:
    lines = wrap(f"{note.kind}: {note.text}", width, subsequent_indent="  ")
    yield paint(lines[0], YELLOW if note.kind == "warning" else "")
    yield from lines[1:]
    yield from wrap(f"hint: {note.hint}" if note.hint else "", width,
                             initial_indent="  ", subsequent_indent="        ")  # fmt: skip


def markdown(summary: Summary) -> str:
    """Markdown for a pull request or a job page: text from servers and definitions cannot open a tag or a
    column."""
    return "\n".join(_markdown_lines(summary)) + "\n"


def _markdown_lines(summary: Summary) -> Iterator[str]:
    marked = marked_names(summary, LABEL_LIMIT)
    loud = [f"**{markdown_escaped(banner(summary))}**", ""] if banner(summary) else []
    yield f"## {markdown_escaped(headline(summary, 'range in brackets'))}"
    yield ""
    yield from loud
    verdicts = list(verdict_words.lines(summary))
    yield from markdown_lines(summary, verdicts)
    for step in conclude(summary).next_steps[:1]:
        yield f"- **next:** {markdown_escaped(f'{step.why}: {step.do}')}"
    yield ""
    figures = (_with_ranges(group, marked) for group in groups(summary))
    for table in (*figures, *_more_tables(summary)):
        yield f"### {markdown_escaped(table.title)}"
        yield ""
        yield markdown_row(table.head)
        yield "|---|" + "---:|" * (len(table.head) - 1)
        yield from map(markdown_row, table.rows)
        yield ""
    for label, engine in engine_words(summary).items():
        yield f"- {markdown_escaped(marked[label])}: {markdown_escaped(engine)}"
    yield ""
    if verdicts:
        yield from (f"- {markdown_escaped(line)}" for line in verdicts)
        yield ""
    for note in notes(summary):
        hint = f" *Hint: {markdown_escaped(note.hint)}*" if note.hint else ""
        yield f"- **{note.kind}:** {markdown_escaped(note.text)}{hint}"
    if loud:
        yield ""
        yield loud[0]


def _with_ranges(group: Group, marked: Mapping[str, str]) -> Table:
    columns = shown(group.rows)
    rows = []
    for row in group.rows:
        entries = [column.entry(row) for column in columns]
        texts = (f"{entry.text} [{entry.range}]" if entry.range else entry.text for entry in entries)
        rows.append([marked[row.label], *texts])
    heads = (f"{column.title} {column.unit}".strip() for column in columns)
    return Table(point_words(group.point), ["backend", *heads], rows)
