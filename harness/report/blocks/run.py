"""What is said of a run, in order: its verdict load by load, its tables, and what to keep in mind."""

from collections.abc import Iterable, Iterator, Sequence

from harness.model import Manifest, Summary
from harness.model.numbers import counted
from harness.report.blocks.block import Block, Figures, Gap, Line, Outline, Title
from harness.report.findings import verdict_words
from harness.report.findings.accuracy_words import accuracy_lines
from harness.report.findings.backend_words import caveats, engine_words, marked_names
from harness.report.findings.capacity_words import capacity_lines
from harness.report.findings.conclude import conclude
from harness.report.findings.conclusion import speedup
from harness.report.findings.grid import shown
from harness.report.findings.next_steps import reason_and_time
from harness.report.findings.notes import banner, no_verdict, notes
from harness.report.findings.per_user_words import asked_speed_lines
from harness.report.findings.sentences import BEYOND, GOODPUT, IN_DOUBT, Claim, claims, load_words, under_load
from harness.report.findings.stopping import pairing_lines
from harness.report.tables.agreement_tables import agreement_tables
from harness.report.tables.engines import engine_tables
from harness.report.tables.per_user import per_user_tables
from harness.report.tables.sessions import session_tables
from harness.report.tables.subject import subject_tables
from harness.report.view import Row, asked_words, groups, labels, leading, point_words, repeats, repeats_words
from harness.report.wording import plain
from harness.verdicts.rules import ONE_START

LABEL_LIMIT = 40
TABLES = (subject_tables, per_user_tables, session_tables, engine_tables, agreement_tables)


def whole(summary: Summary, spread: str, then: Iterable[Block] = ()) -> Iterator[Block]:
    """Everything. `spread`: what stands next to a median. `then`: what follows from the verdict."""
    marked = marked_names(summary, LABEL_LIMIT)
    below = list(verdict_words.lines(summary))
    yield from (Title(headline(summary, spread), banner(summary)), Gap())
    yield from verdict(summary, below)
    yield from then
    yield from _figures(summary)
    for tables in TABLES:
        yield from tables(summary)
    yield Gap()
    yield from (Line(f"{marked[label]}: {engine}") for label, engine in engine_words(summary).items())
    yield from map(Line, below)
    for note in notes(summary):
        yield Line(note.text, "warning" if note.kind == "warning" else "", note.kind, note.hint)
    yield Line(banner(summary), "loud")


def headline(summary: Summary, spread: str) -> str:
    count, names = repeats(summary), labels(summary)
    pooled = f"; median of {repeats_words(summary)}, {spread}" if count > 1 else ""
    what = counted(len(names), "backend") if names else "nothing measured"
    asked = asked_words(summary)
    return plain(f"{summary.scenario}: {what}{f'; {asked}' if asked else ''}{pooled}")


def verdict(summary: Summary, below: Sequence[str] = ()) -> Iterator[Block]:
    """The first lines wherever a run is shown: of a capacity search, of each load, and the meaning of the
    figures in brackets, those of the verdicts `below` included."""
    yield from map(Line, (*capacity_lines(summary), *beyond_loads(summary)))
    found = _of_loads(summary)
    yield Outline(
        [
            (load, [Line(text, "doubt" if name == IN_DOUBT else "", name) for name, text in mine])
            for load, mine in found
        ]
    )
    yield from (Line(line, "doubt") for line in caveats(summary))
    texts = [*(text for _load, mine in found for _name, text in mine), *below]
    yield from (Line(line, "muted") for line in (_intervals(summary, texts), *pairing_lines(summary)))


def beyond_loads(summary: Summary) -> Iterator[str]:
    """What is not of one load, apart from the capacity, whose forms differ: speeds, no verdict, accuracy."""
    yield from asked_speed_lines(summary)
    yield from verdict_words.knee_lines(summary)
    if len(labels(summary)) == 1:
        yield from under_load(summary)
    yield from filter(None, [no_verdict(summary)])
    yield from verdict_words.noise_lines(summary)
    yield from accuracy_lines(summary)


def steps(summary: Summary, manifest: Manifest | None = None) -> Iterator[Line]:
    """What to run next, and why."""
    for step in conclude(summary, manifest).next_steps:
        do = f"`{step.do}`" if step.is_command else step.do
        yield Line(f"{reason_and_time(step)}: {do}", "advice")


def _of_loads(summary: Summary) -> list[tuple[str, list[Claim]]]:
    """The claims of each load, without verdicts if the run says them as a whole, or has none.

    Of a search for the capacity, those of the loads that are carried, without goodput: that is the capacity.
    """
    all_loads = groups(summary)
    course = len(labels(summary)) == 1 and (any(True for _ in under_load(summary)) or summary.knees)
    found = [
        (load_words(group.point), [
            claim for claim in claims(summary, group) if claim[0] != GOODPUT or not summary.capacity
        ])
        for group in (leading(summary, all_loads) if summary.capacity else all_loads)
    ]  # fmt: skip
    if not course and not no_verdict(summary):
        return found
    return [(load, [line for line in mine if line[0] in (*BEYOND, IN_DOUBT)]) for load, mine in found]


def _intervals(summary: Summary, texts: Sequence[str]) -> str:
    """The meaning of the figures in brackets; "" if none of the texts has that of a pair."""
    pairs = [pair for entry in summary.comparison if (pair := speedup(entry)).times]
    found = [pair for pair in pairs if any(pair.between in text for text in texts)]
    if not found:
        return ""
    over = f"{verdict_words.confidence(summary)} intervals of the geometric mean"
    meaning = f"In brackets: {over} over {verdict_words.runs(summary)}."
    if any(pair.state == "undecided" and pair.times and pair.times.low > 1 for pair in found):
        meaning += (
            " Undecided though 1× lies outside: the difference may be too small to count, or chance among so "
            "many comparisons."
        )
    if summary.verdict_rules.unit == ONE_START:
        meaning += " Noise that outlasts a run makes them too narrow; --pairing blocks allows for it."
    return meaning


def _figures(summary: Summary) -> Iterator[Block]:
    """A grid per load, or a row per load if there is one backend."""
    by_load, marked = groups(summary), marked_names(summary, LABEL_LIMIT)
    if len(marked) == 1 and len(by_load) > 1:
        names = ["load", *(point_words(group.point) for group in by_load)]
        yield from (Gap(), grid("", names, [row for group in by_load for row in group.rows]))
        return
    for group in by_load:
        names = ["backend", *(marked[row.label] for row in group.rows)]
        yield from (Gap(), grid(point_words(group.point), names, group.rows))


def grid(title: str, names: Sequence[str], rows: Sequence[Row]) -> Figures:
    columns = [(column, [*map(column.entry, rows)]) for column in shown(rows)]
    return Figures(title, [(name,) for name in names], columns)
