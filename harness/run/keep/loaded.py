"""Opens run folders for comparison: verified, with the figures that may be used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from harness.errors import DamagedError, SpecError
from harness.metrics.pooled import Samples
from harness.model import IssueCode, Manifest, Summary
from harness.model.numbers import counted
from harness.run.keep.verified import Verified, verify
from harness.store import RunFolder, names_apart, open_run
from harness.summary import FolderSamples
from harness.verdicts.baseline import Run

_TWO_RUNS = "name runs of two measurements"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run opened for comparison. Each of `notes` is a line that a reader of its figures must know.

    `samples` are read from its folder when they are asked for.
    """

    folder: RunFolder
    manifest: Manifest
    summary: Summary
    samples: Mapping[str, Samples]
    notes: tuple[str, ...] = ()
    verified: bool = True

    @property
    def name(self) -> str:
        return self.folder.run_id


def load_run(name: str, results: Path, *, unverified: bool = False) -> LoadedRun:
    """Loads the run with the figures that this version computes from the records.

    `name` is a path, or a name under `results`. `unverified`: the figures as summary.json has them, each
    doubt is a note, and samples are empty if the records are damaged. Raises SpecError for a folder that is
    no run, of another schema, or without a measured cell; DamagedError for one that does not verify.
    """
    folder = open_run(name, results)
    checked = verify(folder)
    if not folder.has("summary.json"):
        folder.read_summary()  # raises, with what makes it again
    loaded = _as_stored(folder, checked) if unverified else _as_computed(folder, checked)
    if not loaded.summary.cells:
        raise SpecError("no cell of this run was measured", where=str(folder.path))
    changed = [
        f"{folder.path}: {warning.text}"
        for warning in loaded.summary.warnings
        if warning.code == IssueCode.ENGINE_CHANGED
    ]
    return replace(loaded, notes=(*loaded.notes, *changed))


def _as_computed(folder: RunFolder, checked: Verified) -> LoadedRun:
    if doubts := checked.doubts:
        more = f", and {len(doubts) - 1} more" if len(doubts) > 1 else ""
        usable = {"manifest.json", "summary.json"}.isdisjoint(fault.path for fault in checked.faults)
        unverified = "--unverified (in Python `unverified=True`) takes what summary.json says all the same"
        hint = "`bench verify` lists all of it" + (f"; {unverified}" if usable else "")
        if not checked.faults and checked.manifest is not None and checked.manifest.state == "running":
            hint = "it goes on, or was cut off: `bench report` sums up its cells, `bench resume` finishes it"
        raise DamagedError(f"does not verify: {doubts[0]}{more}", where=str(folder.path), hint=hint)
    assert checked.manifest is not None
    assert checked.summary is not None
    notes = []
    if checked.differences:
        differ = f"{folder.path}: {counted(len(checked.differences), 'value')} not as in its summary.json"
        notes = [f"{differ}: it was measured by {checked.made_by}; the figures of this version are used"]
    return LoadedRun(folder, checked.manifest, checked.summary, FolderSamples(folder), tuple(notes))


def _as_stored(folder: RunFolder, checked: Verified) -> LoadedRun:
    others = (*checked.differences, *checked.reworded) if checked.other_version else ()
    doubts = [*checked.doubts, *(difference.text for difference in others)]
    notes = tuple(f"NOT VERIFIED: {folder.path}: {doubt}" for doubt in doubts)
    manifest, summary = folder.read_manifest(), folder.read_summary()
    try:
        samples = dict(FolderSamples(folder))
    except SpecError:
        samples = {}
    return LoadedRun(folder, manifest, summary, samples, notes, verified=False)


def comparable(runs: Sequence[LoadedRun]) -> list[Run]:
    """Gives each run a unique name.

    Raises SpecError for a run, or a file of another tool, that is there twice.
    """
    _refuse_twice([run.folder.path for run in runs])
    names = names_apart(run.name for run in runs)
    opened = [
        Run(name, run.manifest, run.summary, run.samples) for run, name in zip(runs, names, strict=True)
    ]
    _refuse_itself(opened)
    return opened


def _refuse_twice(folders: Sequence[Path]) -> None:
    seen = set()
    for folder in folders:
        if (resolved := folder.resolve()) in seen:
            raise SpecError("is the same run twice", where=str(folder), hint=_TWO_RUNS)
        seen.add(resolved)


def _refuse_itself(runs: Sequence[Run]) -> None:
    """Raises SpecError: a measurement against itself, as a file or in a copy of its folder, shows no
    difference, whatever happened to the server.
    """
    seen: dict[str, str] = {}
    for run in runs:
        files = {cell.imported.sha256: cell.imported.file for cell in run.cells if cell.imported}
        for sha256, file in files.items():
            if sha256 in seen:
                what = f"{file} is the same file as one of {seen[sha256]}"
                raise SpecError(what, where=run.name, hint="name files of two measurements")
        seen |= dict.fromkeys(files, run.name)
    for first, second in combinations(runs, 2):
        if first.cells and first.manifest == second.manifest and list(first.cells) == list(second.cells):
            raise SpecError(f"is a copy of {first.name}", where=second.name, hint=_TWO_RUNS)
