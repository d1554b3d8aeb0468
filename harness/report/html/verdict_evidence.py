"""The evidence for each verdict: the value of every run, the pairs, the intervals, p and its level."""

from collections.abc import Iterator, Mapping

from harness.model import CellResult, Interval, PairVerdict, Summary, VerdictRules, known
from harness.model.json_path import number_at
from harness.model.measures import Measure, measure
from harness.model.metric_table import root_of
from harness.model.numbers import counted, digits_apart, fixed, number, short
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, join, table, tag
from harness.report.view import point_words
from harness.report.wording import NOT_KNOWN, plain, short_names


def evidence(source: Source) -> Iterator[Html]:
    """One fold per verdict; those of the primary metric first, the others together."""
    entries = source.summary.comparison
    tested = [entry for entry in entries if entry.tested]
    primary = [_verdict(source, entry) for entry in tested if entry.primary]
    others = [_verdict(source, entry) for entry in tested if not entry.primary]
    if primary:
        yield tag("h3", "Evidence for each verdict")
        yield from primary
    if others:
        yield details(f"Evidence for the other metrics: {counted(len(others), 'verdict')}", *others)


def _verdict(source: Source, entry: PairVerdict) -> Html:
    shown, point = measure(entry.metric), entry.load
    title = f"{entry.a} against {entry.b}, {shown.name}, {point_words(point)}: {entry.verdict}"
    return details(
        plain(title, 300),
        tag("p", plain(entry.why, 1000)),
        _runs(source.summary, entry, shown),
        items(_facts(source.summary, entry, shown)),
    )


def _runs(summary: Summary, entry: PairVerdict, shown: Measure) -> Html:
    a, b = (_cells(summary, entry, label) for label in (entry.a, entry.b))
    rows = []
    for repeat in sorted({*a, *b}):
        pair = a.get(repeat), b.get(repeat)
        rows.append([f"r{repeat}", *(_value(cell, shown) for cell in pair), _quotient(pair, shown)])
    head = ["repeat", *short_names((entry.a, entry.b), 60).values(), "first / second"]
    return table(f"{shown.title} of each run", head, rows, class_="numbers")


def _cells(summary: Summary, entry: PairVerdict, label: str) -> Mapping[int, CellResult]:
    cells = (cell for cell in summary.cells if cell.label == label)
    return {cell.repeat: cell for cell in cells if cell.point == entry.load}


def _value(cell: CellResult | None, measured: Measure) -> Html:
    if cell is None:
        return tag("span", "not measured", class_="unknown")
    if cell.invalid:
        codes = ", ".join(reason.code for reason in cell.validity.reasons)
        return tag("span", f"INVALID: {codes}", class_="invalid")
    value = number_at(cell, measured.path)
    shown = tag("span", NOT_KNOWN if value is None else measured.figure(value))
    state = known(cell.state)
    return join([shown, tag("small", state, class_="range")]) if state else shown


def _quotient(pair: tuple[CellResult | None, CellResult | None], shown: Measure) -> str:
    if any(cell is None or cell.invalid for cell in pair):
        return ""
    first, second = (number_at(cell, shown.path) for cell in pair)
    return _ratio(first / second) if first is not None and second else ""


def _facts(summary: Summary, entry: PairVerdict, shown: Measure) -> Iterator[str]:
    rules = summary.verdict_rules
    if entry.ratio:
        at = f"{100 * rules.confidence:g}% interval"
        yield f"ratio, first over second: {_interval(entry.ratio)}, {at} of this pair alone"
    if entry.family_ratio:
        yield f"the same at the level that all verdicts together allow: {_interval(entry.family_ratio)}"
    if entry.difference:
        low, middle, high = (number(end * shown.scale) for end in entry.difference)
        yield shown.with_unit(f"difference, first minus second: {middle} ({low} to {high})")
    yield from _tests(entry, rules)
    paired = "in pairs of the same requests" if entry.paired else "not paired"
    yield f"runs with a figure: {_both(entry.runs)}, {paired}"
    yield f"runs measured: {_both(entry.measured)}"
    if any(entry.failed):
        yield f"failed by the engine's doing: {_both(entry.failed)}"
    for label, out in zip((entry.a, entry.b), entry.left_out, strict=True):
        yield from (
            f"left out of {label}, and the verdict holds with them: {n} {why}" for why, n in out.items()
        )
    if (smallest := entry.smallest_detectable) is not None:
        yield f"smallest difference found in 4 of 5 such experiments: {short(100 * smallest)}%"
    yield from _unequal(summary, entry)


def _tests(entry: PairVerdict, rules: VerdictRules) -> Iterator[str]:
    """p adjusted for the family, so that both are read against the same level."""
    for p, what in ((entry.p_holm, "apart by more than the floor"), (entry.p_same_holm, "within the margin")):
        if p is not None:
            yield f"{what}: p = {p:.2g} after Holm, level {rules.alpha:g}"


def _unequal(summary: Summary, entry: PairVerdict) -> Iterator[str]:
    """What has an effect on this metric; the rest is alike for every verdict and stands in one table."""
    known = {
        difference.text: difference for difference in summary.unequal
        if {entry.a, entry.b} & set(difference.labels)
    }  # fmt: skip
    effective = [
        difference for difference in known.values()
        if (difference.matters or difference.apart)
        and (not difference.metrics or root_of(entry.metric) in difference.metrics)
    ]  # fmt: skip
    for difference in effective:
        effect = "forbids a comparison" if difference.matters else "widens the floor"
        between = " of those that differ" if len(difference.labels) > 2 else ""
        yield f"unequal: {plain(difference.text, 300)} ({effect}{between})"
    if others := len(known) - len(effective):
        link = tag("a", "Differences", href="#differences")
        yield join([f"unequal without an effect on this verdict: {counted(others, 'condition')}, see ", link])
    if not known:
        yield "unequal: nothing that is known"


def _interval(ratio: Interval) -> str:
    low, middle, high = ratio
    return f"{_ratio(middle)} ({_ratio(low)} to {_ratio(high)})"


def _ratio(value: float) -> str:
    """Three decimals; more where these would all be 0."""
    return fixed(value, digits_apart(value, 0.0, least=3))


def _both(counts: tuple[int, int]) -> str:
    return " and ".join(map(str, counts))
