"""Verifies a run folder: its checksums, its plan, and every figure computed again from the records."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from harness import __version__
from harness.errors import SpecError
from harness.host import installation
from harness.model import LoadPoint, Manifest, Plan, PlanBlock, Prices, Summary, as_json, known
from harness.run.keep import origin
from harness.run.keep.differences import ABSENT, Difference, differences, is_reworded
from harness.store import RunFolder, seal
from harness.store.atomic import json_bytes
from harness.store.seal import Fault
from harness.summary import summarise_folder
from harness.untrusted import read_document

_OF_CELLS = ("cells/", "workloads/", "set-aside/")  # damage there leaves the other cells
# A price is no measurement: costs are computed from the one that the summary names, whoever gave it.
_COST = re.compile(r"^cells\[[^]]*\]\.cost\b")
_COVERS = re.compile(r"\.cost\.price\.covers$")  # in words, of the GPUs that the price was given for


@dataclass(frozen=True, slots=True)
class Verified:
    """Result of `verify`. `missing` says why figures cannot be computed again; empty if they can."""

    files: int | None  # with a checksum; None: the folder has none
    faults: tuple[Fault, ...]
    missing: tuple[str, ...]
    recorded: bool  # this machine measured the run, and has a record of its files
    seal: str
    differences: tuple[Difference, ...] = ()
    added: int = 0  # values that the version which wrote the summary did not have
    reworded: tuple[Difference, ...] = ()  # sentences that another version put in other words
    priced: bool = False  # its costs are at prices that it got after the run, by `bench report`
    made_by: str = "an unknown version"
    other_version: bool = False
    manifest: Manifest | None = field(default=None, repr=False)
    summary: Summary | None = field(default=None, repr=False)  # from the records, by this version

    @property
    def doubts(self) -> list[str]:
        """Reasons not to use the figures of the run.

        Differences from a summary of another version are none: this version's figures replace it. Nor is the
        damage of a cell that was measured again: no figure is made of what lies aside.
        """
        again = {cell.cell for cell in self.summary.cells} if self.summary else set()
        texts = [
            f"{fault.path} {fault.what}" for fault in self.faults if _set_aside_cell(fault.path) not in again
        ]
        texts += self.missing
        return texts if self.other_version else texts + [difference.text for difference in self.differences]

    @property
    def whole(self) -> bool:
        return not (self.faults or self.missing or self.differences)


def verify(folder: RunFolder) -> Verified:
    """Compares a run folder with its checksums, its plan, this machine's record and its own records.

    Raises SpecError for a folder that is not a run, DamagedError if the checksums themselves are damaged.
    """
    checked = seal.faults(folder.files)
    files, faults = checked if checked else (None, [])
    measured = seal.measured(folder.files)
    changed = origin.changed_files(folder.run_id, measured)
    about = partial(Verified, files=files, recorded=changed is not None, seal=seal.seal_of(measured))
    documents = [fault.path for fault in faults if not fault.path.startswith(_OF_CELLS)]
    without = (f"cannot be computed again: no whole {', '.join(documents)}",)
    try:
        manifest = folder.read_manifest()
    except SpecError:
        if not documents:
            raise
        return about(faults=tuple(faults), missing=without)
    faults += _plan_faults(folder, manifest, measured)
    named = {fault.path for fault in faults}
    faults += [Fault(name, what) for name, what in sorted((changed or {}).items()) if name not in named]
    try:
        summary, other = summarise_folder(folder), _is_other_version(manifest)
    except SpecError:
        if not documents:
            raise
        return about(faults=tuple(faults), missing=without)
    found, missing, priced, invented = [], [], False, set[str]()
    try:
        understood, stored = folder.read_summary(), folder.stored_summary()
        missing = list(_missing(stored, summary))
        found = [] if missing else list(differences(stored, _plain(summary)))
        if priced := any(_COST.search(entry.path) for entry in found) and bool(prices := _prices_of(stored)):
            summary = summarise_folder(folder, prices)
            found = [
                entry for entry in differences(stored, _plain(summary)) if not _COVERS.search(entry.path)
            ]
        if any(entry.added for entry in found):  # a key that this version knows, and gives no value here
            alike = differences(_plain(understood), _plain(summary))
            invented = {entry.path for entry in alike if entry.added and entry.computed == ABSENT}
    except SpecError:
        if "summary.json" not in documents:
            raise
        missing = ["cannot be compared: no whole summary.json"]
    added = [entry for entry in found if other and entry.added and entry.path not in invented]
    found = [entry for entry in found if entry not in added]
    labels = {name for cell in summary.cells for name in (cell.label, cell.backend)}
    reworded = [entry for entry in found if other and is_reworded(entry, labels)]
    return about(
        faults=tuple(faults),
        missing=tuple(missing),
        differences=tuple(entry for entry in found if entry not in reworded),
        added=len(added),
        reworded=tuple(reworded),
        priced=priced,
        made_by=_made_by(manifest),
        other_version=other,
        manifest=manifest,
        summary=summary,
    )


def _set_aside_cell(path: str) -> str:
    """The cell that a file in set-aside/ was of; empty for other files."""
    folder, _, name = path.partition("/")
    return name.partition("/")[0].rpartition(".")[0] if folder == "set-aside" else ""


def _plan_faults(folder: RunFolder, manifest: Manifest, measured: Mapping[str, str]) -> Iterator[Fault]:
    """Yields planned cells that are missing without a reason, and cells that were not planned."""
    if manifest.plan_sha256 is not None and measured.get("plan.json") != manifest.plan_sha256:
        yield Fault("plan.json", "is not the plan that the run began with")
    if not folder.has("plan.json"):
        return
    try:
        plan, there = folder.read_plan(), set(folder.cells())
    except SpecError as error:
        yield Fault("plan.json", f"cannot be read: {error.what}")
        return
    planned = [cell.cell for block in plan.blocks for cell in block.cells]
    if manifest.order and list(manifest.order) != planned:
        yield Fault("plan.json", "has other cells than manifest.json")
    if not manifest.find_capacity:
        for name in sorted(there - set(planned)):
            yield Fault(f"cells/{name}", "was not planned")
        for name in _required(folder, manifest, plan, there):
            yield Fault(f"cells/{name}", "was planned and is missing")
    for block in plan.blocks:
        for name in (cell.cell for cell in block.cells if cell.cell in there):
            if not _of_its_start(folder, name, block):
                yield Fault(f"cells/{name}", "is of another start of the engines than was planned")


def _required(folder: RunFolder, manifest: Manifest, plan: Plan, there: set[str]) -> list[str]:
    """Planned cells that are missing though neither a failure nor an interruption explains it.

    With --repeats auto, cells are required up to the first look and the last repeat that the backend has at
    this load: later ones may not have been needed.
    """
    expected = _expected(folder, manifest, plan, there)
    failed = {(failure.backend, failure.repeat) for failure in manifest.failures}
    lives: dict[tuple[str, int], list[str]] = {}
    for block in plan.blocks:
        lives.setdefault(_life(block), []).extend(cell.cell for cell in block.cells)
    last, least = _last_repeats(plan, there), _least_repeats(manifest)
    died = cache(lambda life: _died(folder, life, there))  # a life of many blocks is read once
    missing = []
    for block in plan.blocks:
        alone = [cell.cell for cell in block.cells]
        life = alone if known(block.start) is None else lives[_life(block)]
        if _life(block) in failed or died(tuple(life)):
            continue
        for cell in block.cells:
            needed = least is None or (
                block.repeat < max(least, last.get((block.backend, cell.load), 0))
                and block.repeat % manifest.blocks < _blocks_of(manifest, known(block.start))
            )
            if cell.cell in expected - there and needed:
                missing.append(cell.cell)
    return missing


def _expected(folder: RunFolder, manifest: Manifest, plan: Plan, there: set[str]) -> set[str]:
    """Planned cells that no interruption explains.

    Cells are measured in order, so one explains those after the last one that is there, and cells that were
    set aside to be measured again.
    """
    planned = [cell.cell for block in plan.blocks for cell in block.cells]
    if manifest.state == "complete":
        return set(planned)
    done = max((key for key, cell in enumerate(planned, 1) if cell in there), default=0)
    return {cell for cell in planned[:done] if not folder.times_set_aside(cell)}


def _last_repeats(plan: Plan, there: set[str]) -> dict[tuple[str, LoadPoint], int]:
    """The last repeat that a backend has at a load."""
    last: dict[tuple[str, LoadPoint], int] = {}
    for block in plan.blocks:
        for cell in block.cells:
            if cell.cell in there:
                key = (block.backend, cell.load)
                last[key] = max(block.repeat, last.get(key, 0))
    return last


def _least_repeats(manifest: Manifest) -> int | None:
    """Repeats of every cell that the rule measures before its first look; None where the number is fixed.

    Where one repeat, or start, shows that the budget has no room for as many, there is no look.
    """
    stopping = manifest.stopping
    if stopping is None or not stopping.looks:
        return None
    return manifest.blocks if stopping.reason == "budget" and not stopping.repeats else stopping.looks[0]


def _blocks_of(manifest: Manifest, start: int | None) -> int:
    """Number of blocks that this start was to have after the looks before it."""
    begun = manifest.stopping.blocks if manifest.stopping else ()
    return begun[start] if start is not None and start < len(begun) else manifest.blocks


def _life(block: PlanBlock) -> tuple[str, int]:
    """Backend and number by which the manifest lists a failure of this life of an engine."""
    start = known(block.start)
    return block.backend, block.repeat if start is None else start


def _of_its_start(folder: RunFolder, cell: str, block: PlanBlock) -> bool:
    """Whether the cell was measured in the start of the engines that the plan says.

    Blocks of one start that passed as starts of their own would count as independent.
    """
    try:
        return folder.read_facts(cell).identity.start_number == block.start
    except SpecError:
        return True  # a damaged cell is a fault of its own


def _died(folder: RunFolder, cells: Sequence[str], there: set[str]) -> bool:
    """Whether the engine of these cells ended in one of them."""
    try:
        return any(folder.read_facts(cell).engine_over for cell in cells if cell in there)
    except SpecError:
        return False  # a damaged cell is a fault of its own


def _missing(stored: Mapping[str, Any], summary: Summary) -> Iterator[str]:
    names = {cell.cell for cell in summary.cells}
    cells = stored.get("cells")
    listed = [cell.get("cell") for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    if gone := [str(name) for name in listed if name not in names]:
        yield f"cannot be computed again: no whole records of {', '.join(gone)}"


def _prices_of(stored: Mapping[str, Any]) -> dict[str, Prices]:
    """Prices by cell; cells with an incomplete price are left out."""
    prices: dict[str, Prices] = {}
    for cell in stored["cells"]:
        match cell:
            case {
                "cell": str(name),
                "cost": {
                    "price": {
                        "per_hour": float() | int() as amount,
                        "currency": str(currency),
                        "source": str(source),
                    }
                },
            }:
                prices[name] = Prices(currency=currency, source=source, machine_per_hour=amount)
    return prices


def _plain(summary: Summary) -> Any:
    return read_document(json_bytes(as_json(summary)))


def _is_other_version(manifest: Manifest) -> bool:
    """Whether the manifest names another version as the one that wrote the run.

    A checkout with uncommitted changes counts as another version, even of itself.
    """
    here, there = installation.revision(), manifest.git
    if here is None or there is None:
        return manifest.packages.get(installation.DISTRIBUTION) != __version__ or (here is None) != (
            there is None
        )
    return here.revision != there.revision or here.dirty or there.dirty


def _made_by(manifest: Manifest) -> str:
    version = manifest.packages.get(installation.DISTRIBUTION, "an unknown version")
    commit = manifest.git
    return version if commit is None else f"{version}, commit {commit.revision[:12]}"
