"""The course of figures over runs: a chart each, with what changed; the primary metric is open."""

from collections.abc import Sequence, Set

from harness.model.numbers import counted
from harness.report.charts.course import change_words, course
from harness.report.html.figures import figure
from harness.report.html.tags import Html, details, items, section, tag
from harness.report.text.trends import too_few_runs
from harness.verdicts.history import LEAST_NIGHTS, Series, changes

MOST_OPEN = 6  # charts of the primary metric; with more they are folded as well
EXPLAINED = (
    "One point per run, labelled with the version of the engine where that changes. A dotted line is a "
    f"level; a level needs {LEAST_NIGHTS} runs, so that one odd run is no change."
)


def courses(series: Sequence[Series], primary: Set[str]) -> Html | None:
    """`primary`: the metrics that decide. None if no figure has several runs."""
    drawn = [(entry, figure(chart)) for entry in series if (chart := course(entry)) is not None]
    if not drawn:
        return None
    first = [picture for entry, picture in drawn if entry.metric in primary][:MOST_OPEN]
    others = [picture for _one, picture in drawn if picture not in first]
    return section(
        "courses",
        "Over the runs",
        tag("p", EXPLAINED, class_="muted"),
        _changed([entry for entry, _made in drawn]),
        tag("div", *first, class_="figures"),
        *([details(f"Other figures: {counted(len(others), 'chart')}", _grid(others))] if others else []),
    )


def _grid(pictures: Sequence[Html]) -> Html:
    return tag("div", *pictures, class_="figures")


def _changed(series: Sequence[Series]) -> Html:
    """Every change of level, worst first; if none was found, how many runs it would take."""
    found = sorted(
        (change for entry in series for change in changes(entry)), key=lambda change: -change.ratio
    )
    if found:
        return items(
            tag("span", change_words(change), class_="slower" if change.ratio > 1 else "faster")
            for change in found
        )
    few = too_few_runs(series)
    return tag("p", f"No change of level was found{f': {few}' if few else ''}.")
