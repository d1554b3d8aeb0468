"""The course of figures over runs: a chart each, open where it changed or its metric is the primary one."""

from collections.abc import Sequence, Set
from dataclasses import replace

from harness.model.numbers import counted
from harness.report.charts.course import course, step_words
from harness.report.findings.series_words import names, too_few_runs
from harness.report.html.figures import figure
from harness.report.html.tags import Html, details, items, section, tag
from harness.verdicts.history import LEAST_NIGHTS, Change, Series, changes

MOST_OPEN = 6  # charts; further ones are folded
EXPLAINED = (
    "One point per run, the geometric mean of its repeats or the capacity that its search found, labelled "
    "with the version of the engine where that changes. A dotted line is a level; a level needs "
    f"{LEAST_NIGHTS} runs, so that one odd run is no change."
)


def courses(series: Sequence[Series], primary: Set[str], since: str = "") -> Html | None:
    """`primary`: the metrics that decide. `since`: day from which levels are judged; "" judges all.

    None if no figure has several runs.
    """
    drawn = [(entry, chart) for entry in series if (chart := course(entry)) is not None]
    if not drawn:
        return None
    several = [entry for entry, _chart in drawn]
    titles = [chart.title for _entry, chart in drawn]
    shown = titles if len(set(titles)) == len(titles) else names(several)
    pictures = [
        (entry, figure(replace(chart, title=title)))
        for (entry, chart), title in zip(drawn, shown, strict=True)
    ]
    found = [
        (change, name)
        for entry, name in zip(several, names(several), strict=True)
        for change in changes(entry)
    ]
    moved = [change.series for change, _name in found if not _is_accepted(change, since)]
    pictures.sort(key=lambda picture: picture[0] not in moved)
    first = [picture for entry, picture in pictures if entry in moved or entry.metric in primary][:MOST_OPEN]
    others = [picture for _entry, picture in pictures if picture not in first]
    return section(
        "courses",
        "Over the runs",
        tag("p", EXPLAINED, class_="muted"),
        _changed(found, several, since),
        _grid(first),
        details(f"Other figures: {counted(len(others), 'chart')}", _grid(others)) if others else None,
    )


def _grid(pictures: Sequence[Html]) -> Html:
    return tag("div", *pictures, class_="figures")


def _is_accepted(change: Change, since: str) -> bool:
    return change.before.created_utc[:10] < since


def _changed(found: Sequence[tuple[Change, str]], series: Sequence[Series], since: str) -> Html:
    """Every change of level, worst first and accepted ones last; without any, how many runs it would take."""
    if found:
        return items(
            tag("span", f"{name}: {step_words(change)}", class_="slower" if change.ratio > 1 else "faster")
            if not _is_accepted(change, since)
            else f"accepted: {name}: {step_words(change)}"
            for change, name in sorted(found, key=lambda step: (_is_accepted(step[0], since), -step[0].ratio))
        )
    few = too_few_runs(series)
    return tag("p", f"No change of level was found{f': {few}' if few else ''}.")
