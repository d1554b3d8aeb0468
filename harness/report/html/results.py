"""Every figure of each load in a table, and what was compared."""

from harness.model.numbers import counted
from harness.report.findings import claim_words, notes
from harness.report.findings.backend_words import engine_words, marks
from harness.report.findings.grid import Column, Entry, shown
from harness.report.findings.manifest_lines import machine, model
from harness.report.findings.per_user_words import no_shared_speed, per_user_lines
from harness.report.html.source import Source, backend_table
from harness.report.html.tags import Html, details, items, join, section, tag, text_table
from harness.report.tables.per_user import per_user_tables
from harness.report.tables.sessions import session_tables
from harness.report.tables.subject import subject_tables
from harness.report.view import Group, groups, labels, leading, point_words, repeats, repeats_words
from harness.report.wording import NOT_KNOWN, capital, listing, were

POOLED = (
    "Medians of the repeats, with their range below where they differ; speed-ups, and charts with intervals "
    "over runs, have their geometric mean."
)


def results(source: Source) -> Html | None:
    load_groups = groups(source.summary)
    if not load_groups:
        return None
    shown_first = leading(source.summary, load_groups)
    folded = [_table(source, group) for group in load_groups if group not in shown_first]
    published = source.summary.claims
    return section(
        "figures",
        "Every figure",
        tag("p", _compared(source)),
        tag("p", POOLED, class_="muted") if repeats(source.summary) > 1 else None,
        *(_table(source, group) for group in shown_first),
        *(tag("p", f"{capital(line)}.", class_="muted") for line in notes.prices(source.summary)),
        *map(text_table, (*subject_tables(source.summary), *session_tables(source.summary))),
        *map(text_table, per_user_tables(source.summary)),
        *(tag("p", f"{capital(line)}.") for line in per_user_lines(source.summary)),
        *(tag("p", f"{capital(line)}.", class_="muted") for line in no_shared_speed(source.summary)),
        details(f"At the other {counted(len(folded), 'load')}", *folded) if folded else None,
        tag("p", tag("a", claim_words.counts(published), href="#claims")) if published else None,
        _engines(source),
    )


def _compared(source: Source) -> str:
    summary = source.summary
    names = labels(summary)
    work = "requests"
    if len(names) > 1:
        work = "the same requests" if notes.same_work(summary) else "requests that were not the same"
    where = ", ".join(filter(None, (model(summary), machine(source.host, summary))))
    loads = len(groups(summary))
    each = " each" if len(names) > 1 or loads > 1 else ""
    return (
        f"{listing(names)} {were(len(names))} given {work} of the scenario "
        f"{summary.scenario}{f' ({where})' if where else ''} at "
        f"{counted(loads, 'load point')}, {repeats_words(summary)}{each}."
    )


def _table(source: Source, group: Group) -> Html:
    columns = shown(group.rows)
    tags = marks(source.summary)
    rows = []
    for row in group.rows:
        name = join([source.name(row.label), tags[row.label]])
        rows.append((row.label, [name, *(_entry(column.entry(row)) for column in columns)]))
    caption = capital(point_words(group.point))
    return backend_table(source, caption, ["backend", *map(_head, columns)], rows, "numbers")


def _head(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def _entry(entry: Entry) -> Html:
    kind = entry.verdict.lower() or ("unknown" if entry.text == NOT_KNOWN else None)
    value = tag("span", entry.text, class_=kind)
    return join([value, tag("small", entry.range, class_="range")]) if entry.range else value


def _engines(source: Source) -> Html:
    words = engine_words(source.summary)
    return items(join([source.name(label), f": {engine}"]) for label, engine in words.items())
