"""A history of runs as text: a line per figure with its last values, and what has become slower."""

from collections.abc import Iterator, Sequence

from harness.model.measures import measure
from harness.report.wording import counted, markdown_escaped, markdown_row, number, plain
from harness.verdicts.history import Drift, Series

BARS = "▁▂▃▄▅▆▇█"
SHOWN = 30  # runs of a line


def terminal(series: Sequence[Series], drifts: Sequence[Drift]) -> str:
    return "\n".join([*(_line(figure) for figure in series), "", *conclusion(series, drifts)])


def markdown(series: Sequence[Series], drifts: Sequence[Drift]) -> str:
    cells = (
        (_name(figure), str(len(figure.values)), number(figure.values[-1]), spark(figure.values))
        for figure in series
    )
    rows = map(markdown_row, cells)
    lines = [f"**{markdown_escaped(line)}**" for line in conclusion(series, drifts)]
    return "\n".join([*lines, "", "| figure | runs | last | course |", "|---|---:|---:|---|", *rows])


def _name(series: Series) -> str:
    made_up = "SIMULATED " if series.simulated else ""
    name = f"{series.scenario} {series.label} {series.load.label} {measure(series.metric).name}"
    return plain(f"{made_up}{name}")


def _line(series: Series) -> str:
    runs = counted(len(series.values), "run")
    return f"{_name(series)}  {spark(series.values)}  {number(series.values[-1])} ({runs})"


def spark(values: Sequence[float]) -> str:
    """Scaled from the lowest to the highest of the last runs."""
    shown = values[-SHOWN:]
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)


def conclusion(series: Sequence[Series], drifts: Sequence[Drift]) -> Iterator[str]:
    if not series:
        yield "No run in the history: `bench history RUN` adds one."
    elif not drifts:
        yield "No figure is at a worse level than its best."
    for drift in drifts:
        kind = "by one step" if drift.kind == "step" else "creeping, by several small steps"
        yield plain(
            f"{_name(drift.series)}: {100 * (drift.ratio - 1):.1f} % worse than its best level, {kind}, "
            f"since {drift.since.run} (engine {drift.since.engine_version}); "
            f"the best level ended with {drift.best.run} (engine {drift.best.engine_version})"
        )
