"""The page of several runs: whether one is slower than another, all of them on one axis, and their course."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from operator import itemgetter

from msgspec.structs import replace as changed

from harness.model import ComparedFigure, ComparedPair, LoadPoint, RunComparison, Summary
from harness.model.measures import measure
from harness.model.metric_table import CAPACITIES
from harness.model.numbers import counted
from harness.report.blocks.block import Block
from harness.report.blocks.comparison import each_pair
from harness.report.charts import Chart, charts
from harness.report.charts.course import course, step_words
from harness.report.findings.against import answers, missing_lines, pair_words
from harness.report.findings.conclusion import order
from harness.report.findings.manifest_lines import machine, model
from harness.report.findings.sentences import sentence
from harness.report.findings.series_words import names, too_few_runs
from harness.report.findings.several import Several, several, why_refused
from harness.report.html import figures
from harness.report.html.answer import in_doubt
from harness.report.html.figures import figure
from harness.report.html.page import document as whole_page
from harness.report.html.page import framed
from harness.report.html.prose import prose
from harness.report.html.source import Source
from harness.report.html.standing import standing
from harness.report.html.tags import Html, details, fold, items, join, section, table, tag
from harness.report.tables.changes import by_load, changes
from harness.report.view import groups
from harness.report.wording import plain
from harness.verdicts.baseline import Run
from harness.verdicts.history import LEAST_NIGHTS, Change, Series, series
from harness.verdicts.history import changes as level_changes
from harness.verdicts.history_lines import entries, not_kept

MOST_OPEN = 6  # charts; further ones are folded
EXPLAINED = (
    "One point per run, the geometric mean of its repeats or the capacity that its search found, labelled "
    "with the version of the engine where that changes. A dotted line is a level; a level needs "
    f"{LEAST_NIGHTS} runs, so that one odd run is no change. Changes too small for a verdict are listed too."
)


def page(runs: Sequence[Run], document: RunComparison, first: Iterable[Block] = ()) -> str:
    """Raises SpecError if nothing of the runs can be compared. `first`: what stands before all results."""
    found = several(runs, document)
    drawn = [replace(chart, paper=False) for chart in charts(found.whole, {})]  # no pictures lie next to it
    source = Source(found.whole, None, {}, drawn, (), {}, {}, ())
    title = f"{found.whole.scenario}: {counted(len(runs), 'run')} compared"
    history = series([entry for run in runs for entry in entries(run.manifest, run.summary)])
    content = tag(
        "main",
        *prose(first),
        _answer(source, runs, found, document, history),
        courses(history, {*CAPACITIES, found.whole.verdict_rules.primary}),
        figures.legend(source, source.labels),
        figures.charts(source),
        _more(runs, found, document),
    )
    return framed(title, _subtitle(runs, found), found.whole, content)


def page_of_courses(
    title: str,
    before: Iterable[Block],
    after: Iterable[Block],
    history: Sequence[Series],
    primary_of: Set[str],
    since: str,
) -> str:
    """The course of every series over its runs, between what is said before and after it.

    `primary_of`: metrics whose charts are open. `since`: day from which levels are judged; "" judges all.
    """
    alone = "No figure of this night has an earlier run under the same conditions."
    over_time = courses(history, primary_of, since) or tag("p", alone)
    content = tag("main", *prose(before), over_time, *prose(after))
    return whole_page(title, tag("header", tag("h1", plain(title))), content)


def _subtitle(runs: Sequence[Run], found: Several) -> str:
    machines = dict.fromkeys(machine(run.manifest.host, run.summary) for run in runs)
    return " · ".join(filter(None, (model(found.whole), *machines)))


def _answer(
    source: Source, runs: Sequence[Run], found: Several, document: RunComparison, history: Sequence[Series]
) -> Html:
    """The newest run against the baseline; every other run is folded."""
    newest = max(
        (run for run in runs if run.name != document.baseline), key=lambda run: run.manifest.created_utc
    )
    pairs = [pair for pair in document.pairs if pair.a.run == newest.name]
    older = [pair for pair in document.pairs if pair not in pairs]
    missing = tuple(figure for figure in document.missing if figure.run == newest.name)
    first, *others = answers(changed(document, pairs=tuple(pairs), missing=missing))
    trade_offs = [chart for chart in source.charts if chart.family == "trade-off"]
    drawn = next((chart for chart in trade_offs if chart.option == "TTFT p50"), None)
    standings = [part for summary in found.families.values() for part in _standings(source, summary)]
    return section(
        "answer",
        "Results",
        tag(
            "p", f"{found.names[newest.name]}: ", tag("strong", first), f" {_against(found, document, pairs)}"
        ),
        items(others) if others else None,
        _pairs(pairs, found),
        tag(
            "div",
            *(figures.figure(chart) for chart in (drawn, _course(found, history)) if chart),
            class_="first",
        ),
        details("The other runs against the baseline", _pairs(older, found)) if older else None,
        details("All runs at each load, sorted", *standings),
        *_left_out(runs, found, document),
    )


def _course(found: Several, history: Sequence[Series]) -> Chart | None:
    """The course of the metric that decides, at the highest load of the first backend."""
    wanted = [entry for entry in history if entry.metric == found.whole.verdict_rules.primary]
    first = [(entry.load, entry) for entry in wanted if entry.load and entry.label == wanted[0].label]
    return course(max(first, key=itemgetter(0))[1]) if first else None


def _pairs(pairs: Sequence[ComparedPair], found: Several) -> Html:
    """A row per backend, run and load; a column per metric, the primary one first."""
    findings = [finding for pair in pairs for finding in pair.findings]
    metrics = list(
        dict.fromkeys(result.metric for result in sorted(findings, key=lambda result: not result.primary))
    )
    rows = [
        [_pair_cell(pair, found, point), *(_verdict(mine.get(metric)) for metric in metrics)]
        for pair in pairs
        for point, here in by_load(pair)
        if (mine := {result.metric: result for result in here})
    ]
    heads = [measure(metric).name for metric in metrics]
    return table(
        "Faster or slower than the baseline", ["backend, load", *heads], rows, class_="claims-by-load pairs"
    )


def _pair_cell(pair: ComparedPair, found: Several, point: LoadPoint) -> Html:
    day = tag("small", f"{found.names[pair.a.run]} against {found.names[pair.b.run]}", class_="range")
    name = pair.a.label if pair.a.label == pair.b.label else f"{pair.a.label} against {pair.b.label}"
    return join([f"{name}, {point.label}", day])


def _verdict(finding: ComparedFigure | None) -> Html:
    """`slower +33% (+30% to +36%)`, as in the terminal; if not comparable, why."""
    if finding is None:
        return Html("")
    words = {"not enough runs": "undecided"}.get(finding.verdict, finding.verdict)
    class_ = finding.verdict if finding.verdict in ("faster", "slower") else None
    span = tag("small", _range(finding) or plain(finding.why, 100), class_="range")
    return join([tag("span", words, class_=class_, title=plain(finding.why)), span])


def _range(finding: ComparedFigure) -> str:
    if finding.verdict == "not comparable" or not finding.ratio:
        return ""
    low, middle, high = changes(finding.ratio)
    return f"{middle} ({low} to {high})"


def _against(found: Several, document: RunComparison, pairs: Sequence[ComparedPair]) -> str:
    """`pairs`: those of the newest run; a baseline that is a backend has others within its own run."""
    name = f"that of {found.names.get(document.baseline or '', '')}"
    if any(pair.a.run == pair.b.run for pair in document.pairs):
        name = f"{document.pairs[0].b.label} in {name}"
    floor = f"{100 * (pairs or document.pairs)[0].verdict_rules.floor:.3g}%"
    return f"Each run is compared with {name}; changes of less than {floor} do not count."


def _standings(source: Source, summary: Summary) -> Iterator[Html]:
    for group in groups(summary):
        yield standing(source, group, order(summary, group))
        yield tag("p", sentence(summary, group))
        yield from in_doubt(group)


def _left_out(runs: Sequence[Run], found: Several, document: RunComparison) -> Iterator[Html]:
    """Refused pairs with the reason, what a later run lacks, and what the course over time leaves out."""
    lines = [f"{pair_words(pair)}: refused, {plain(why_refused(pair))}" for pair in found.refused]
    lines += missing_lines(document)
    lines += [plain(why, 400) for run in runs for why in not_kept(run.summary)]
    if lines:
        yield tag("div", tag("h3", "Not compared"), items(lines), class_="small")


def _more(runs: Sequence[Run], found: Several, document: RunComparison) -> Html:
    rows = [
        [
            found.names[run.name],
            run.name,
            run.manifest.created_utc,
            _versions(run),
            machine(run.manifest.host, run.summary),
        ]
        for run in runs
    ]
    verdicts = section("verdicts", "Every figure", *prose(each_pair(document)))
    listed = table("Runs", ["name here", "folder", "measured", "engines", "machine"], rows)
    return section(
        "more",
        "Everything else",
        fold("Runs", "folders, versions and machines", section("runs", "The runs", listed)),
        fold("Verdicts", "every figure with its change and interval, and what differs", verdicts),
    )


def _versions(run: Run) -> str:
    versions = dict.fromkeys((cell.label, cell.engine_version) for cell in run.cells)
    return ", ".join(f"{label} {version or 'version not reported'}" for label, version in versions)


def courses(series: Sequence[Series], primary: Set[str], since: str = "") -> Html | None:
    """`primary`: the metrics that decide. `since`: day from which levels are judged; "" judges all.

    None if no figure has several runs.
    """
    drawn = [(entry, chart) for entry in series if (chart := course(entry)) is not None]
    if not drawn:
        return None
    several = [entry for entry, _chart in drawn]
    titles = [chart.title for _entry, chart in drawn]
    shown = titles if len(set(titles)) == len(titles) else names(several)
    pictures = [
        (entry, figure(replace(chart, title=title)))
        for (entry, chart), title in zip(drawn, shown, strict=True)
    ]
    found = [
        (change, name)
        for entry, name in zip(several, names(several), strict=True)
        for change in level_changes(entry)
    ]
    moved = [change.series for change, _name in found if not _is_accepted(change, since)]
    pictures.sort(key=lambda picture: picture[0] not in moved)
    first = [picture for entry, picture in pictures if entry in moved or entry.metric in primary][:MOST_OPEN]
    others = [picture for _entry, picture in pictures if picture not in first]
    return section(
        "courses",
        "Over the runs",
        tag("p", EXPLAINED, class_="muted"),
        _changed(found, several, since),
        _grid(first),
        details(f"Other figures: {counted(len(others), 'chart')}", _grid(others)) if others else None,
    )


def _grid(pictures: Sequence[Html]) -> Html:
    return tag("div", *pictures, class_="figures")


def _is_accepted(change: Change, since: str) -> bool:
    return change.before.created_utc[:10] < since


def _changed(found: Sequence[tuple[Change, str]], series: Sequence[Series], since: str) -> Html:
    """Every change of level, worst first and accepted ones last; without any, how many runs it would take."""
    if found:
        return items(
            tag("span", f"{name}: {step_words(change)}", class_="slower" if change.ratio > 1 else "faster")
            if not _is_accepted(change, since)
            else f"accepted: {name}: {step_words(change)}"
            for change, name in sorted(found, key=lambda step: (_is_accepted(step[0], since), -step[0].ratio))
        )
    few = too_few_runs(series)
    return tag("p", f"No change of level was found{f': {few}' if few else ''}.")
