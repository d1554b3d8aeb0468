"""Runs compared with a baseline, as text and as Markdown for a pull request."""

from collections.abc import Iterable, Iterator, Sequence

from harness.model import ComparedFigure, ComparedRun, Difference, GateRow, RunComparison
from harness.model.grouping import grouped
from harness.model.lines import wrap
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.findings.accuracy_words import compared_accuracy
from harness.report.findings.against import answers, missing_lines, pair_words, place_words
from harness.report.tables.changes import by_load, change_table, legend
from harness.report.text.terminal_text import BOLD, Paint, hanging
from harness.report.view import point_words
from harness.report.wording import aligned, listing, markdown_escaped, markdown_row, plain


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
        if not pair.findings and pair.capacity is None:
            yield "  no load point in common"
        for point, findings in by_load(pair):
            yield f"  {point_words(point)}"
            table = change_table(pair, findings)
            lines = aligned([table.head, *table.rows], columns - 2, figures=False)
            yield from (f"  {line}".rstrip() for line in lines)
            yield from _indented(_reasons(findings, pair.refused), columns)
        yield from _indented((f"differs: {_difference(entry)}" for entry in pair.differences), columns)
        yield from _indented(compared_accuracy(document, pair), columns)
        if pair.refused:
            yield from _indented([f"refused: {plain(pair.refused)}; --force compares all the same"], columns)
    yield ""
    for line in _legend(document):
        yield from wrap(line, columns, subsequent_indent="  ")
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield from hanging(f"{role:<10}", run_words(run), columns, cut=False)


def _legend(document: RunComparison) -> Iterator[str]:
    """How to read the tables, once for all of them."""
    if figures := [finding for pair in document.pairs for finding in pair.findings]:
        yield legend(figures)


def _indented(lines: Iterable[str], columns: int) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, columns, initial_indent="  ", subsequent_indent="    ")


def gate_lines(rows: Sequence[GateRow], *, failed: bool, worse: bool = True) -> Iterator[str]:
    """The result of --fail-on: one line, and one for each row, with its run where there are several. `worse`:
    a row says that something is.
    """
    if failed:
        yield "gate: failed" if worse else "gate: not decided"
    else:
        yield "gate: passed, because --undecided pass accepts:" if rows else "gate: passed"
    several = len({row.run for row in rows}) > 1
    for row in rows:
        run = f"{row.run} " if several else ""
        yield f"  {plain(f'{row.kind}: {run}{place_words(row)}', 400)}"


def _reasons(findings: Sequence[ComparedFigure], refused: str | None) -> Iterator[str]:
    """Each reason once why nothing was decided, but for the one that the pair was refused for."""
    undecided = ((finding.lacks or finding.why, finding.metric) for finding in findings if finding.undecided)
    metrics = grouped((why, measure(metric).name) for why, metric in undecided if why != refused)
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
            table = change_table(pair, findings)
            yield markdown_row(table.head)
            yield "|---|---:|---:|---:|---:|---|"
            yield from map(markdown_row, table.rows)
        yield from (f"- {markdown_escaped(line)}" for line in compared_accuracy(document, pair))
        if pair.refused:
            yield f"\nRefused: {markdown_escaped(plain(pair.refused))}"
        if pair.differences:
            count = counted(len(pair.differences), "difference")
            yield f"\n<details><summary>{count} in conditions</summary>\n"
            yield from (f"- {markdown_escaped(_difference(entry))}" for entry in pair.differences)
            yield "\n</details>"
    for line in _legend(document):
        yield f"\n{markdown_escaped(line)}"
    yield ""
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield f"- {role}: {markdown_escaped(run_words(run))}"


def run_words(run: ComparedRun) -> str:
    made_up = "SIMULATED" if run.simulated else None
    scenario = None if run.imported else run.scenario  # which says that it was imported as well
    parts = (run.name, scenario, run.created_utc, run.hostname, run.state, made_up, *run.imported)
    return plain("  ".join(str(part) for part in parts if part))


def _difference(difference: Difference) -> str:
    return plain(
        f"{difference.what}: {difference.baseline} | {difference.new}"
        + (" (decides)" if difference.matters else "")
    )
