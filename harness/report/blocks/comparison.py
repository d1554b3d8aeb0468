"""What is said of runs that were compared with a baseline, in order, and of the gate on it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.model import ComparedFigure, ComparedPair, ComparedRun, Difference, GateRow, RunComparison
from harness.model.grouping import grouped
from harness.model.measures import measure
from harness.model.numbers import counted
from harness.report.blocks.block import Block, Fold, Gap, Line, Outline, Section
from harness.report.findings.accuracy_words import compared_accuracy
from harness.report.findings.against import (
    answers,
    doubt_words,
    missing_lines,
    pair_words,
    place_words,
    run_words,
)
from harness.report.findings.sentences import IN_DOUBT
from harness.report.tables.changes import by_load, change_table, legend
from harness.report.view import point_words
from harness.report.wording import listing, plain


def compared(document: RunComparison) -> Iterator[Block]:
    """The answers first, the worst of them as the verdict; the runs last."""
    first, *others = answers(document)
    yield Line(first, "verdict")
    yield from map(Line, (*others, *missing_lines(document)))
    if doubts := doubt_words(document):
        yield Line(doubts, "doubt", IN_DOUBT)
    yield from each_pair(document)
    yield Outline([("", [_run(document, run) for run in document.runs])])


def each_pair(document: RunComparison) -> Iterator[Block]:
    """Every figure with its change and interval, why nothing was decided, and what differs."""
    yield from (Section(pair_words(pair), [*_of_pair(document, pair)]) for pair in document.pairs)
    yield Gap()
    if figures := [finding for pair in document.pairs for finding in pair.findings]:
        yield Line(legend(figures), "paragraph")  # once for all tables


def _of_pair(document: RunComparison, pair: ComparedPair) -> Iterator[Block]:
    if not pair.findings and pair.capacity is None:
        yield Line("no load point in common")
    for point, findings in by_load(pair):
        yield replace(change_table(pair, findings), title=point_words(point))
        yield from map(Line, _reasons(findings, pair.refused))
    if pair.differences:
        title = f"{counted(len(pair.differences), 'difference')} in conditions (baseline | new)"
        yield Fold(title, [*map(_difference, pair.differences)], "differs")
    yield from map(Line, compared_accuracy(document, pair))
    if pair.refused:
        yield Line(f"refused: {plain(pair.refused)}; --force compares all the same")


def _reasons(findings: Sequence[ComparedFigure], refused: str | None) -> Iterator[str]:
    """Each reason once why nothing was decided, but for the one that the pair was refused for."""
    undecided = ((finding.lacks or finding.why, finding.metric) for finding in findings if finding.undecided)
    metrics = grouped((why, measure(metric).name) for why, metric in undecided if why != refused)
    for why, names in metrics.items():
        yield plain(f"{'all' if len(names) == len(findings) > 1 else listing(names)}: {why}")


def _difference(difference: Difference) -> Line:
    forbids = " (forbids a comparison)" if difference.matters else ""
    return Line(plain(f"{difference.what}: {difference.baseline} | {difference.new}{forbids}"))


def _run(document: RunComparison, run: ComparedRun) -> Line:
    return Line(run_words(run), label="baseline" if run.name == document.baseline else "run", whole=True)


def gate(rows: Sequence[GateRow], *, failed: bool, worse: bool) -> Section:
    """The result of --fail-on; a row names its run where there are several. `worse`: some row says that
    something is."""
    several = len({row.run for row in rows}) > 1
    lines = [
        Line(plain(f"{row.kind}: {f'{row.run} ' if several else ''}{place_words(row)}", 400)) for row in rows
    ]
    if failed:
        return Section("gate: failed" if worse else "gate: not decided", lines)
    return Section("gate: passed, because --undecided pass accepts:" if rows else "gate: passed", lines)
