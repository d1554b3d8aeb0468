"""Runs compared with a baseline, as text and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.model import (
    ComparedConclusion,
    ComparedFigure,
    ComparedPair,
    ComparedRun,
    Difference,
    GateRow,
    LoadPoint,
    Order,
    Place,
    RunComparison,
)
from harness.report.conclusion import groups_of, speedup
from harness.report.measures import measure
from harness.report.text import (
    NOT_KNOWN,
    counted,
    listing,
    markdown_escaped,
    markdown_row,
    number,
    or_unknown,
    plain,
)
from harness.report.view import point_words

PRIMARY = "*"


def terminal(document: RunComparison) -> str:
    return "\n".join(_terminal(document))


def markdown(document: RunComparison) -> str:
    return "\n".join(_markdown(document))


def _terminal(document: RunComparison) -> Iterator[str]:
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield f"{role:<9} {run_words(run)}"
    for pair in document.pairs:
        yield ""
        yield pair_words(pair)
        yield from (f"  differs: {_difference(difference)}" for difference in pair.differences)
        if pair.refused:
            yield f"  refused: {plain(pair.refused)}; --force compares all the same"
        if not pair.findings:
            yield "  no load point in common"
        for point, findings in by_load(pair):
            yield f"  {point_words(point)}"
            yield from _table([heads(pair), *map(finding_row, findings)])
            yield from (f"    {reason}" for reason in _reasons(findings))
    yield ""
    yield from missing_lines(document)
    yield conclusion(document)


def missing_lines(document: RunComparison) -> Iterator[str]:
    """`missing: llamacpp c8: INVALID failed-requests 3 of 5`, what was allowed included."""
    runs = {figure.run for figure in document.missing}
    for figure in document.missing:
        point = figure.load.label if figure.load else None
        where = " ".join(filter(None, (figure.label, point, figure.metric)))
        run = f" ({figure.run})" if len(runs) > 1 else ""
        allowed = " (allowed)" if figure.allowed else ""
        yield plain(f"missing: {where}: {figure.why}{run}{allowed}", 400)


def gate_lines(rows: Sequence[GateRow], *, failed: bool) -> Iterator[str]:
    """What --fail-on makes of the comparison: one line, and one for each row."""
    if not rows:
        yield "gate: passed"
        return
    yield "gate: failed" if failed else "gate: passed, because --undecided pass accepts:"
    for row in rows:
        where = " ".join(filter(None, (row.label, row.load.label if row.load else None, row.metric)))
        yield f"  {plain(f'{row.kind}: {where}: {row.why}', 400)}"


def _reasons(findings: Sequence[ComparedFigure]) -> Iterator[str]:
    """Why nothing was decided, each reason once."""
    metrics: dict[str, list[str]] = {}
    for finding in findings:
        if finding.undecided:
            metrics.setdefault(finding.why, []).append(finding.metric)
    for why, names in metrics.items():
        yield plain(f"{'all' if len(names) == len(findings) > 1 else listing(names)}: {why}")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        first, *rest = (f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield f"    {first}  {'  '.join(rest)}".rstrip()


def _markdown(document: RunComparison) -> Iterator[str]:
    yield f"**{markdown_escaped(conclusion(document))}**"
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
            yield from (markdown_row(finding_row(one)) for one in findings)
        if pair.refused:
            yield f"\nRefused: {markdown_escaped(plain(pair.refused))}"
        if pair.differences:
            count = counted(len(pair.differences), "difference")
            yield f"\n<details><summary>{count} in conditions</summary>\n"
            yield from (f"- {markdown_escaped(_difference(one))}" for one in pair.differences)
            yield "\n</details>"
    yield ""
    for run in document.runs:
        role = "baseline" if run.name == document.baseline else "run"
        yield f"- {role}: {markdown_escaped(run_words(run))}"


def run_words(run: ComparedRun) -> str:
    made_up = "SIMULATED" if run.simulated else None
    parts = (run.name, run.scenario, run.created_utc, run.hostname, run.state, made_up, *run.imported)
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
    new, old = map(or_unknown, figure.values)
    middle, interval = NOT_KNOWN, NOT_KNOWN
    if figure.ratio:
        low, middle, high = (change(ratio) for ratio in figure.ratio)
        interval = f"{low} to {high}"
    elif figure.values[0] and figure.values[1]:
        middle = change(figure.values[0] / figure.values[1])
    mark = PRIMARY if figure.primary else ""
    return (figure.metric + mark, old, new, middle, interval, figure.verdict)


def change(ratio: float) -> str:
    """`+8.1 %`; from a doubling on `2.3 ×`."""
    return f"{number(ratio)} ×" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"


def conclusion(document: RunComparison) -> str:
    """What became slower, or that nothing did, or why that is not known; and how much is missing."""
    gone = sum(not figure.allowed for figure in document.missing)
    return _speed(document) + (f" {counted(gone, 'measurement')} missing." if gone else "")


def _speed(document: RunComparison) -> str:
    findings = [(pair, figure) for pair in document.pairs for figure in pair.findings]
    if not findings:
        return "Nothing in common to compare."
    slower, faster = (
        [f"{pair.a.label} {_place(figure)}" for pair, figure in findings if figure.verdict == word]
        for word in ("slower", "faster")
    )
    ahead = f" Faster: {plain(listing(faster), 1000)}." if faster else ""
    if slower:
        return f"Slower: {plain(listing(slower), 1000)}.{ahead}"
    open_ones = sum(figure.undecided for _, figure in findings)
    if open_ones == len(findings):
        return "No verdict: " + plain(findings[0][1].why) + "."
    rest = f"; {open_ones} of {len(findings)} not decided" if open_ones else ""
    return f"Nothing is slower{rest}.{ahead}"


def _place(figure: ComparedFigure) -> str:
    """With how many times better the better one is."""
    by = f" by {span}" if (span := speedup(figure).span) else ""
    return f"{figure.metric} at {figure.load.label}{by}"


def concluded(document: RunComparison) -> ComparedConclusion:
    """The same as data: each figure in one direction."""
    orders = tuple(_order(pair, figure) for pair in document.pairs for figure in pair.findings)
    return ComparedConclusion(sentence=conclusion(document), orders=orders)


def _order(pair: ComparedPair, figure: ComparedFigure) -> Order:
    """Of two backends; those of one label are told apart by their runs."""
    alike = pair.a.label == pair.b.label
    a, b = (f"{one.label} ({one.run})" if alike else one.label for one in (pair.a, pair.b))
    found = (speedup(msgspec.structs.replace(figure, a=a, b=b)),)
    sign = -1 if measure(figure.metric).metric.better == "higher" else 1
    places = sorted(
        (
            Place(label=label, median=value, repeats=runs, doubt="")
            for label, value, runs in zip((a, b), figure.values, figure.runs, strict=True)
        ),
        key=lambda place: (place.median is None, sign * (place.median or 0.0)),
    )
    return Order(
        load=figure.load,
        metric=figure.metric,
        places=tuple(places),
        groups=groups_of(places, found),
        pairs=found,
    )


def _difference(difference: Difference) -> str:
    return plain(
        f"{difference.what}: {difference.baseline} | {difference.new}"
        + (" (decides)" if difference.matters else "")
    )
