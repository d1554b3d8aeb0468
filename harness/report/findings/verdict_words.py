"""Rank lines and verdicts of summary.json as words and rows. Knows no output format."""

from collections.abc import Iterator

from harness.model import METRICS, LoadPoint, PairVerdict, Summary, Unequal
from harness.model.measures import measure, verdict_ways
from harness.model.metric_table import root_of
from harness.model.numbers import counted, percent
from harness.report.findings.conclusion import speedup
from harness.report.findings.per_user_words import per_user_lines
from harness.report.findings.stopping import stopping_lines
from harness.report.wording import listing, plain, short_names
from harness.verdicts import knee
from harness.verdicts.rules import ONE_START
from harness.verdicts.sequential import DECIDED

SIGNS = (
    "> is faster, >> by a quarter at least, ≈ the same within noise, ? not decided, ∦ not comparable; "
    "in brackets: pairs not implied by the ranking"
)
PAIRS = 3  # spelled out where there are no more at a load point; the report has all


def metrics(summary: Summary) -> list[str]:
    """Metrics that were compared, the primary one first."""
    names = dict.fromkeys(finding.metric for finding in summary.comparison)
    return sorted(names, key=lambda metric: metric != summary.verdict_rules.primary)


def decided(summary: Summary) -> bool:
    return any(finding.verdict in DECIDED for finding in summary.comparison)


def rank_lines(summary: Summary, metric: str) -> list[tuple[LoadPoint, str]]:
    """Lines by load point whose pairs say anything about this metric; several if weights are shared."""
    rankings = [entry for entry in summary.rankings if entry.metric == metric]
    mine = [entry for entry in summary.comparison if entry.metric == metric]
    # Failed runs count: they are reported as well.
    decided_loads = {entry.load for entry in mine if entry.verdict in DECIDED or any(entry.failed)}
    return [(entry.load, plain(entry.line, 1000)) for entry in rankings if entry.load in decided_loads]


def at_load(summary: Summary, point: LoadPoint) -> list[PairVerdict]:
    return [entry for entry in summary.comparison if entry.load == point]


def runs(summary: Summary) -> str:
    """`5 runs` of the pairs with an interval, or their range; `of one start` if the engines went on between
    them. "" if no pair has one."""
    counts = [count for finding in summary.comparison if finding.ratio for count in finding.runs]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    rules = summary.verdict_rules
    words = rules.unit if rules.pairing != "starts" or rules.unit == ONE_START else "runs"
    return f"{low} {words}" if low == high else f"{low} to {high} {words}"


def confidence(summary: Summary) -> str:
    """`99%`, of the intervals next to the verdicts."""
    return f"{100 * summary.verdict_rules.confidence:.4g}%"


def tested(summary: Summary) -> bool:
    """Whether any pair had runs enough for an interval, or runs that failed."""
    return any(finding.tested for finding in summary.comparison)


def lines(summary: Summary) -> Iterator[str]:
    """The lines below the tables: every pair of a few backends, what is unequal, why the run ended."""
    for point in dict.fromkeys(entry.load for entry in summary.comparison):
        yield from (f"{point.label}: {line}" for line in pair_lines(summary, point))
    yield from per_user_lines(summary)
    yield from unequal_lines(summary)
    yield from stopping_lines(summary)


def unequal_lines(summary: Summary) -> Iterator[str]:
    """Unequal conditions that change a verdict, and the number of others that differ."""
    others = 0
    for difference, about in _compared(summary):
        names = ", ".join(map(_metric_words, about)) or "any metric"
        if difference.metrics and not about:
            others += 1
        elif difference.matters:
            pairs = " between those that differ" if len(difference.labels) > 2 else ""
            yield plain(f"unequal: {difference.text}; no verdict on {names}{pairs}", 1000)
        elif difference.apart:
            wider = f"the floor of {names} is {percent(difference.apart)}% wider"
            yield plain(f"unequal: {difference.text}; {wider}", 1000)
        else:
            others += 1
    if others:
        yield f"unequal without an effect on a verdict: {counted(others, 'condition')}, in the report"


def _metric_words(metric: str) -> str:
    about = METRICS[metric]
    return f"{about.short} {about.own_unit}" if about.family == "rate" else about.short


def knee_lines(summary: Summary) -> Iterator[str]:
    """Working sets: up to which size the cache of each backend serves them."""
    for result in summary.knees:
        yield from (plain(f"knee {line}") for line in knee.words(result))


def noise_lines(summary: Summary) -> Iterator[str]:
    """Backends measured against themselves: by how much equal engines differ, and what could be found."""
    for noise in summary.noise:
        apart, detectable = (
            "not known" if share is None else f"{100 * share:.1f}%"
            for share in (noise.difference, noise.smallest_detectable)
        )
        what = f"{noise.load.label} {measure(noise.metric).name}: {noise.backend}"
        yield plain(f"noise {what} differs from itself by {apart}; smallest detectable effect {detectable}")


def unequal_in_short(summary: Summary) -> Iterator[str]:
    """Conditions by which some pairs get no verdict, and those that a verdict has to exceed."""
    about = [entry for entry, metrics in _compared(summary) if metrics or not entry.metrics]
    refusing = [_in_few_words(entry) for entry in about if entry.matters]
    if refusing:
        yield plain(f"unequal, so that some pairs get no verdict: {listing(refusing)}")
    widening = [_in_few_words(entry) for entry in about if entry.apart and not entry.matters]
    if widening:
        yield plain(f"unequal, so that a verdict takes a larger difference: {listing(widening)}")


def _compared(summary: Summary) -> Iterator[tuple[Unequal, list[str]]]:
    """Unequal conditions, and those of their metrics that were compared; all of them if nothing was."""
    compared = {root_of(finding.metric) for finding in summary.comparison}
    for entry in summary.unequal:
        yield entry, [metric for metric in entry.metrics if metric in compared or not compared]


def _in_few_words(entry: Unequal) -> str:
    return entry.what or entry.code.replace("-", " ")


def pair_lines(summary: Summary, point: LoadPoint) -> Iterator[str]:
    """Each pair in the primary metric if they are few; the first lines say it all for a single one."""
    pairs = [entry for entry in at_load(summary, point) if entry.primary and speedup(entry).times]
    if 1 < len(pairs) <= PAIRS:
        yield from map(sentence, pairs)


def sentence(entry: PairVerdict) -> str:
    found = speedup(entry)
    names = short_names((entry.a, entry.b), 40)
    pair = f"{names[entry.a]} and {names[entry.b]}"
    if entry.verdict in ("faster", "slower"):
        better, _worse = verdict_ways(measure(entry.metric))
        return f"{names[found.ahead]} is {better} than {names[found.behind]}, {found.span}"
    if entry.verdict == "same":
        return f"{pair} are the same within noise, {found.span}"
    if entry.verdict == "not comparable":
        return refusal_sentence(pair, found.why)
    if found.span and entry.verdict == "not enough runs":
        why = "; ".join(filter(None, (found.lacks or found.why, found.left_out)))
        return f"{pair}: {found.leaning(names[found.ahead])}, undecided: {why}"
    return f"{pair}: {entry.verdict}, {found.why}"


def refusal_sentence(pair: str, why: str) -> str:
    """The refusal of two backends, `vllm and sglang`, whatever their figures."""
    return f"{pair}: not comparable, {why}"
