"""What earlier nights measured and tonight did not: a gate on levels alone would not notice."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from harness.errors import SpecError
from harness.model import HistoryEntry, HistoryLoad, LoadPoint, Manifest, ScenarioTables, Summary, known
from harness.model.grouping import grouped
from harness.model.numbers import counted
from harness.nightly.suite import Entry
from harness.spec.backend_refs import parse_backend_list
from harness.verdicts.gate import fail_more, failed_of
from harness.verdicts.history_lines import capacity_metric, carried, why_no_capacity
from harness.verdicts.missing import Missing, invalid_words, is_nothing
from harness.verdicts.run_values import series

LEVEL = 0.01  # chance that a run of a night falsely says that more requests failed: nights are many


def missing(
    entry: Entry,
    why: str,
    history: Iterable[HistoryEntry],
    manifest: Manifest | None,
    summary: Summary | None,
    named: Collection[str] = (),
) -> Iterator[Missing]:
    """What is missing of one run of the suite. `history` holds earlier runs only.

    `manifest` and `summary` are None if it measured nothing, for the reason `why`. What the suite no longer
    asks for is not missing, but for files: once their run is removed, `vllm-fp8` counts as a setting of a
    `vllm` that stays. `named`: what the suite calls the backends of its other files.
    """
    name = summary.scenario if summary else entry.runs_of
    labels = set(_labels(entry))

    def of_entry(label: str) -> bool:
        return (_given(label, {*labels, *named}) if entry.files else label) in labels

    earlier = [
        earlier_entry
        for earlier_entry in history
        if earlier_entry.scenario == name
        and of_entry(earlier_entry.label)
        and (earlier_entry.load is None) == entry.find_capacity
    ]
    if summary is None or manifest is None:
        for label in dict.fromkeys(earlier_entry.label for earlier_entry in earlier):
            yield Missing(label, None, None, why)
        return
    if entry.find_capacity:
        yield from _capacities(earlier, summary, manifest.repeats)
        return
    points = {earlier_entry.load for earlier_entry in earlier} if entry.files else _asked(manifest.scenario)
    known_loads = ((figure, figure.load) for figure in earlier if figure.load is not None)
    places = grouped(((figure.label, load), figure) for figure, load in known_loads if load in points)
    level = LEVEL / max(len(places), 1)
    for (label, load), before in places.items():
        yield from _place((label, load), before, summary, _runs(entry, manifest, before), level)


def _capacities(earlier: Sequence[HistoryEntry], summary: Summary, asked: int) -> Iterator[Missing]:
    """What is missing of the capacities that were known before. `asked`: starts that the suite asks for.

    A search of a rate lacks nothing of earlier ones of requests in flight.
    """
    tonight = {found.label: found for found in summary.capacity or ()}
    level = LEVEL / max(len(tonight), 1)
    for label, metric in dict.fromkeys(
        (entry.label, metric) for entry in earlier for metric in entry.metrics
    ):
        found = tonight.get(label)
        if found is None:
            yield Missing(label, None, metric, "not measured")
        elif capacity_metric(found) == metric:
            if why := why_no_capacity(summary, found):
                yield Missing(label, None, metric, why)
            elif found.searches < asked:
                yield Missing(label, None, metric, f"{found.searches} of {counted(asked, 'search')}")
            cells = [cell for cell in summary.cells if cell.label == label]
            same = (entry for entry in earlier if entry.label == label and metric in entry.metrics)
            before = [load for entry in same for load in known(entry.carried) or ()]
            now = carried(cells, found)
            shared = {load.value for load in now} & {load.value for load in before}
            counts, then = (
                _failed(load for load in loads if load.value in shared) for loads in (now, before)
            )
            if more := _more_failures(counts, then, level):
                yield Missing(label, None, metric, f"{more}, at loads that it carries")


def _more_failures(now: tuple[int, int], before: tuple[int, int], level: float) -> str:
    """A sentence where more requests fail than in earlier nights; else ""."""
    if not fail_more(now, before, level):
        return ""
    return f"{now[0]} of {now[1]} requests failed, {before[0]} of {before[1]} in earlier nights"


def _labels(entry: Entry) -> Iterator[str]:
    """Yields names as the history has them; a backend without a definition any more keeps the given one."""
    if entry.files:
        yield from entry.backends
        return
    for backend in entry.backends:
        try:
            yield from (ref.label for ref in parse_backend_list(backend, own=entry.variants(backend)))
        except SpecError:
            yield backend


def _given(label: str, names: Iterable[str]) -> str | None:
    """The name that was given to files whose backend is `label`: it adds what sets them apart."""
    found = [name for name in names if f"{label}-".startswith(f"{name}-")]
    return max(found, key=len, default=None)


def _runs(entry: Entry, manifest: Manifest, before: Sequence[HistoryEntry]) -> int:
    """Runs that the suite asks for; of files, as many as the night before had; where verdicts end the run, as
    many as the last of them looked at.
    """
    if entry.files:
        return max((figure.runs for figure in before[-1].metrics.values()), default=1)
    return manifest.repeats if manifest.stopping is None else max(manifest.stopping.repeats, 1)


def _asked(scenario: ScenarioTables) -> set[LoadPoint]:
    load = known(scenario.load) or {}
    if sets := load.get("working_set"):
        return {LoadPoint("working-set", value) for value in sets}
    return {
        *(LoadPoint("concurrency", value) for value in load.get("concurrency") or ()),
        *(LoadPoint("rate", value) for value in load.get("rate") or ()),
        *(LoadPoint("trace", value) for value in load.get("replay_speed") or ()),
    }


def _place(
    figure: tuple[str, LoadPoint],
    before: Sequence[HistoryEntry],
    summary: Summary,
    asked: int,
    level: float,
) -> Iterator[Missing]:
    """`asked`: runs that the suite asks for. `level`: chance of a false "more requests failed"."""
    label, load = figure
    cells = [cell for cell in summary.cells if cell.label == label]
    tonight = next((row for row in series(cells, load, {}) if row.measured), None)
    if tonight is None:
        yield Missing(label, load, None, "not measured")
        return
    if tonight.measured < asked:
        yield Missing(label, load, None, f"{tonight.measured} of {asked} runs")
    if more := _more_failures(failed_of((*tonight.cells, *tonight.invalid)), _failed(before), level):
        yield Missing(label, load, None, more)
    if tonight.invalid and any(not entry.invalid for entry in before):
        yield Missing(label, load, None, invalid_words(tonight))
    if tonight.cells:
        middles = {
            estimate.metric: estimate.interval[1]
            for estimate in summary.estimates
            if (estimate.label, estimate.load) == (label, load)
        }
        earlier = (item for entry in before for item in entry.metrics.items())
        had = dict.fromkeys(
            metric for metric, figure in earlier if not is_nothing(metric, figure.interval[1])
        )
        for metric in had:
            if metric in summary.verdict_rules.metrics and is_nothing(metric, middles.get(metric)):
                yield Missing(label, load, metric, f"{'0' if metric in middles else 'null'} in every run")


def _failed(entries: Iterable[HistoryEntry | HistoryLoad]) -> tuple[int, int]:
    """Counts as those of `failed_of`; entries of earlier versions have none."""
    counts = [(known(entry.failed) or 0, known(entry.ended) or 0) for entry in entries]
    return sum(failed for failed, _ in counts), sum(ended for _, ended in counts)
