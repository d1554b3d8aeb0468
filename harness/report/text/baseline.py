"""Runs compared with a baseline, as text and as Markdown for a pull request."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.model import (
    ComparedConclusion,
    ComparedFigure,
    ComparedPair,
    ComparedRun,
    Difference,
    GateRow,
    LoadPoint,
    MissingFigure,
    Order,
    Place,
    RunComparison,
)
from harness.model.lines import wrap
from harness.model.measures import measure
from harness.model.numbers import counted, number, signed
from harness.report.findings.against import answers
from harness.report.findings.conclusion import order_of, speedup
from harness.report.text.terminal_text import BOLD, Paint, hanging
from harness.report.view import point_words
from harness.report.wording import NOT_KNOWN, aligned, listing, markdown_escaped, markdown_row, plain
from harness.verdicts.accuracy import METRIC
from harness.verdicts.missing import Missing

PRIMARY = "*"
LEGEND = "The figures are geometric means of each run's repeats."
LEGEND_PRIMARY = f"{PRIMARY} marks the primary metric. {LEGEND}"


def terminal(document: RunComparison, columns: int, color: bool) -> str:
    return "\n".join(_terminal(document, columns, Paint(color)))


def markdown(document: RunComparison) -> str:
    return "\n".join(_markdown(document))


def _terminal(document: RunComparison, columns: int, paint: Paint) -> Iterator[str]:
    for answer, text in enumerate(answers(document)):
        for line in wrap(text, columns, subsequent_indent="  "):
            yield paint(line, "" if answer else BOLD)
    for line in missing_lines(document):
        yield from wrap(line, columns, subsequent_indent="  ")
    for pair in document.pairs:
        yield ""
        yield from wrap(pair_words(pair), columns, subsequent_indent="  ")
        if not pair.findings:
            yield "  no load point in common"
        for point, findings in by_load(pair):
            yield f"  {point_words(point)}"
            rows = [heads(pair), *map(finding_row, findings)]
            yield from (f"  {line}".rstrip() for line in aligned(rows, columns - 2, figures=False))
            yield from _indented([legend(findings)], columns)
            yield from _indented(_reasons(findings), columns)
        yield from _indented((f"differs: {_difference(entry)}" for entry in pair.differences), columns)
        yield from _indented(accuracy_lines(document, pair), columns)
        if pair.refused:
            yield from _indented([f"refused: {plain(pair.refused)}; --force compares all the same"], columns)
    yield ""
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield from hanging(f"{role:<10}", run_words(run), columns, cut=False)


def _indented(lines: Iterable[str], columns: int) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, columns, initial_indent="  ", subsequent_indent="    ")


def accuracy_lines(document: RunComparison, pair: ComparedPair) -> Iterator[str]:
    """`accuracy, one at a time: loses 3.1 to 8.4 points (31 lost, 6 gained of 658)`."""
    for row in document.accuracy:
        if (row.a, row.b) == (pair.a, pair.b):
            yield plain(f"accuracy, {'under load' if row.under_load else 'one at a time'}: {row.why}")


def missing_lines(document: RunComparison) -> Iterator[str]:
    """`missing: llamacpp c8: INVALID failed-requests 3 of 5`, what was allowed included."""
    runs = {figure.run for figure in document.missing}
    for figure in document.missing:
        run = f" ({figure.run})" if len(runs) > 1 else ""
        allowed = " (allowed)" if figure.allowed else ""
        yield plain(f"missing: {place_words(figure)}{run}{allowed}", 400)


def gate_lines(rows: Sequence[GateRow], *, failed: bool) -> Iterator[str]:
    """The result of --fail-on: one line, and one for each row."""
    if failed:
        yield "gate: failed"
    else:
        yield "gate: passed, because --undecided pass accepts:" if rows else "gate: passed"
    for row in rows:
        yield f"  {plain(f'{row.kind}: {place_words(row)}', 400)}"


def place_words(about: Missing | MissingFigure | GateRow) -> str:
    """`llamacpp c8 TTFT p50: null in 2 of 3 runs`."""
    load = about.load.label if about.load else None
    metric = about.metric if about.metric == METRIC else measure(about.metric).name if about.metric else None
    return f"{' '.join(filter(None, (about.label, load, metric)))}: {about.why}"


def _reasons(findings: Sequence[ComparedFigure]) -> Iterator[str]:
    """Each reason once why nothing was decided."""
    metrics: dict[str, list[str]] = {}
    for finding in findings:
        if finding.undecided:
            metrics.setdefault(finding.lacks or finding.why, []).append(measure(finding.metric).name)
    for why, names in metrics.items():
        yield plain(f"{'all' if len(names) == len(findings) > 1 else listing(names)}: {why}")


def _markdown(document: RunComparison) -> Iterator[str]:
    first, *others = map(markdown_escaped, answers(document))
    yield f"**{first}**"
    if others:
        yield ""
        yield from (f"- {line}" for line in others)
    if document.missing:
        yield ""
        yield from (f"- {markdown_escaped(line)}" for line in missing_lines(document))
    for pair in document.pairs:
        yield ""
        yield f"#### {markdown_escaped(pair_words(pair))}"
        for point, findings in by_load(pair):
            yield ""
            yield markdown_escaped(point_words(point))
            yield ""
            yield markdown_row(heads(pair))
            yield "|---|---:|---:|---:|---:|---|"
            yield from (markdown_row(finding_row(entry)) for entry in findings)
            yield f"\n{markdown_escaped(legend(findings))}"
        yield from (f"- {markdown_escaped(line)}" for line in accuracy_lines(document, pair))
        if pair.refused:
            yield f"\nRefused: {markdown_escaped(plain(pair.refused))}"
        if pair.differences:
            count = counted(len(pair.differences), "difference")
            yield f"\n<details><summary>{count} in conditions</summary>\n"
            yield from (f"- {markdown_escaped(_difference(entry))}" for entry in pair.differences)
            yield "\n</details>"
    yield ""
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield f"- {role}: {markdown_escaped(run_words(run))}"


def run_words(run: ComparedRun) -> str:
    made_up = "SIMULATED" if run.simulated else None
    scenario = None if run.imported else run.scenario  # which says that it was imported as well
    parts = (run.name, scenario, run.created_utc, run.hostname, run.state, made_up, *run.imported)
    return plain("  ".join(str(part) for part in parts if part))


def pair_words(pair: ComparedPair) -> str:
    new, old = pair.a, pair.b
    if new.label == old.label:
        return plain(f"{new.label}: {new.run} against {old.run}")
    where = "" if new.run == old.run else f" ({new.run} against {old.run})"
    return plain(f"{new.label} against {old.label}{where}")


def heads(pair: ComparedPair) -> tuple[str, ...]:
    interval = f"{100 * pair.verdict_rules.confidence:.4g} % interval"
    return ("metric", "baseline", "new", "change", interval, "verdict")


def by_load(pair: ComparedPair) -> list[tuple[LoadPoint, list[ComparedFigure]]]:
    figures: dict[LoadPoint, list[ComparedFigure]] = {}
    for figure in pair.findings:
        figures.setdefault(figure.load, []).append(figure)
    return list(figures.items())


def finding_row(figure: ComparedFigure) -> tuple[str, ...]:
    shown = measure(figure.metric)
    after, before = figure.values
    new, old = (NOT_KNOWN if value is None else shown.figure(value) for value in figure.values)
    middle, interval = NOT_KNOWN, NOT_KNOWN
    if figure.ratio:
        low, middle, high = (change(ratio) for ratio in figure.ratio)
        interval = f"{low} to {high}"
    elif after and before and min(after, before) > 0:
        middle = change(after / before)
    mark = PRIMARY if figure.primary else ""
    verdict = "undecided" if figure.verdict == "not enough runs" else figure.verdict
    return (shown.title + mark, old, new, middle, interval, verdict)


def legend(figures: Sequence[ComparedFigure]) -> str:
    """How to read the table of one load point."""
    return LEGEND_PRIMARY if any(figure.primary for figure in figures) else LEGEND


def change(ratio: float) -> str:
    """`+8.1 %`; from a doubling on `2.3 ×`."""
    return f"{number(ratio)} ×" if ratio >= 2 else f"{signed(100 * (ratio - 1))} %"


def concluded(document: RunComparison) -> ComparedConclusion:
    """The comparison as data, each figure in one direction."""
    orders = tuple(_order(pair, figure) for pair in document.pairs for figure in pair.findings)
    return ComparedConclusion(sentence=" ".join(answers(document)), orders=orders)


def _order(pair: ComparedPair, figure: ComparedFigure) -> Order:
    """The order of two backends; those of one label are distinguished by their runs."""
    alike = pair.a.label == pair.b.label
    a, b = (f"{side.label} ({side.run})" if alike else side.label for side in (pair.a, pair.b))
    found = (speedup(msgspec.structs.replace(figure, a=a, b=b)),)
    places = [
        Place(label=label, median=value, repeats=runs, doubt="")
        for label, value, runs in zip((a, b), figure.values, figure.runs, strict=True)
    ]
    return order_of(figure.load, figure.metric, places, found)


def _difference(difference: Difference) -> str:
    return plain(
        f"{difference.what}: {difference.baseline} | {difference.new}"
        + (" (decides)" if difference.matters else "")
    )
