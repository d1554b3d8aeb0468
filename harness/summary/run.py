"""Cells of a run to its summary.json. All of it can be computed again from a copied run folder."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs
from msgspec.structs import replace

from harness import agreement, claims, conditions
from harness.errors import SpecError
from harness.metrics.latency import by_arrival
from harness.metrics.pooled import Samples, samples
from harness.metrics.scaling import scaling
from harness.metrics.view import RequestView
from harness.model import (
    UNSET,
    Agreement,
    CellResult,
    Manifest,
    Prices,
    RunWarning,
    Stopping,
    Summary,
    WorkloadCard,
    known,
)
from harness.records.layout import Records
from harness.store import RunFolder
from harness.summary.cell import summarise_view, view_of
from harness.validity import notices
from harness.validity.engine_changed import engine_changes
from harness.validity.stalls import engine_stalls
from harness.validity.steady import ramp_warnings
from harness.validity.telemetry import gaps
from harness.verdicts import compare, rules_of
from harness.verdicts.capacity import capacity
from harness.verdicts.capacity_pairs import capacity_pairs
from harness.verdicts.comparison import rows_of
from harness.verdicts.knee import knees
from harness.verdicts.pairs import MOST_TOGETHER
from harness.verdicts.per_user import speed_levels
from harness.verdicts.sequential import LookResult, take_look

_ROOM_BYTES = 64 << 20  # of samples that are kept because they may be asked for: a large cell has 1 MB


class RunExtras(NamedTuple):
    """Holds what a run folder holds apart from its cells; None where it was not made.

    workload_card: by load point what its requests are. agreement: how far the backends' answers were right,
    alike and unharmed by load.
    """

    workload_card: dict[str, WorkloadCard] | None = None
    agreement: Agreement | None = None


class FolderSamples(Mapping[str, Samples]):
    """What percentiles over several runs are made of, by cell, each read when it is first asked for.

    Only a percentile that the requests of some run are too few for asks. Held for every cell of many large
    runs they would be most of the memory of a comparison, and of a run of many cells. `cells`: by default all
    that are complete.
    """

    def __init__(self, folder: RunFolder, cells: Iterable[str] | None = None) -> None:
        self._folder, self._room = folder, _ROOM_BYTES
        self._read: dict[str, Samples | None] = dict.fromkeys(folder.cells() if cells is None else cells)

    def keep(self, cell: str, found: Samples) -> None:
        """Saves reading this cell again, unless there are so many that they would take much memory."""
        size = _size(found)
        fits = size <= self._room
        self._room -= size * fits
        self._read[cell] = found if fits else None

    def forget(self, cell: str) -> None:
        """Leaves out a cell that was set aside."""
        self._room += _size(self._read.pop(cell) or {})

    def __getitem__(self, cell: str) -> Samples:
        found = self._read[cell]
        if found is None:
            found = self._read[cell] = samples(RequestView(by_arrival(self._folder.read_cell(cell)[0])))
            self._room -= _size(found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def _size(found: Samples) -> int:
    return sum(values.nbytes for values in found.values())


def summarise_run(
    manifest: Manifest,
    cells: Sequence[CellResult],
    pooled: Mapping[str, Samples],
    extras: RunExtras | None = None,
) -> Summary:
    """`pooled`: the samples of every cell by its name. `extras`: what `extras_of` finds in the folder."""
    extras = extras or RunExtras()
    cells = conditions.with_manifest(cells, manifest, extras.agreement)
    invalid, state = any(cell.invalid for cell in cells), manifest.state
    rules = rules_of(manifest, cells)
    compared = compare(cells, rules, pooled)
    capacities = None
    if manifest.find_capacity:
        highest = _highest_load(manifest)
        capacities = capacity(cells, manifest.repeats, interrupted=state == "interrupted", highest=highest)
    summary = Summary(
        run=manifest.run,
        state="invalid" if state == "complete" and invalid else state,
        scenario=manifest.scenario.scenario.name,
        purpose=manifest.scenario.scenario.purpose,
        model=manifest.model,
        workload_sha256=manifest.workload_sha256,
        simulated=any(cell.simulated for cell in cells),
        cells=cells,
        scaling=scaling(cells),
        unequal=conditions.unequal(cells),
        comparison=compared.comparison,
        noise=compared.noise,
        estimates=compared.estimates,
        ranking=compared.ranking,
        rankings=compared.rankings,
        verdict_rules=compared.verdict_rules,
        stopping=_stopping(manifest),
        capacity=capacities,
        capacity_pairs=capacity_pairs(capacities or (), cells),
        per_user=() if manifest.find_capacity else speed_levels(cells, rules),
        knees=knees(cells),
        workload_card=extras.workload_card,
        agreement=extras.agreement,
        warnings=(*_warnings(manifest, cells), *agreement.warnings(extras.agreement)),
        claims=(),
    )
    return replace(summary, claims=tuple(claims.judge(summary, manifest, claims.load_catalog())))


def look_of(
    manifest: Manifest,
    cells: Sequence[CellResult],
    pooled: Mapping[str, Samples],
    extras: RunExtras,
) -> LookResult:
    """Returns what is decided after the last look that the manifest says was taken; arguments of
    `summarise_run`.
    """
    cells = conditions.with_manifest(cells, manifest, extras.agreement)
    return take_look(rows_of(cells, pooled), rules_of(manifest, cells))


def _stopping(manifest: Manifest) -> Stopping | None:
    """Returns why the run ended where it did; None where the number of repeats was fixed."""
    if manifest.stopping is None:
        return None
    alpha = rules_of(manifest).look_alpha
    return Stopping(**structs.asdict(manifest.stopping), rule="group-sequential", alpha_per_look=alpha)


def _warnings(manifest: Manifest, cells: Sequence[CellResult]) -> list[RunWarning]:
    # Older manifests name the backend of a warning in the list of failures alone.
    failures = [(failure.backend, failure.error) for failure in manifest.failures]
    failed = {text: label for label, error in failures for text in (error, f"{label}: {error}")}
    warnings = [
        replace(warning, backend=warning.backend or failed.get(warning.text, UNSET))
        for warning in manifest.warnings
    ]
    tracks = {cell.label: cell.quantisation for cell in cells if cell.quantisation}
    if len(set(tracks.values())) > 1:
        weights = ", ".join(f"{label} {track}" for label, track in tracks.items())
        warnings.append(notices.DIFFERENT_TRACKS.warning(f"different weights: {weights}"))
    repeats, labels = {cell.repeat for cell in cells}, {cell.label for cell in cells}
    if len(labels) > MOST_TOGETHER:
        text = f"{len(labels):,} backends, and pairs of more than {MOST_TOGETHER} are not compared"
        warnings.append(notices.TOO_MANY_BACKENDS.warning(text))
    if len(labels) > 1 and len(repeats) < 2:
        warnings.append(
            notices.ONE_REPEAT.warning(
                "one run per backend: differences between runs of the same backend are unknown"
            )
        )
    return [*warnings, *engine_changes(cells), *ramp_warnings(cells), *engine_stalls(cells), *gaps(cells)]


def _highest_load(manifest: Manifest) -> float | None:
    load = known(manifest.scenario.load) or {}
    return max(load.get("rate") or load.get("concurrency") or (), default=None)


def extras_of(folder: RunFolder, manifest: Manifest) -> RunExtras:
    questions, requested = folder.read_answers()
    in_order = {label: requested[label] for label in manifest.backends if label in requested}
    in_order |= {label: entry for label, entry in requested.items() if entry.values and entry.values.library}
    return RunExtras(
        folder.read_cards().cards if folder.has("workload.json") else None,
        agreement.compare(agreement.from_json(questions), in_order) if questions else None,
    )


def summarise_folder(
    folder: RunFolder,
    prices: Prices | Mapping[str, Prices] | None = None,
    written: Mapping[str, Records] | None = None,
) -> Summary:
    """Summarises a run from the folder alone; a damaged cell is a warning. Raises SpecError for a folder
    that is not a run.

    `prices`: instead of those the run was given, of all cells or by the name of each. `written`: the records
    of cells that were written just now, which are not read again.
    """
    cells, unreadable, written = [], [], written or {}
    pooled = FolderSamples(folder)
    for name in pooled:
        try:
            there = name in written
            records, facts = (written[name], folder.read_facts(name)) if there else folder.read_cell(name)
            given = prices.get(name) if isinstance(prices, Mapping) else prices
            facts = replace(facts, prices=given or facts.prices)
            requested, telemetry = folder.read_requested(facts), folder.read_telemetry(name)
            cell = view_of(records, facts, requested, telemetry)
            cells.append(summarise_view(cell))
            pooled.keep(name, samples(cell))
            del records, requested, telemetry, cell  # freed before the next is read
        except SpecError as error:
            unreadable.append(notices.of_cell(error).warning(str(error)))
    manifest = folder.read_manifest()
    summary = summarise_run(manifest, cells, pooled, extras_of(folder, manifest))
    return replace(summary, warnings=(*summary.warnings, *unreadable))
