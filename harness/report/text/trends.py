"""A history of runs as text: a line per figure with its last values, and what has become slower."""

from collections.abc import Iterator, Sequence

from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.blocks.block import Block, Gap, Line
from harness.report.findings.series_words import conclusion, names, since_lines
from harness.report.text import markdown_text, terminal_text
from harness.report.wording import Table
from harness.verdicts.history import Drift, Series

BARS = "▁▂▃▄▅▆▇█"
SHOWN = 30  # runs of a line
EXPLAINED = "Each value is the geometric mean of a run's repeats; a run's own tables have their median."
SEARCHED = "A capacity is the answer of a run's search."
UNBROKEN = 10_000  # columns
LEAST_SPAN = 0.1  # of the highest value: noise of a per cent would look like a step


def terminal(series: Sequence[Series], drifts: Sequence[Drift], columns: int = UNBROKEN) -> str:
    texts = names(series)
    longest = max(map(len, texts), default=0)
    rows = [
        f"{name:<{longest}}  {spark(figure.values)}  {_last(figure)} ({counted(len(figure.values), 'run')})"
        for name, figure in zip(texts, series, strict=True)
    ]
    below = (*_explained(series), *conclusion(series, drifts), *since_lines(series, drifts))
    return terminal_text.terminal([*map(Line, rows), Gap(), *map(Line, below)], columns, color=False)


def markdown(series: Sequence[Series], drifts: Sequence[Drift]) -> str:
    found = (*since_lines(series, drifts), *conclusion(series, drifts))
    return markdown_text.markdown([*(Line(line, "verdict") for line in found), *course(series)])


def course(series: Sequence[Series]) -> Iterator[Block]:
    """A row for each figure, without what follows from it."""
    yield from (Line(line, "paragraph") for line in _explained(series))
    rows = [
        (name, str(len(figure.values)), _last(figure), spark(figure.values))
        for name, figure in zip(names(series), series, strict=True)
    ]
    yield Table("", ("figure", "runs", "last", "course"), rows, figures=False)


def _explained(series: Sequence[Series]) -> Iterator[str]:
    if any(figure.load for figure in series):
        yield EXPLAINED
    if not all(figure.load for figure in series):
        yield SEARCHED


def _last(series: Series) -> str:
    shown = measure(series.metric)
    return shown.with_unit(shown.figure(series.values[-1]))


def spark(values: Sequence[float]) -> str:
    """Scaled from the lowest to the highest of the last runs, or a little beyond if these are alike."""
    shown = values[-SHOWN:]
    low, high = min(shown), max(shown)
    span = max(high - low, LEAST_SPAN * high) or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)
