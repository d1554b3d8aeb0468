"""A history of runs as text: a line per figure with its last values, and what has become slower."""

from collections.abc import Iterator, Sequence

from harness.compare.history import Drift, Series
from harness.report.text import counted, markdown_escaped, markdown_row, number, plain

BARS = "▁▂▃▄▅▆▇█"
SHOWN = 30  # runs of a line


def terminal(found: Sequence[Series], drifts: Sequence[Drift]) -> str:
    return "\n".join([*(_line(one) for one in found), "", *conclusion(found, drifts)])


def markdown(found: Sequence[Series], drifts: Sequence[Drift]) -> str:
    cells = ((_name(one), str(len(one.values)), number(one.values[-1]), spark(one.values)) for one in found)
    rows = map(markdown_row, cells)
    lines = [f"**{markdown_escaped(line)}**" for line in conclusion(found, drifts)]
    return "\n".join([*lines, "", "| figure | runs | last | course |", "|---|---:|---:|---|", *rows])


def _name(one: Series) -> str:
    return plain(f"{one.scenario} {one.label} {one.load.label} {one.metric}")


def _line(one: Series) -> str:
    runs = counted(len(one.values), "run")
    return f"{_name(one)}  {spark(one.values)}  {number(one.values[-1])} ({runs})"


def spark(values: Sequence[float]) -> str:
    """Lowest to highest of the last runs."""
    shown = values[-SHOWN:]
    low, high = min(shown), max(shown)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in shown)


def conclusion(found: Sequence[Series], drifts: Sequence[Drift]) -> Iterator[str]:
    if not found:
        yield "No run in the history: `bench history RUN` adds one."
    elif not drifts:
        yield "No figure is at a worse level than its best."
    for one in drifts:
        kind = "by one step" if one.kind == "step" else "creeping, by several small steps"
        yield plain(
            f"{_name(one.series)}: {100 * (one.ratio - 1):.1f} % worse than its best level, {kind}, "
            f"since {one.since.run} (engine {one.since.engine_version}); "
            f"the best level ended with {one.best.run} (engine {one.best.engine_version})"
        )
