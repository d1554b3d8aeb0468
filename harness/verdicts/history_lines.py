"""Lines of the history: what a run adds to it, and what it lacks a figure for."""

from collections.abc import Container, Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec.structs import replace

from harness.conditions import TABLE, settings
from harness.model import (
    UNSET,
    Capacity,
    CellResult,
    Estimate,
    HistoryEntry,
    HistoryFigure,
    HistoryHost,
    HistoryLoad,
    HostFacts,
    LoadPoint,
    Manifest,
    Summary,
    UnsetType,
    known,
)
from harness.model.grouping import grouped
from harness.model.json_path import number_at
from harness.verdicts.capacity import surely_carried, why_unknown
from harness.verdicts.gate import TAIL, failed_of
from harness.verdicts.ratio import last_digit

TAIL_METRIC = f"{TAIL}.p99"  # if there are enough requests for it
_NO_FIRST = "without its first repeat, its requests are not known to be those of other runs"
# The engine, which the user's own name of a server does not tell, and what is asked of it. The others of
# these have a key of their own in a line.
ASKED = {
    key.code: key
    for key in TABLE
    if key.code == "backend"
    or (
        key.area == "work"
        and key.itself == "refuses"
        and key.code not in ("workload", "simulated", "scenario", "thinking")
    )
}

Key = tuple[str, LoadPoint]  # a backend and a load


def entries(manifest: Manifest, summary: Summary) -> list[HistoryEntry]:
    """Lines of the history for a run, one per backend and load: the metrics of its verdicts, and the tail.

    A capacity search has one per backend, and none of the loads that it happened to try. What `not_kept`
    names has none.
    """
    if summary.capacity is not None:
        return [
            _of_search(manifest, summary, found)
            for found in summary.capacity
            if not why_no_capacity(summary, found)
        ]
    return [
        _of_load(manifest, summary, key, work, metrics)
        for key, metrics in _figures(summary).items()
        if (work := _requests(summary, key)) is not None
    ]


def not_kept(summary: Summary) -> list[str]:
    """A sentence for each backend and load without a valid figure, or whose requests are not known, and for
    each capacity that is not known.

    Every repeat has requests of its own, and the first ones say whether nights had the same.
    """
    figures = _figures(summary)
    if not summary.cells:
        return [f"{summary.run} is not in the history: no cell of it was measured"]
    if summary.capacity is not None:
        return [
            f"the capacity of {found.label} of {summary.run} is not in the history: {why}"
            for found in summary.capacity
            if (why := why_no_capacity(summary, found))
        ]
    return [
        f"{label} {load.label} of {summary.run} is not in the history: {why}"
        for label, load in dict.fromkeys((cell.label, cell.point) for cell in summary.cells)
        if (why := _why_not(summary, (label, load), figures))
    ]


def _why_not(summary: Summary, key: Key, figures: Container[Key]) -> str:
    if key not in figures:
        return "it has no valid figure"
    if _requests(summary, key) is None:
        return _NO_FIRST
    return ""


def why_no_capacity(summary: Summary, found: Capacity) -> str:
    """The first probe of all searches between the same ends has the same load: its requests tell the work."""
    return why_unknown(found) or ("" if _first_probe(summary, found.label).repeat == 0 else _NO_FIRST)


def _first_probe(summary: Summary, label: str) -> CellResult:
    return min((cell for cell in summary.cells if cell.label == label), key=attrgetter("started_unix_ns"))


def _figures(summary: Summary) -> dict[Key, dict[str, HistoryFigure]]:
    figures: dict[Key, dict[str, HistoryFigure]] = {}
    for estimate in summary.estimates:
        if estimate.metric in (*summary.verdict_rules.metrics, TAIL_METRIC):
            here = figures.setdefault((estimate.label, estimate.load), {})
            here[estimate.metric] = HistoryFigure(
                interval=estimate.interval, runs=estimate.runs, printed_to=_printed_to(summary, estimate)
            )
    return figures


def _printed_to(summary: Summary, estimate: Estimate) -> float | UnsetType:
    """The last digit of figures that files state; missing where they were computed from records."""
    cells = (cell for cell in summary.cells if (cell.label, cell.point) == (estimate.label, estimate.load))
    stated = [cell for cell in cells if cell.imported is not None and cell.imported.level == "summary"]
    figures = [value for cell in stated if (value := number_at(cell, estimate.metric)) is not None]
    return last_digit(figures) if figures else UNSET


def _requests(summary: Summary, key: Key) -> str | None:
    """Hash of the first repeat's requests, or that of another backend that had the same in other repeats."""
    by_label: dict[str, dict[int, str]] = {}
    for cell in summary.cells:
        if cell.point == key[1]:
            by_label.setdefault(cell.label, {}).setdefault(cell.repeat, cell.workload_sha256)
    own = by_label[key[0]]
    alike = (hashes for hashes in by_label.values() if hashes.items() & own.items())
    return next((hashes[0] for hashes in (own, *alike) if 0 in hashes), None)


def _of_load(
    manifest: Manifest, summary: Summary, key: Key, work: str, metrics: dict[str, HistoryFigure]
) -> HistoryEntry:
    cells = [cell for cell in summary.cells if (cell.label, cell.point) == key]
    failed, ended = failed_of(cells)
    prompts = [tokens.mean for cell in cells if (tokens := cell.conditions.prompt_tokens)]
    answers = [cell.conditions.output_tokens_mean for cell in cells]
    return replace(
        _entry(manifest, summary, cells, work, metrics),
        load=key[1],
        prompt_tokens_mean=UNSET if work else _mean(prompts),
        output_tokens_mean=UNSET if work else _mean(answers),
        failed=failed,
        ended=ended,
    )


def _of_search(manifest: Manifest, summary: Summary, found: Capacity) -> HistoryEntry:
    """A line with counts of failures at the loads that are surely carried alone: a search asks for more than
    a server can answer.
    """
    cells = [cell for cell in summary.cells if cell.label == found.label]
    low, value, high = found.interval
    assert value is not None  # else `not_kept` names it
    figure = HistoryFigure(interval=(low, value, high), runs=found.searches)
    work = _first_probe(summary, found.label).workload_sha256
    return replace(
        _entry(manifest, summary, cells, work, {capacity_metric(found): figure}),
        searched=_searched(manifest, found),
        carried=carried(cells, found) or UNSET,
    )


def carried(cells: Sequence[CellResult], found: Capacity) -> tuple[HistoryLoad, ...]:
    """Counts of requests at each load that was tried and is surely carried. `cells`: of this backend."""
    most = surely_carried(found)
    by_load = grouped((cell.load.value, cell) for cell in cells if cell.load.value <= most)
    counts = ((value, failed_of(here)) for value, here in sorted(by_load.items()))
    return tuple(HistoryLoad(value=value, failed=failed, ended=ended) for value, (failed, ended) in counts)


def capacity_metric(found: Capacity) -> str:
    return "capacity_requests_per_s" if found.kind == "rate" else "capacity_in_flight"


def _searched(manifest: Manifest, found: Capacity) -> tuple[float, float] | UnsetType:
    loads = (known(manifest.scenario.load) or {}).get(found.kind)
    return (min(loads), max(loads)) if loads else UNSET


def _entry(
    manifest: Manifest,
    summary: Summary,
    cells: Sequence[CellResult],
    work: str,
    metrics: dict[str, HistoryFigure],
) -> HistoryEntry:
    host = manifest.host or HostFacts()
    return HistoryEntry(
        run=summary.run,
        created_utc=manifest.created_utc,
        scenario=summary.scenario,
        host=HistoryHost(
            cpu=host.cpu, cpu_features=host.cpu_features, cpus_usable=host.cpus_usable, gpus=host.gpus
        ),
        harness=manifest.git.revision if manifest.git else None,
        simulated=summary.simulated,
        label=cells[0].label,
        load=None,
        workload_sha256=work,
        engine_version=", ".join(dict.fromkeys(filter(None, (cell.engine_version for cell in cells))))
        or None,
        conditions=dict(_conditions(manifest, cells)),
        invalid=sum(cell.invalid for cell in cells),
        metrics=metrics,
    )


def _mean(values: Iterable[float | None]) -> float | UnsetType:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else UNSET


def _conditions(manifest: Manifest, cells: Sequence[CellResult]) -> Iterator[tuple[str, str]]:
    """A variant that the user's own name of a server hides goes with its engine."""
    stated, variant = settings(manifest, cells[0].label).known, f"@{cells[0].variant}"
    hidden = variant if cells[0].variant and variant not in cells[0].label else ""
    for code, key in ASKED.items():
        of_cells = (key.cell(cell) for cell in cells if key.cell is not None)
        value = stated.get(code) or next((value for value in of_cells if value is not None), None)
        if value is not None:
            yield code, f"{value}{hidden}" if code == "backend" else str(value)
