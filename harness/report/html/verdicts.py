"""Each pair's verdict with its interval, the rank lines, and the evidence."""

from collections.abc import Iterator, Mapping, Sequence

from harness.model import CellResult, Interval, LoadPoint, PairVerdict, Speedup, Summary, VerdictRules, known
from harness.model.json_path import number_at
from harness.model.measures import Measure, measure, verdict_ways
from harness.model.metric_table import root_of
from harness.model.numbers import counted, digits_apart, fixed, number, short
from harness.report.findings import verdict_words
from harness.report.findings.conclusion import speedup
from harness.report.findings.stopping import pairing_lines, stopping_lines
from harness.report.findings.verdict_words import SIGNS, at_load
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, join, section, table, tag
from harness.report.view import groups, kind_and_value, point_words
from harness.report.wording import NOT_KNOWN, plain, short_names

PAIRWISE = 3  # backends: with more, a matrix of the primary metric is shown and the pairs are folded


def pairs(source: Source) -> Html | None:
    """None if no pair was compared, or if no pair has runs enough and there is no more to say of it."""
    if not source.summary.comparison:
        return None
    noise = (tag("p", line) for line in verdict_words.noise_lines(source.summary))
    parts = (*_tables(source), *_ranks(source), *noise, *evidence(source))
    return section("verdicts", "Which pairs are separated?", *parts) if parts else None


def _ranks(source: Source) -> Iterator[Html]:
    """Nothing if nothing could be decided."""
    summary = source.summary
    if not verdict_words.decided(summary):
        return
    lines = [
        f"{measure(metric).name}, {point_words(point)}: {line}"
        for metric in verdict_words.metrics(summary)
        for point, line in verdict_words.rank_lines(summary, metric)
    ]
    if lines:
        yield details("Rank lines", items(lines), tag("p", f"{SIGNS}.", class_="muted small"))


def _tables(source: Source) -> Iterator[Html]:
    lines = (*pairing_lines(source.summary), *stopping_lines(source.summary))
    yield from (tag("p", line, class_="muted small") for line in lines)
    points = [group.point for group in groups(source.summary)]
    verdicts = {point: at_load(source.summary, point) for point in points}
    if not any(speedup(entry).span for mine in verdicts.values() for entry in mine):
        return  # no pair has enough runs: the sentence that says so is enough
    if len(source.labels) > PAIRWISE:
        *others, highest = (_matrix(source, point, mine) for point, mine in verdicts.items() if mine)
        yield highest
        if others:
            yield details("At the other load points", *others)
        yield details("Every pair and figure", _pairs(source, verdicts))
    else:
        yield _pairs(source, verdicts)


def _pairs(source: Source, by_load: Mapping[LoadPoint, Sequence[PairVerdict]]) -> Html:
    metrics = verdict_words.metrics(source.summary)
    rows, owners = [], []
    for point, verdicts in by_load.items():
        by_pair: dict[tuple[str, str], dict[str, PairVerdict]] = {}
        for entry in verdicts:
            by_pair.setdefault((entry.a, entry.b), {})[entry.metric] = entry
        for (a, b), mine in by_pair.items():
            pair = join([source.name(a), " against ", source.name(b)])
            rows.append([pair, kind_and_value(point), *(_cell(mine.get(metric)) for metric in metrics)])
            owners.append(f"{source.index(a)} {source.index(b)}")
    heads = [f"{measure(metric).name}{' (primary)' if metric == metrics[0] else ''}" for metric in metrics]
    better, _worse = verdict_ways(*map(measure, metrics))
    caption = (
        f"Verdicts: how many times {better} the named backend is (geometric mean of the repeats), with the "
        f"{verdict_words.confidence(source.summary)} interval over {verdict_words.runs(source.summary)}"
    )
    return table(caption, ["first against second", "load", *heads], rows, owners, "verdicts")


def _cell(entry: PairVerdict | None) -> Html:
    if entry is None:
        return Html("")
    found, verdict = speedup(entry), entry.verdict
    better = f"{found.ahead} {found.factor} {measure(entry.metric).ways[0]}"
    text = {
        "faster": better,
        "slower": better,
        "not enough runs": f"{found.ahead} {found.factor}, undecided" if found.leans else "undecided",
    }.get(verdict, verdict)
    word = tag("span", text, class_=verdict.replace(" ", "-"), title=found.why)
    return join([word, tag("small", found.between or found.why, class_="range")])


def _matrix(source: Source, point: LoadPoint, verdicts: Sequence[PairVerdict]) -> Html:
    """Row against column, of the primary metric."""
    labels = source.labels
    primary = source.summary.verdict_rules.primary
    known = {(pair.a, pair.b): pair for pair in verdicts if pair.primary}
    ways = dict(zip(("faster", "slower"), measure(primary).ways, strict=True))

    def entry(row: str, column: str) -> Html:
        if row == column:
            return tag("span", "–", class_="muted")
        if pair := known.get((row, column)):
            return _short(speedup(pair), pair.verdict, ways)
        if other := known.get((column, row)):
            turned = {"faster": "slower", "slower": "faster"}.get(other.verdict, other.verdict)
            return _short(speedup(other), turned, ways)
        return Html("")

    def hidden_with(column: str, content: str) -> Html:
        return tag("span", content, data_series=str(source.index(column)))

    rows = (
        [source.name(row), *(hidden_with(column, entry(row, column)) for column in labels)] for row in labels
    )
    caption = f"{measure(primary).name}, {point_words(point)}: the row's backend against the column's"
    head = ["backend", *(hidden_with(column, column) for column in labels)]
    return table(caption, head, rows, [str(source.index(row)) for row in labels], "verdicts")


def _short(found: Speedup, verdict: str, ways: Mapping[str, str]) -> Html:
    """`1.33× faster`: the factor is the same whichever way round it is said."""
    signs = {"same": "≈ same", "not enough runs": "? undecided", "not comparable": "∦ not comparable"}
    text = signs.get(verdict) or f"{found.factor} {ways[verdict]}"
    return tag("span", text, class_=verdict.replace(" ", "-"), title=found.why)


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
