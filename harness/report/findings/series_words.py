"""Series of a history in words: a name for each, what has become worse, and what cannot be judged yet."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import compress

from harness.model import HistoryEntry, known
from harness.model.grouping import grouped
from harness.model.measures import measure
from harness.model.numbers import as_given, counted, short
from harness.report.findings.changed_then import changed_words
from harness.report.wording import listing, plain, version_words
from harness.verdicts.history import LEAST_NIGHTS, Drift, Series

TWO_LEVELS = 2 * LEAST_NIGHTS  # runs


def names(series: Sequence[Series]) -> list[str]:
    """A name for each; where several share it, with the machine, requests or load that make it another."""
    alike = grouped((_short_name(figure), figure) for figure in series)
    apart = {name: iter(_apart(group)) for name, group in alike.items()}
    return [
        plain(f"{name} ({', '.join(facts)})" if (facts := next(apart[name])) else name)
        for name in map(_short_name, series)
    ]


def _apart(alike: Sequence[Series]) -> list[list[str]]:
    """Returns the facts of each in which those that share a name differ."""
    known = [set(features) for figure in alike if (features := _features(figure)) is not None]
    known = [set.intersection(*known), set.union(*known)] if known else []
    titles = dict.fromkeys(title for figure in alike for title in figure.conditions)
    facts = [_facts(figure, known, titles) for figure in alike]
    differ = [len(set(column)) > 1 for column in zip(*facts, strict=True)]
    return [list(compress(mine, differ)) for mine in facts]


def _facts(series: Series, known: Sequence[Set[str]], titles: Iterable[str]) -> list[str]:
    """What makes runs a series of their own, in words.

    `known`: CPU instructions that all who share a name have, and those that any has. `titles`: conditions of
    the load that any has.
    """
    host = series.entries[0].host
    asked = series.conditions
    return [
        host.cpu or "CPU not known",
        "cores not known" if host.cpus_usable is None else counted(host.cpus_usable, "core"),
        "no GPU" if host.gpus is None else listing(host.gpus),
        _instructions(_features(series), known),
        _requests(series.entries[0]),
        _searched(series.entries[0]),
        *(f"{title} {asked.get(title, 'not given')}" for title in titles),
    ]


def _requests(entry: HistoryEntry) -> str:
    """The hash of requests that bench sent; of those in a file the lengths."""
    if entry.workload_sha256:
        return f"requests {entry.workload_sha256[:8]}"
    lengths = {"prompt": known(entry.prompt_tokens_mean), "answer": known(entry.output_tokens_mean)}
    words = [f"{short(mean)} tokens per {what}" for what, mean in lengths.items() if mean is not None]
    return listing(words) or "requests not known"


def _searched(entry: HistoryEntry) -> str:
    ends = known(entry.searched)
    return f"searched from {as_given(ends[0])} to {as_given(ends[1])}" if ends else ""


def _instructions(features: Sequence[str] | None, known: Sequence[Set[str]]) -> str:
    """Names those that some CPU lacks."""
    if features is None:
        return "CPU instructions not known"
    if more := [feature for feature in features if not all(feature in others for others in known)]:
        return f"CPU with {listing(more)}"
    fewer = any(others - {*features} for others in known)
    return "CPU with fewer instructions" if fewer else "CPU instructions known"


def _features(series: Series) -> Sequence[str] | None:
    return series.entries[0].host.cpu_features


def _short_name(series: Series) -> str:
    made_up = "SIMULATED " if series.simulated else ""
    name = f"{series.scenario} {series.entries[0].where} {measure(series.metric).name}"
    return plain(f"{made_up}{name}")


def conclusion(series: Sequence[Series], drifts: Sequence[Drift]) -> Iterator[str]:
    """A line for each figure that is worse. One that became so with the figure above names no run again."""
    if not drifts:
        yield _no_drift(series)
    worse = [drift.series for drift in drifts]
    above = ""
    for name, drift in zip(names([*worse, *series]) if drifts else (), drifts, strict=False):
        low, high = drift.span
        runs = f"{_run_words(drift.since)}; the best level ended with {_run_words(drift.best)}"
        yield plain(
            f"{name}: {100 * drift.share:.1f}% worse than its best level, {_kind_words(drift)}, "
            f"since {'the same run' if runs == above else runs}; "
            f"95% interval {100 * low:.1f} to {100 * high:.1f}%",
            600,
        )
        above = runs


def _kind_words(drift: Drift) -> str:
    """Two steps are no creep: each may have a cause of its own."""
    if drift.kind == "step":
        return "by one step"
    if len(drift.steps) != 2:
        return "creeping, by several small steps"
    first, second = (f"{100 * step.share:.1f}%" for step in drift.steps)
    return f"by two steps ({first} with {drift.steps[0].since.run}, then {second})"


def since_lines(series: Sequence[Series], drifts: Sequence[Drift]) -> Iterator[str]:
    """A line for each day on which figures became worse, the last one first: whose, by how much that day, and
    what changed then. A figure that is worse by two steps is in the lines of two days.
    """
    steps = [step for drift in drifts for step in drift.steps]
    last_first = sorted(steps, key=lambda each: each.since.created_utc, reverse=True)
    by_day = grouped((step.since.created_utc[:10], step) for step in last_first)
    figures = Counter(_backend(figure) for figure in series if len(figure.entries) >= TWO_LEVELS)
    for day, worse in by_day.items():
        counts = Counter(_backend(step.series) for step in worse)
        whose = listing(
            [f"{name} ({count} of {counted(figures[name], 'figure')})" for name, count in counts.items()]
        )
        most = all(2 * counts[name] > figures[name] for name in figures)
        every = "every backend, " if len(figures) > 1 and most else ""
        shares = sorted(step.share for step in worse)
        by = " to ".join(dict.fromkeys(f"{100 * share:.1f}" for share in (shares[0], shares[-1])))
        changed = f"Changed around then: {changed_words(worse)}."
        yield plain(f"Worse since {day}: {every}{whose}, by {by}%. {changed}", 800)


def _backend(series: Series) -> str:
    return f"{'SIMULATED ' if series.simulated else ''}{series.label}"


def _run_words(entry: HistoryEntry) -> str:
    """Name and engine, and the day where the name has another: an import is named by its own time."""
    day = entry.created_utc[:10]
    measured = "" if entry.run.startswith(day.replace("-", "")) else f"of {day}, "
    return f"{entry.run} ({measured}{version_words(entry.engine_version)})"


def _no_drift(series: Sequence[Series]) -> str:
    if few := too_few_runs(series):
        return f"Nothing can be judged: {few}."
    unjudged = sum(len(figure.entries) < TWO_LEVELS for figure in series)
    rest = f"; {unjudged} of {len(series)} have too few runs to be judged" if unjudged else ""
    return f"No figure is at a worse level than its best{rest}."


def too_few_runs(series: Sequence[Series]) -> str:
    """`the longest series has 2 runs, and two levels need 6`; "" where one is long enough."""
    if not series:
        return "the history has no figure above 0"
    most = max(len(figure.entries) for figure in series)
    if most >= TWO_LEVELS:
        return ""
    return f"the longest series has {counted(most, 'run')}, and two levels need {TWO_LEVELS}"
