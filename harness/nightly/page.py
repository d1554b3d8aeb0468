"""A night as Markdown: for the page of a CI job, and kept next to the runs."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from harness.model.metric_table import CAPACITIES
from harness.model.numbers import counted
from harness.nightly.run_suite import Night, Step
from harness.report.blocks.block import Block, Fold, Line, Verbatim
from harness.report.blocks.run import verdict as verdict_of
from harness.report.findings.against import place_words
from harness.report.findings.series_words import TWO_LEVELS, conclusion, since_lines, too_few_runs
from harness.report.text import trends
from harness.report.text.markdown_text import markdown
from harness.report.wording import Table, markdown_escaped, plain
from harness.verdicts.history import Series

MOST_OPEN = 6  # figures that became worse, each with a line of its own


def page(night: Night) -> str:
    """Has each run's own table as it is stored."""
    title = f"# Nightly: {markdown_escaped(plain(night.suite.suite.name))}"
    course = [Fold(f"Course of {counted(len(night.judged), 'figure')}", [*trends.course(night.judged)])]
    tables = chain.from_iterable(map(_table, night.steps))
    blocks = [*_first(night), *_runs(night), *(course if night.judged else ()), *tables]
    return f"{title}\n\n{markdown(blocks)}\n"


def drawn(night: Night) -> str:
    """The same night as one HTML file, with the course of each figure as a chart."""
    from harness.report.html.several import page_of_courses

    summaries = (step.folder.read_summary() for step in night.steps if step.folder is not None)
    primary = {*CAPACITIES, *(summary.verdict_rules.primary for summary in summaries)}
    title, since = f"Nightly: {night.suite.suite.name}", night.suite.gate.since
    return page_of_courses(title, _first(night), _runs(night), night.courses, primary, since)


def _first(night: Night) -> Iterator[Block]:
    """What an operator asks in the morning, and what became of each run."""
    yield Line(plain(night.suite.suite.purpose), "paragraph")
    yield Line(verdict(night), "verdict")
    yield from map(Line, since_lines(night.judged, night.drifts))
    yield from (Line(line, "advice") for line in _next_lines(night))
    for scenario, figure in night.missing:
        yield Line(plain(f"missing: {scenario}: {place_words(figure)}", 400))
    worse = [*map(Line, conclusion(night.judged, night.drifts))] if night.drifts else []
    many = len(worse) > MOST_OPEN
    yield from [Fold(f"Each of the {len(worse)} figures", worse)] if many else worse
    yield from (Line(plain(line, 400)) for line in night.behind)
    yield Table("Runs", ("run", "minutes", "state"), [*map(_row, night.steps)], figures=False)


def _runs(night: Night) -> Iterator[Block]:
    """What each run of this night shows, as its own page says it."""
    for step in night.steps:
        if step.folder is not None:
            yield Line(f"{plain(step.entry.scenario or step.entry.runs_of)}:", "paragraph")
            yield from verdict_of(step.folder.read_summary())


def verdict(night: Night) -> str:
    """One sentence: what got worse for good, or that nothing did, and what is missing."""
    missing = sum(step.state != "measured" for step in night.steps) + len(night.suite.run) - len(night.steps)
    rest = f" Runs missing: {missing} of {len(night.suite.run)}." if missing else ""
    if night.unkept:
        rest += f" Nothing of it is in the history: {night.unkept}; `bench history RUN` adds it later."
    if night.interrupted:
        rest = f" The night was interrupted.{rest}"
    if night.missing:
        rest += f" Missing, INVALID or failing more than in earlier nights: {len(night.missing)}."
    judged = night.judged
    if not night.courses and all(step.state == "failed" for step in night.steps):
        return f"Nothing was measured tonight.{rest}"
    unjudged = sum(len(course.entries) < TWO_LEVELS for course in judged)
    if 0 < unjudged < len(judged):
        rest += f" Not judged yet: {counted(unjudged, 'figure')} of fewer than {TWO_LEVELS} nights."
    if night.suite.gate.since:
        rest += f" What became worse before {night.suite.gate.since} is accepted."
    if night.drifts:
        worse = len(night.drifts)
        new = {0: "none new", worse: "new tonight"}.get(night.new, f"{night.new} of them new")
        return f"Worse for several nights: {counted(worse, 'figure')}, {new}.{rest}"
    if night.unfinished:
        return f"No run was measured to its end, so this night has not passed.{rest}"
    return f"{_no_drift(judged)}; {counted(night.nights, 'run')} in the history.{rest}"


def _no_drift(courses: Sequence[Series]) -> str:
    if few := too_few_runs(courses) if courses else "no figure of this night is in the history":
        return f"Nothing can be judged: {few}"
    return "No figure has been at a worse level for several nights"


def _next_lines(night: Night) -> Iterator[str]:
    """How to look at the newest level that is worse, and how to accept it."""
    if night.drifts:
        last = max(night.drifts, key=lambda drift: drift.since.created_utc)
        folders = (step.folder.path.parent for step in night.steps if step.folder is not None)
        out = "".join(f" --out {shlex.quote(plain(str(path)))}" for path in islice(folders, 1))
        runs = f"{plain(last.best.run)} {plain(last.since.run)}{out}"
        yield (
            f"`bench compare {runs}` names all that differs between the two nights; "
            f'`since = "{last.since.created_utc[:10]}"` in `[gate]` accepts the level.'
        )


def _row(step: Step) -> list[str]:
    made_up = "SIMULATED" if step.folder and step.folder.read_summary().simulated else ""
    state = ": ".join(filter(None, (step.state, "; ".join(filter(None, (made_up, step.why))))))
    return [*map(plain, (step.entry.title, f"{step.wall_s / 60:.1f}", state))]


def _table(step: Step) -> Iterator[Block]:
    if step.folder is not None and step.folder.has("table.md"):
        table = step.folder.files.read("table.md").decode().rstrip()
        yield Fold(plain(step.entry.title), [Verbatim(table)])
