"""A night as Markdown: for the page of a CI job, and kept next to the runs."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from harness.model.metric_table import CAPACITIES
from harness.model.numbers import counted
from harness.nightly.run_suite import Night, Step
from harness.report.blocks.run import verdict as verdict_of
from harness.report.findings.against import place_words
from harness.report.findings.series_words import TWO_LEVELS, conclusion, since_lines, too_few_runs
from harness.report.text import trends
from harness.report.text.markdown_text import markdown
from harness.report.wording import markdown_escaped, markdown_row, plain
from harness.verdicts.history import Series

MOST_OPEN = 6  # figures that became worse, each with a line of its own


def page(night: Night) -> str:
    return "\n".join(_lines(night)) + "\n"


def drawn(night: Night) -> str:
    """The same night as one HTML file, with the course of each figure as a chart."""
    from harness.report.html.several import page_of_courses

    about = night.suite.suite
    since = since_lines(night.judged, night.drifts)
    lines = [*since, *_next_lines(night), *_missing_lines(night), *_drift_lines(night), *night.behind]
    lines += [
        f"{step.entry.title}: {step.state}{f', {why}' if (why := _why(step)) else ''}" for step in night.steps
    ]
    summaries = (step.folder.read_summary() for step in night.steps if step.folder is not None)
    primary = {*CAPACITIES, *(summary.verdict_rules.primary for summary in summaries)}
    return page_of_courses(
        f"Nightly: {about.name}",
        [about.purpose, verdict(night)],
        lines,
        night.courses,
        primary,
        night.suite.gate.since,
    )


def _lines(night: Night) -> Iterator[str]:
    about = night.suite.suite
    yield f"# Nightly: {markdown_escaped(plain(about.name))}\n"
    yield f"{markdown_escaped(plain(about.purpose))}\n"
    yield f"**{markdown_escaped(verdict(night))}**\n"
    for line in since_lines(night.judged, night.drifts):
        yield f"- {markdown_escaped(line)}"
    yield from (f"- {line}" for line in _next_lines(night))
    for line in _missing_lines(night):
        yield f"- {markdown_escaped(plain(line, 400))}"
    if night.drifts or night.missing:
        yield ""
    yield from _each_drift(night)
    for line in night.behind:
        yield f"- {markdown_escaped(plain(line, 400))}"
    if night.behind:
        yield ""
    yield "| run | state | minutes | |"
    yield "|---|---|---:|---|"
    yield from map(_row, night.steps)
    for step in night.steps:
        yield from _conclusion(step)
    yield from _trends(night)
    for step in night.steps:
        yield from _table(step)


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


def _drift_lines(night: Night) -> Iterator[str]:
    return conclusion(night.judged, night.drifts) if night.drifts else iter(())


def _each_drift(night: Night) -> Iterator[str]:
    """A line for each figure; folded where these would fill the screen."""
    lines = [f"- {markdown_escaped(line)}" for line in _drift_lines(night)]
    if len(lines) > MOST_OPEN:
        lines = _folded(f"Each of the {len(lines)} figures", *lines)
    if lines:
        yield from [*lines, ""]


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


def _missing_lines(night: Night) -> Iterator[str]:
    return (f"missing: {scenario}: {place_words(figure)}" for scenario, figure in night.missing)


def _why(step: Step) -> str:
    made_up = "SIMULATED" if step.folder and step.folder.read_summary().simulated else ""
    return "; ".join(filter(None, (made_up, step.why)))


def _row(step: Step) -> str:
    texts = (step.entry.title, step.state, f"{step.wall_s / 60:.1f}", _why(step))
    return markdown_row([*map(plain, texts)])


def _conclusion(step: Step) -> Iterator[str]:
    """What the run of this night shows, as its own page says it."""
    if step.folder is None:
        return
    if text := markdown(verdict_of(step.folder.read_summary())):
        subject = markdown_escaped(plain(step.entry.scenario or step.entry.runs_of))
        yield from ("", f"{subject}:", "", text)


def _trends(night: Night) -> Iterator[str]:
    if judged := night.judged:
        title = f"Course of {counted(len(judged), 'figure')}"
        yield from ("", *_folded(title, trends.table(judged)))


def _table(step: Step) -> Iterator[str]:
    """The run's own table, folded."""
    if step.folder is None or not step.folder.has("table.md"):
        return
    table = step.folder.files.read("table.md").decode().rstrip()
    yield from ("", *_folded(markdown_escaped(plain(step.entry.title)), table))


def _folded(title: str, *lines: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]
