"""Every figure of each load in a table, and what was compared."""

from collections.abc import Iterator

from harness.model.numbers import counted
from harness.report.findings import notes
from harness.report.findings.grid import Column, Entry, shown
from harness.report.findings.manifest_lines import machine, model
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, join, section, table, tag
from harness.report.text import claims
from harness.report.text.sessions import session_tables
from harness.report.text.table import engine_words, marks
from harness.report.view import Group, first_cells, groups, labels, point_words, repeats, repeats_words
from harness.report.wording import NOT_KNOWN, capital, listing

OPEN_LOADS = 2  # tables; more are folded, but for the highest load
POOLED = (
    "Medians of the repeats, with their range below where they differ; speed-ups, and charts with intervals "
    "over runs, have their geometric mean."
)


def results(source: Source) -> Html | None:
    load_groups = groups(source.summary)
    if not load_groups:
        return None
    tables = [_table(source, group) for group in load_groups]
    shown_tables = tables if len(tables) <= OPEN_LOADS else [tables[-1]]
    folded = tables[:-1] if len(tables) > len(shown_tables) else []
    return section(
        "figures",
        "Every figure",
        tag("p", _compared(source)),
        *([tag("p", POOLED, class_="muted")] if repeats(source.summary) > 1 else []),
        *shown_tables,
        *(
            table(part.title, part.head, part.rows, class_="numbers")
            for part in session_tables(source.summary)
        ),
        *([details(f"At the other {counted(len(folded), 'load')}", *folded)] if folded else []),
        *_claims(source),
        _engines(source),
    )


def _compared(source: Source) -> str:
    summary = source.summary
    names = labels(summary)
    work = "requests"
    if len(names) > 1:
        work = "the same requests" if notes.same_work(summary) else "requests that were not the same"
    where = ", ".join(filter(None, (model(summary), machine(source.host))))
    points = counted(len(groups(summary)), "load point")
    return (
        f"{listing(names)} {'was' if len(names) == 1 else 'were'} given {work} of the scenario "
        f"{summary.scenario}{f' ({where})' if where else ''} at {points}, "
        f"{repeats_words(summary)} each."
    )


def _table(source: Source, group: Group) -> Html:
    columns = shown(group.rows)
    tags = marks(source.summary)
    rows = (
        [join([source.name(row.label), tags[row.label]]), *(_entry(column.entry(row)) for column in columns)]
        for row in group.rows
    )
    owners = [source.index(row.label) for row in group.rows]
    caption = capital(point_words(group.point))
    return table(caption, ["backend", *map(_head, columns)], rows, owners, "numbers")


def _head(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def _entry(entry: Entry) -> Html:
    kind = entry.verdict.lower() or ("unknown" if entry.text == NOT_KNOWN else None)
    value = tag("span", entry.text, class_=kind)
    return join([value, tag("small", entry.range, class_="range")]) if entry.range else value


def _claims(source: Source) -> Iterator[Html]:
    entries = source.summary.claims
    if entries:
        yield tag("p", tag("a", claims.counts(entries), href="#claims"))


def _engines(source: Source) -> Html:
    cells = first_cells(source.summary)
    return items(join([source.name(label), f": {engine_words(cell)}"]) for label, cell in cells.items())
