"""A comparison with a baseline, in sentences and as data: what is slower, by how much, how sure that is."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from harness.model import (
    ComparedConclusion,
    ComparedFigure,
    ComparedLabel,
    ComparedPair,
    ComparedRun,
    GateRow,
    MissingFigure,
    Order,
    Place,
    RunComparison,
)
from harness.model.baseline import ComparedDoubt
from harness.model.grouping import grouped
from harness.model.measures import Measure, measure, verdict_ways
from harness.model.numbers import counted, percent, percent_of_all, short
from harness.report.findings.accuracy_words import compared_accuracy
from harness.report.findings.capacity_words import verdict_words
from harness.report.findings.conclusion import order_of, speedup
from harness.report.findings.per_user_words import compared_speeds
from harness.report.findings.sentences import load_words, waited
from harness.report.wording import capital, listing, plain
from harness.verdicts import capacity
from harness.verdicts.accuracy import METRIC
from harness.verdicts.missing import Missing

# Verdicts in the order in which they are said: what is worse, or not known, stands first.
_ORDER = ("slower", "not comparable", "not enough runs", "same", "faster")
_OF_CAPACITY = {"fewer": "slower", "undecided": "not enough runs", "more": "faster"}
MOST_PARTS = 4  # figures, or doubts, that a sentence names; the tables and JSON have all


def answers(document: RunComparison) -> list[str]:
    """A sentence per pair and verdict: `vllm is slower than in the run of 2026-11-22: first token by …`.

    For every figure that is slower or faster, for accuracy that was lost, and for the primary metric whatever
    its verdict. The capacities that were searched for stand last.
    """
    names = run_names(document.runs)
    several = len({pair.a.run for pair in document.pairs}) > 1
    found = [sentence for pair in document.pairs for sentence in _of_pair(document, pair, names, several)]
    lines = [text for _word, text in sorted(found, key=lambda answer: _ORDER.index(answer[0]))]
    gone = sum(not figure.allowed for figure in document.missing)
    lacking = [f"{counted(gone, 'measurement')} missing."] if gone else []
    capacities = [
        plain(f"Capacity in the run of {names[run.name]}: {capacity.words(found)}")
        for run in document.runs
        for found in run.capacity
    ]
    return [*(lines or ["Nothing in common to compare."]), *lacking, *capacities]


def doubt_words(document: RunComparison) -> str:
    """`vllm in the run of 2026-11-22: 4 of 6 repeats SUSPECT: contended, lockstep (1 repeat)`; "" without a
    doubt. Backends and runs in the same doubt share a part.
    """
    names = run_names(document.runs)
    by_side = grouped((doubt.about, doubt) for doubt in document.doubts)
    alike = grouped((_doubted(mine), _side(about, names, document)) for about, mine in by_side.items())
    parts = [
        f"{listing(sides)}: {'each ' if len(sides) > 1 else ''}{words}"
        for words, sides in alike.items()
        if words
    ]
    more = [counted(len(parts) - MOST_PARTS, "more doubt")] if len(parts) > MOST_PARTS else []
    return plain("; ".join([*parts[:MOST_PARTS], *more]), 1000)


def _doubted(mine: Sequence[ComparedDoubt]) -> str:
    """Counts all loads together, and names them where others of the same backend are in no doubt."""
    found = [doubt for doubt in mine if doubt.suspect]
    suspect, repeats = sum(doubt.suspect for doubt in found), sum(doubt.repeats for doubt in found)
    broken = sum((Counter(doubt.codes) for doubt in found), Counter[str]())
    codes = [
        code if times == suspect else f"{code} ({counted(times, 'repeat')})" for code, times in broken.items()
    ]
    at = f" at {listing([load_words(doubt.load) for doubt in found])}" if len(found) < len(mine) else ""
    return f"{suspect} of {counted(repeats, 'repeat')}{at} SUSPECT: {', '.join(codes)}" if found else ""


def _side(about: ComparedLabel, names: dict[str, str], document: RunComparison) -> str:
    """The backend, with its run where there are several; of one backend alone its run."""
    labels = {side.label for pair in document.pairs for side in (pair.a, pair.b)}
    run = f"the run of {names[about.run]}"
    if len(document.runs) == 1:
        return about.label
    return run if len(labels) == 1 else f"{about.label} in {run}"


def pair_words(pair: ComparedPair) -> str:
    new, old = pair.a, pair.b
    if new.label == old.label:
        return plain(f"{new.label}: {new.run} against {old.run}")
    where = "" if new.run == old.run else f" ({new.run} against {old.run})"
    return plain(f"{new.label} against {old.label}{where}")


def missing_lines(document: RunComparison) -> Iterator[str]:
    """`missing: llamacpp c8: INVALID failed-requests 3 of 5`, what was allowed included."""
    runs = {figure.run for figure in document.missing}
    for figure in document.missing:
        run = f" ({figure.run})" if len(runs) > 1 else ""
        allowed = " (allowed)" if figure.allowed else ""
        yield plain(f"missing: {place_words(figure)}{run}{allowed}", 400)


def place_words(about: Missing | MissingFigure | GateRow) -> str:
    """`llamacpp c8 TTFT p50: null in 2 of 3 runs`."""
    load = about.load.label if about.load else None
    metric = about.metric if about.metric == METRIC else measure(about.metric).name if about.metric else None
    return f"{' '.join(filter(None, (about.label, load, metric)))}: {about.why}"


def concluded(document: RunComparison) -> ComparedConclusion:
    """The comparison as data, each figure in one direction."""
    orders = tuple(_order(pair, figure) for pair in document.pairs for figure in pair.findings)
    return ComparedConclusion(sentence=" ".join(answers(document)), orders=orders)


def _order(pair: ComparedPair, figure: ComparedFigure) -> Order:
    """The order of two backends; those of one label are distinguished by their runs."""
    alike = pair.a.label == pair.b.label
    a, b = (f"{side.label} ({side.run})" if alike else side.label for side in (pair.a, pair.b))
    found = (speedup(replace(figure, a=a, b=b)),)
    places = [
        Place(label=label, median=value, repeats=runs, doubt="")
        for label, value, runs in zip((a, b), figure.values, figure.runs, strict=True)
    ]
    return order_of(figure.load, figure.metric, places, found)


def run_words(run: ComparedRun) -> str:
    made_up = "SIMULATED" if run.simulated else None
    scenario = None if run.imported else run.scenario  # which says that it was imported as well
    parts = (run.name, scenario, run.created_utc, run.hostname, run.state, made_up, *run.imported)
    return plain("  ".join(str(part) for part in parts if part))


def run_names(runs: Sequence[ComparedRun]) -> dict[str, str]:
    """The day of each run; with its time if runs share the day. Runs of one minute have the ends of their
    names too, or the whole names where those end alike."""
    for length in (10, 16):
        names = {run.name: run.created_utc[:length].replace("T", " ") for run in runs}
        if len(set(names.values())) == len(runs):
            return names
    minutes = list(names.values())
    ends = {name: name.rpartition("-")[2] for name in names}
    alike = len(set(ends.values())) < len(ends)
    return {
        name: minute if minutes.count(minute) == 1 else f"{minute} {name if alike else ends[name]}"
        for name, minute in names.items()
    }


def _of_pair(
    document: RunComparison, pair: ComparedPair, names: dict[str, str], several: bool
) -> Iterator[tuple[str, str]]:
    """Each verdict with its sentence, which names the new run where there are `several`."""
    alike = pair.a.label == pair.b.label
    new = f"{pair.a.label} of {names[pair.a.run]}" if several else pair.a.label
    run = f"the run of {names[pair.b.run]}"
    if pair.a.run == pair.b.run:
        than = other = pair.b.label
    else:
        than, other = (f"in {run}", run) if alike else (f"{pair.b.label} in {run}",) * 2
    if pair.capacity is not None:
        word = _OF_CAPACITY.get(pair.capacity.verdict, "not comparable")
        both = alike and word == "not comparable"
        text = verdict_words(pair.capacity, new, f"{pair.b.label} {than}" if both else than)
        yield word, plain(f"{text if word in ('slower', 'faster') else capital(text)}.", 1000)
    elif not pair.findings:
        yield "not comparable", plain(f"{new} shares no load with {other}.")
    for word in _ORDER if pair.capacity is None else ():  # a search tries loads by chance
        mine = [finding for finding in pair.findings if finding.verdict == word]
        if word not in ("slower", "faster"):
            mine = [finding for finding in mine if finding.primary]
        if not mine:
            continue
        first = sorted(mine, key=lambda finding: not finding.primary)[:MOST_PARTS]
        more = [counted(len(mine) - MOST_PARTS, "more figure")] if len(mine) > MOST_PARTS else []
        parts = listing([*_parts(first, _unit(pair)), *more])
        within = percent(pair.verdict_rules.same_within)
        faster, slower = verdict_ways(*(measure(finding.metric) for finding in mine))
        text = {
            "slower": f"{new} is {slower} than {than}: {parts}.",
            "faster": f"{new} is {faster} than {than}: {parts}.",
            "same": f"{new} is not {slower} than {than} by more than {within}%: {parts}.",
            "not enough runs": f"Undecided whether {new} is {slower} than {than}: {parts}.",
            "not comparable": f"{new} cannot be compared with {other}: {_obstacles(pair, mine)}.",
        }[word]
        yield word, plain(text, 1000)
    for verdict, text in compared_speeds(pair, new, than):
        yield _OF_CAPACITY.get(verdict, verdict), plain(f"{text}.", 1000)
    for loss in compared_accuracy(document, pair, losses_only=True):
        yield "slower", plain(f"{new} against {other}: {loss}.", 1000)


def _obstacles(pair: ComparedPair, figures: Sequence[ComparedFigure]) -> str:
    unequal = [
        f"{difference.what} {difference.baseline} (baseline), {difference.new} (new)"
        for difference in pair.differences
        if difference.matters
    ]
    return "; ".join(unequal if pair.refused else dict.fromkeys(figure.why for figure in figures))


def _unit(pair: ComparedPair) -> str:
    """What more of would decide: a start has several blocks, which are repeats as well."""
    rules = pair.verdict_rules
    if rules.pairing == "starts":
        return "run"
    return "start" if rules.unit == "starts" else "block"


def _parts(figures: Sequence[ComparedFigure], unit: str) -> Iterator[str]:
    """`first token by 3% at 8 users (1 to 5%)`. Loads of which the same is said share a part."""
    around = grouped((_around_load(figure, unit), load_words(figure.load)) for figure in figures)
    for (before, behind), loads in around.items():
        yield f"{before} at {listing(loads)}{behind}"


def _around_load(figure: ComparedFigure, unit: str) -> tuple[str, str]:
    """What stands before and behind the load; for an undecided figure, what would decide it."""
    about = waited(measure(figure.metric))
    if figure.verdict == "not enough runs":
        return about, f" ({_open(figure, unit)})"
    if figure.verdict == "same" or figure.ratio is None:
        return about, ""
    near, middle, far = figure.ratio if figure.ratio.estimate >= 1 else reversed([*figure.ratio])
    span = f"{short(near)}× to {short(far)}×" if middle >= 2 else f"{_percent(near)} to {_percent(far)}%"
    return f"{about} by {_by(middle)}", f" ({span})"


def _open(figure: ComparedFigure, unit: str) -> str:
    """`1% faster to 9% slower; 4 more runs of each would decide`."""
    if figure.ratio is None:
        return plain(figure.lacks or figure.why)
    low, _, high = figure.ratio
    shown = measure(figure.metric)
    best, worst = (high, low) if shown.metric.better == "higher" else (low, high)
    ends = f"{_end(best, shown)} to {_end(worst, shown)}"
    if figure.runs_needed is None:
        # Of blocks that are too alike the whole reason is what they lack.
        few = figure.lacks if figure.lacks == figure.why else ""
        return f"{ends}; {plain(few) or f'more {unit}s would hardly decide'}"
    more = counted(max(figure.runs_needed - min(figure.runs), 1), f"more {unit}")
    return f"{ends}; {more} of each would decide"


def _end(ratio: float, shown: Measure) -> str:
    behind = ratio < 1 if shown.metric.better == "higher" else ratio > 1
    return f"{_by(ratio)} {verdict_ways(shown)[behind]}"


def _by(ratio: float) -> str:
    """`33%` of the baseline, as the table has it; from a doubling on `2.3×`."""
    return f"{short(ratio)}×" if ratio >= 2 else f"{_percent(ratio)}%"


def _percent(ratio: float) -> str:
    """Less than all is not 100."""
    shown = percent(abs(ratio - 1))
    return percent_of_all(1 - ratio) if ratio < 1 and shown == "100" else shown
