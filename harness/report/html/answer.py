"""The first screen: who is ahead at each load, how sure that is, what is wrong, and what to run next."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from harness.model import Order, Summary
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.blocks.run import beyond_loads, steps
from harness.report.findings import notes
from harness.report.findings.backend_words import caveats
from harness.report.findings.capacity_words import capacities, carries_more
from harness.report.findings.conclude import WARNINGS, conclude
from harness.report.findings.conclusion import doubts, order, orders
from harness.report.findings.sentences import (
    BEYOND,
    by_metric,
    claims,
    doubts_line,
    sentence,
    waited,
)
from harness.report.findings.verdict_words import confidence
from harness.report.html import figures
from harness.report.html.cells import counted_cells
from harness.report.html.prose import prose
from harness.report.html.source import Source
from harness.report.html.standing import standing
from harness.report.html.tags import Html, code, details, hint, items, join, section, table, tag
from harness.report.view import Group, groups, leading, limits_ms, point_words
from harness.report.wording import capital, listing, plain, were

MOST_DOUBTS = 3  # in a line


def answer(source: Source) -> Html:
    load_groups = groups(source.summary)
    return section(
        "answer",
        "Results",
        tag("div", tag("div", *_conclusion(source, load_groups)), *_chart(source), class_="first lead"),
        *_matrix(source, load_groups),
        tag("div", *wrong(source), *next_steps(source), class_="first"),
        *own_command(source),
    )


def _conclusion(source: Source, load_groups: Sequence[Group]) -> Iterator[Html]:
    summary = source.summary
    if not load_groups:
        yield tag("p", "No cell of this run was finished: there is nothing to compare.")
        return
    for line in carries_more(summary):
        yield tag("p", tag("strong", line))
    for found, meaning in capacities(summary):
        yield tag("p", tag("strong", meaning or found))
        yield from [tag("p", f"{capital(found)}.", class_="muted small")] if meaning else []
    yield from (tag("p", tag("strong", line)) for line in beyond_loads(summary))
    yield from (tag("p", line, class_="doubt small") for line in caveats(summary))
    shown = leading(summary, load_groups)
    yield from (join(_load(source, group)) for group in shown)
    if others := [group for group in load_groups if group not in shown]:
        names = listing([group.point.label for group in others])
        yield details(f"At the other loads: {names}", *(join(_load(source, group)) for group in others))


def _load(source: Source, group: Group) -> Iterator[Html]:
    """The load, the backends by median if there are several, a sentence, what the scenario asks for beyond
    it, and the figures in doubt."""
    verdict = sentence(source.summary, group)
    if len(group.rows) > 1:
        yield standing(source, group, order(source.summary, group))
        yield tag("p", verdict)
    else:
        yield tag("p", tag("strong", f"{capital(point_words(group.point))}."), f" {verdict}")
    for name, text in claims(source.summary, group):
        if name in BEYOND:
            yield tag("p", f"{capital(name)}: {text}.")
    yield from in_doubt(group)


def in_doubt(group: Group) -> Iterator[Html]:
    """The figures in doubt and why; folded if they are many, since each is marked where it stands."""
    found = list(doubts(group))
    if len(found) > MOST_DOUBTS:
        yield details(f"In doubt: {len(found)} of {counted(len(group.rows), 'backend')}", items(found))
    elif found:
        yield tag("p", doubts_line(found), class_="doubt small")


def _matrix(source: Source, load_groups: Sequence[Group]) -> Iterator[Html]:
    """Load against metric: who is ahead, by how much, and whether that is decided."""
    summary = source.summary
    claims = [by_metric(summary, group) for group in load_groups]
    names = list(dict.fromkeys(name for mine in claims for name in mine))
    if not names:
        return
    rows = []
    for group, mine in zip(load_groups, claims, strict=True):
        rankings = {waited(measure(ranking.metric)): ranking for ranking in orders(summary, group)}
        cells = {
            name: listing(list(dict.fromkeys(pair.state for pair in ranking.pairs)))
            for name, ranking in rankings.items()
        }
        cells |= {name: _claim(source, rankings[name], text) for name, text in mine.items()}
        head = _load_in_doubt(group, rankings.values())
        rows.append([head, *(cells.get(name, "") for name in names)])
    over = f"{confidence(summary)} intervals of the geometric mean"
    caption = f"Who is ahead, by {over} (colour: separated from all others)"
    yield table(caption, ["load", *names], rows, class_="claims-by-load")


def _claim(source: Source, ranking: Order, text: str) -> Html:
    """Has the colour of the backend that is separated from all others, if one is."""
    best = ranking.best
    if best is None:
        return tag("span", text)
    alone = ranking.beats_all(best.label)
    return tag("span", text, class_=f"ahead k{source.index(best.label) % 8}" if alone else None)


def _load_in_doubt(group: Group, rankings: Iterable[Order]) -> Html:
    """Marks a load where a compared figure is in doubt; the line below its sentence says which and why."""
    in_doubt = any(position.doubt for ranking in rankings for position in ranking.places)
    mark = tag("small", "figures in doubt", class_="range suspect") if in_doubt else None
    return join([point_words(group.point), mark])


def _chart(source: Source) -> Iterator[Html]:
    """The limited latency against the load for a capacity search; else throughput against the latency that
    decides, and where that is not drawn this latency against the load."""
    summary = source.summary
    usual = [measure(summary.verdict_rules.primary).name, "TTFT p50"]
    wanted = [("trade-off", usual), ("load", usual)]
    if summary.capacity:
        limits = limits_ms(row for group in groups(summary) for row in group.rows)
        wanted.insert(0, ("load", [measure(path).name for path in limits]))
    for family, options in wanted:
        drawn = [chart for chart in source.charts if chart.family == family]
        chart = next((candidate for candidate in drawn if candidate.option in options), None)
        if chart:
            yield figures.figure(chart, files=False)
            return


def next_steps(source: Source) -> Iterator[Html]:
    if source.summary.cells:
        found = prose(steps(source.summary, source.manifest))
        yield tag("div", tag("h3", "What to run next"), *found, class_="small")


def own_command(source: Source) -> Iterator[Html]:
    command = source.manifest.command if source.manifest else None
    if command and source.summary.cells:
        shown = code(plain(shlex.join(command), 400))
        yield tag("p", "This run: ", shown, class_="command")


def note_item(note: notes.Note) -> Html:
    loud = tag("strong", "Warning: ") if note.kind == "warning" else None
    return join([loud, note.text, hint(note.hint)])


def kept_in_mind(source: Source) -> Html | None:
    found = notes.notes(source.summary)
    return section("notes", "Keep in mind", items(map(note_item, found))) if found else None


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
