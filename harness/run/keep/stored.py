"""Cells of a run that are measured: of a new run, or of a folder that was cut short."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self

from harness.doctor.result import advice
from harness.errors import DamagedError, SpecError, StorageError
from harness.metrics.pooled import samples
from harness.model import CellFacts, CellResult, Failure, IssueCode, LoadPoint, Summary, known
from harness.plan import highest_load, slots_of
from harness.records.layout import Records
from harness.records.request_table import RequestTable
from harness.records.series import Telemetry
from harness.run.keep import origin
from harness.run.keep.manifest import ManifestWriter, plan_of
from harness.run.setup import noise
from harness.run.setup.options import Ui
from harness.run.setup.prepare import Prepared
from harness.sampling import machine
from harness.store import RunFolder, seal
from harness.summary import FolderSamples, extras_of, look_of, summarise_run, summarise_view, view_of
from harness.validity import LONGEST_AGAIN_S, decisive, notices, spoiled
from harness.verdicts.sequential import LookResult
from harness.workload.traces import Trace

_MOST_AGAIN = 2  # times that a cell is measured again


@dataclass
class Stored:
    """Everything that a run has measured so far, in memory and in its folder."""

    prepared: Prepared
    folder: RunFolder
    ui: Ui
    manifest: ManifestWriter
    cells: list[CellResult] = field(default_factory=list)  # in plan order
    samples: FolderSamples = field(init=False)  # by the name of the cell
    lost: frozenset[str] = frozenset()  # cells of the summary that a resumed run no longer has
    summarised: int = 0  # cells in the summary that `write_summary` wrote last

    def __post_init__(self) -> None:
        self.samples = FolderSamples(self.folder, ())

    @classmethod
    def start(cls, prepared: Prepared, ui: Ui) -> Self:
        load = prepared.scenario.load
        most = highest_load(load)
        slots = slots_of(load, most)
        value = slots or most.value
        if most.kind == "trace" and isinstance(prepared.source, Trace):
            value *= prepared.source.rate_per_s
        doubt = advice("concurrency" if slots else "rate", value, machine.host_facts())
        if doubt:
            ui.note(f"hint: {doubt}")
        if prepared.scenario.profile:
            ui.note(f"sized for profile {prepared.scenario.profile} (--profile)")
        folder = RunFolder.create(prepared.options.out, prepared.scenario.name)
        folder.write_plan(plan_of(prepared))
        try:
            origin.keep(folder.run_id, prepared.options, seal.measured(folder.files))
        except StorageError as error:
            ui.note(f"{error}; `bench resume` will ask before it goes on with this run")
        return cls(prepared, folder, ui, ManifestWriter.new(folder, prepared))

    @classmethod
    def resume(cls, prepared: Prepared, folder: RunFolder, ui: Ui) -> Self:
        """Keeps the cells that ran to their end, so that only the others are measured.

        Those that were cut short are set aside: readers of the folder would count them as measured, and their
        prompts were sent.
        """
        try:
            _, faults = seal.faults(folder.files) or (0, [])
            damaged = {fault.path for fault in faults}
            origin.begin_again(folder.run_id, seal.measured(folder.files), damaged)
        except StorageError as error:
            ui.note(f"{error}; `bench verify` cannot compare this run with what was measured")
        manifest = ManifestWriter.resumed(folder, prepared)
        run = cls(prepared, folder, ui, manifest)
        there, measured = folder.cells(), summarised(folder)
        # Bench was killed while they were measured or stored: nobody can read what is there of them.
        begun = [cell for cell in folder.files.children("cells") if cell not in there]
        for cell in begun:
            for name in folder.files.children(f"cells/{cell}"):
                folder.files.remove(f"cells/{cell}/{name}")
            seal.leave(folder.files, f"cells/{cell}")
            folder.set_aside(cell, cut_short=True)
        for cell in there:
            try:
                records, facts = folder.read_cell(cell)
                if facts.interrupted:
                    folder.set_aside(cell, cut_short=True)
                else:
                    run.keep(records, facts, folder.read_requested(facts), folder.read_telemetry(cell))
            except DamagedError as error:
                moved_to = folder.set_aside(cell)
                text = f"{error}; measured again, the damaged one is {moved_to}"
                manifest.warn(notices.CELL_DAMAGED.warning(text, ""))
        if prepared.options.pairing != "starts":
            run._set_aside_partners()
        run.lost = measured.difference(run.samples)
        return run

    def _set_aside_partners(self) -> None:
        """Sets aside cells of engines that were to be up together, where another is missing that was to be
        measured in the same start, or with running servers in the same repeat: all are measured again.
        """
        groups = defaultdict[tuple[int | None, LoadPoint], list[str]](list)
        for block in self.prepared.plan:
            together = block.start if self.prepared.cores_of(block) else block.repeat
            for cell in block.cells:
                groups[together, cell.load].append(cell.name)
        for names in groups.values():
            apart = [name for name in names if name in self.samples]
            if len(apart) == len(names):
                continue
            for name in apart:
                moved_to = self.folder.set_aside(name, cut_short=True)
                self.samples.forget(name)
                self.ui.note(
                    f"{name}: measured again with the cells next to it; what was measured is {moved_to}"
                )
        self.cells = [cell for cell in self.cells if cell.cell in self.samples]

    def _warn_of_starts(self) -> None:
        """Warns if resuming starts an engine again that was to run through all repeats."""
        for backend in self.prepared.backends:
            if self.cells and backend.between != "restart" and backend.launch.mode != "attach":
                text = f"{backend.label}: resumed, so its repeats are of more than one start"
                self.manifest.warn(notices.ANOTHER_START.warning(text, backend=backend.label))

    @property
    def summary(self) -> Summary:
        manifest = self.manifest.document
        return summarise_run(manifest, self.cells, self.samples, extras_of(self.folder, manifest))

    def write_summary(self) -> None:
        """Writes the summary of the cells so far, unless fewer than a tenth of them are new: it compares all.

        After every block of a long run that would take a time that grows with the square of the cells.
        """
        count = len(self.cells)
        if count - self.summarised >= count // 10:
            self.folder.write_summary(self.summary)
            self.summarised = count

    def keep(
        self, records: Records, facts: CellFacts, requested: RequestTable | None, telemetry: Telemetry
    ) -> CellResult:
        view = view_of(records, facts, requested, telemetry)
        cell = summarise_view(view)
        self.cells = sorted([*self.cells, cell], key=attrgetter("cell"))
        self.samples.keep(cell.cell, samples(view))
        return cell

    @property
    def failures(self) -> Sequence[Failure]:
        return self.manifest.document.failures

    def look(self) -> LookResult:
        manifest = self.manifest.document
        return look_of(manifest, self.cells, self.samples, extras_of(self.folder, manifest))

    def again(self, cell: CellResult) -> bool:
        """Sets the cell aside if it was spoiled; returns whether it has to be measured again."""
        why = set_aside(self.folder, self.manifest, cell)
        if why is not None:
            self.cells = [kept for kept in self.cells if kept.cell != cell.cell]
            self.samples.forget(cell.cell)
            self.ui.note(f"warning: {why}")
        return why is not None

    def keep_measured(self) -> None:
        """Stores hashes outside the folder, so that `bench verify` on this machine notices changes."""
        try:
            origin.keep_measured(self.folder.run_id, seal.measured(self.folder.files))
        except StorageError as error:
            self.ui.note(f"{error}; `bench verify` cannot compare this run with what was measured")

    def keep_noise(self) -> None:
        """Stores the noise floors for later runs; not those of an engine that changed during this one."""
        summary = self.summary
        changed = {
            str(warning.backend).partition("#")[0]
            for warning in summary.warnings
            if warning.code == IssueCode.ENGINE_CHANGED
        }
        keys = {
            label.partition("#")[0]: known(backend.noise_key)
            for label, backend in self.manifest.document.backends.items()
        }
        noise.store(
            {
                key: [entry for entry in summary.noise if entry.backend == name]
                for name, key in keys.items()
                if key and name not in changed
            }
        )


def summarised(folder: RunFolder) -> frozenset[str]:
    """Cells of the last summary; none where it cannot be read, since a resumed run writes another."""
    try:
        return frozenset(cell.cell for cell in folder.read_summary().cells)
    except SpecError:
        return frozenset()


def set_aside(folder: RunFolder, manifest: ManifestWriter, cell: CellResult) -> str | None:
    """Moves the files of a spoiled cell, warns, and returns why it is to be measured again.

    None: the cell stays, because measuring it again is no better, it took longer than `LONGEST_AGAIN_S`, or
    it was measured again `_MOST_AGAIN` times.
    """
    name, found = cell.cell, decisive(cell.validity)
    if found is None or not spoiled(found[0]):
        return None
    cause, reason = found
    if cell.sample is not None and cell.sample.seconds > LONGEST_AGAIN_S:
        return None
    if folder.times_set_aside(name, whole=True) >= _MOST_AGAIN:
        return None
    kept = folder.set_aside(name)
    text = f"{name} was measured again: {reason.code}, {reason.measured}; limit {reason.limit}"
    blamed = "" if cause == "either" else f"put down to the {cause}, not to the engine; "
    hint = f"{reason.hint}; {blamed}see {kept}"
    manifest.warn(notices.MEASURED_AGAIN.warning(text, hint))
    return text
