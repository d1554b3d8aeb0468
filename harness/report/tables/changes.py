"""Changes of a run against a baseline, a table per load."""

from collections.abc import Iterator, Sequence

from harness.model import ComparedFigure, ComparedPair, Interval, LoadPoint
from harness.model.grouping import grouped
from harness.model.measures import measure
from harness.model.numbers import number, signed
from harness.report.findings.against import pair_words
from harness.report.wording import NOT_KNOWN, Table

PRIMARY = "*"


def change_table(pair: ComparedPair, figures: Sequence[ComparedFigure]) -> Table:
    """`figures`: those of one load."""
    interval = f"{100 * pair.verdict_rules.confidence:.4g}% interval"
    head = ("metric", "baseline", "new", "change", interval, "verdict")
    title = f"{pair_words(pair)}, {figures[0].load.label}"
    return Table(title, head, [*map(finding_row, figures)], figures=False)


def by_load(pair: ComparedPair) -> list[tuple[LoadPoint, list[ComparedFigure]]]:
    return list(grouped((figure.load, figure) for figure in pair.findings).items())


def finding_row(figure: ComparedFigure) -> tuple[str, ...]:
    shown = measure(figure.metric)
    after, before = figure.values
    new, old = (NOT_KNOWN if value is None else shown.figure(value) for value in figure.values)
    middle, interval = NOT_KNOWN, NOT_KNOWN
    if figure.verdict == "not comparable":
        pass
    elif figure.ratio:
        low, middle, high = changes(figure.ratio)
        interval = f"{low} to {high}"
    elif after and before and min(after, before) > 0:
        middle = change(after / before)
    mark = PRIMARY if figure.primary else ""
    verdict = "undecided" if figure.verdict == "not enough runs" else figure.verdict
    return (shown.title + mark, old, new, middle, interval, verdict)


def legend(figures: Sequence[ComparedFigure]) -> str:
    """How to read a table of these figures."""
    marked = f"{PRIMARY} marks the primary metric. " if any(figure.primary for figure in figures) else ""
    partly = " A change is of the repeats that are compared." if any(map(_of_fewer, figures)) else ""
    return f"{marked}The figures are geometric means of each run's repeats.{partly}"


def _of_fewer(figure: ComparedFigure) -> bool:
    """Whether some repeats of the two figures are not in their change: without a partner, or not steady."""
    after, before = figure.values
    if figure.method != "runs" or not (figure.ratio and after and before):
        return False
    return abs(after / before / figure.ratio.estimate - 1) > 0.0005  # what a reader could see


def changes(ratio: Interval) -> Iterator[str]:
    """Both ends are written as the middle is."""
    return (change(end, ratio.estimate) for end in ratio)


def change(ratio: float, like: float | None = None) -> str:
    """`+8.1%`; from a doubling on, or where `like` is one, `2.3 ×`."""
    return f"{number(ratio)} ×" if (like or ratio) >= 2 else f"{signed(100 * (ratio - 1))}%"
