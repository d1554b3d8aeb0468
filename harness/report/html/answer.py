"""The first section: rank, a sentence per load and a chart; then every figure, and what to keep in mind."""

from collections.abc import Iterator, Sequence

from harness.report import claims, notes
from harness.report.conclusion import doubts
from harness.report.conditions import machine, model
from harness.report.grid import Column, Entry, shown
from harness.report.html import figures, verdicts
from harness.report.html.source import Source
from harness.report.html.tags import Html, items, join, section, table, tag
from harness.report.html.verdict_evidence import evidence
from harness.report.measures import measure
from harness.report.sentences import by_metric, doubts_line, sentence
from harness.report.table import engine_words, marks
from harness.report.text import NOT_KNOWN, counted, listing
from harness.report.verdicts import SIGNS, confidence, noise_lines, primary
from harness.report.view import Group, first_cells, groups, labels, point_words, repeats, repeats_words


def answer(source: Source) -> Html:
    summary = source.summary
    load_groups = groups(summary)
    undecided = notes.no_verdict(summary)
    return section(
        "answer",
        "Results",
        tag("p", _compared(source)),
        *_matrix(source, load_groups),
        tag("div", tag("div", *_loads(source, load_groups)), *_chart(source), class_="first"),
        *([tag("p", tag("strong", undecided))] if undecided else []),
        tag("h3", "Every figure"),
        *(_table(source, group) for group in load_groups),
        *verdicts.tables(source),
        *verdicts.other_ranks(source),
        *evidence(source),
        *(tag("p", line) for line in noise_lines(summary)),
        *_claims(source),
        _engines(source),
        tag("h3", "Keep in mind"),
        items(map(_note, notes.notes(summary))),
    )


def _loads(source: Source, load_groups: Sequence[Group]) -> Iterator[Html]:
    """Of each load its rank line, where anything was decided, and a sentence."""
    ranked = verdicts.ranks(source.summary)
    for group in load_groups:
        load = tag("small", point_words(group.point).capitalize())
        first, *others = ranked.get(group.point) or [""]
        yield tag("p", load, first, class_="rank")
        yield from (tag("p", line, class_="rank") for line in others)
        yield tag("p", sentence(source.summary, group))
        if line := doubts_line(list(doubts(group))):
            yield tag("p", line, class_="suspect small")
    if ranked:
        yield tag("p", f"{SIGNS}.", class_="muted small")


def _matrix(source: Source, load_groups: Sequence[Group]) -> Iterator[Html]:
    """Load against metric: who is ahead, by how much, and whether that is decided."""
    claims_of = {group.point: by_metric(source.summary, group) for group in load_groups}
    names = list(dict.fromkeys(name for mine in claims_of.values() for name in mine))
    if not names:
        return
    rows = (
        [_load_in_doubt(group), *(mine.get(name, "") for name in names)]
        for group in load_groups
        if (mine := claims_of[group.point])
    )
    caption = f"Who is ahead, with {confidence(source.summary)} intervals"
    yield table(caption, ["load", *names], rows)


def _load_in_doubt(group: Group) -> Html:
    """A load whose figures are not all VALID is marked; the line below its rank says which and why."""
    in_doubt = any(doubts(group))
    mark = [tag("small", "figures in doubt", class_="range suspect")] if in_doubt else []
    return join([point_words(group.point), *mark])


def _chart(source: Source) -> Iterator[Html]:
    """What the ranking is about, against the load."""
    drawn = [chart for chart in source.charts if chart.family == "load"]
    wanted = measure(primary(source.summary)).name
    chart = next((drawing for drawing in drawn if drawing.option == wanted), next(iter(drawn), None))
    if chart:
        yield figures.figure(chart)


def _claims(source: Source) -> Iterator[Html]:
    entries = source.summary.claims
    if entries:
        yield tag("p", tag("a", claims.counts(entries), href="#claims"))


def _compared(source: Source) -> str:
    summary = source.summary
    names = labels(summary)
    if not names:
        return "No cell of this run was finished: there is nothing to compare."
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
    pooled = (
        " (median of the repeats, their range below where they differ; speed-ups and charts with intervals "
        "are of their geometric mean)"
        if repeats(source.summary) > 1
        else ""
    )
    caption = f"{point_words(group.point).capitalize()}{pooled}"
    owners = [source.index(row.label) for row in group.rows]
    return table(caption, ["backend", *map(_head, columns)], rows, owners, "numbers")


def _head(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def _entry(entry: Entry) -> Html:
    kind = entry.verdict.lower() or ("unknown" if entry.text == NOT_KNOWN else None)
    value = tag("span", entry.text, class_=kind)
    return join([value, tag("small", entry.range, class_="range")]) if entry.range else value


def _engines(source: Source) -> Html:
    cells = first_cells(source.summary)
    return items(join([source.name(label), f": {engine_words(cell)}"]) for label, cell in cells.items())


def _note(note: notes.Note) -> Html:
    loud = [tag("strong", "Warning: ")] if note.kind == "warning" else []
    hint = [tag("span", f"Hint: {note.hint}", class_="hint")] if note.hint else []
    return join([*loud, note.text, *hint])
