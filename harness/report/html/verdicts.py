"""Each pair's verdict with its interval, the rank lines, and the evidence."""

from collections.abc import Iterator, Mapping, Sequence

from harness.model import LoadPoint, PairVerdict, Speedup
from harness.model.measures import measure, verdict_ways
from harness.report.findings import verdict_words
from harness.report.findings.conclusion import speedup
from harness.report.findings.pairing import pairing_lines
from harness.report.findings.stopping import stopping_lines
from harness.report.findings.verdict_words import SIGNS, at_load
from harness.report.html.source import Source
from harness.report.html.tags import Html, details, items, join, section, table, tag
from harness.report.html.verdict_evidence import evidence
from harness.report.view import groups, kind_and_value, point_words

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
