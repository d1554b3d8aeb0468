"""One folder per run: manifest, plan and summary.json, workloads/, cells/*/, logs/, and what reports add.

Cells that were measured again lie in set-aside/.

Written cell by cell: a crash loses the cell in flight and nothing else.
"""

import fcntl
import gzip
import json
import os
import re
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TypeVar

from harness.errors import SpecError, StorageError, reason
from harness.model import (
    AskedBackend,
    CellFacts,
    Manifest,
    Plan,
    Probed,
    Record,
    Summary,
    WorkloadCards,
    as_json,
    from_json,
)
from harness.model.schema import RUN_FORMAT
from harness.records.layout import Records
from harness.records.request_table import RequestTable
from harness.records.series import Telemetry
from harness.store import columns, migration, samples, seal
from harness.store.atomic import json_bytes
from harness.store.confined import MOST_BYTES, Confined, check_size, storage_error
from harness.untrusted import read_document

T = TypeVar("T")

# What a compressed workload may become by its size on the disk, and how many lines by that of the records:
# its lines may be equal, but each request that was sent has stamps of its own.
_FREE_BYTES, _BYTES_PER_BYTE = 64 << 20, 64
_FREE_LINES, _ROW_BYTES = 100_000, 8
_LONGEST_LINE = 8 << 20
_CUT_SHORT = "-cut-short"
RUN_ID = re.compile(r"\d{8}T\d{6}Z-.+-[0-9a-f]{6}")
# What reading a damaged workload raises.
_OF_DAMAGE = (
    *(OSError, EOFError, zlib.error, OverflowError, RecursionError),
    *(ValueError, KeyError, TypeError, StopIteration),
)


@dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    @classmethod
    def create(cls, root: Path, scenario: str) -> "RunFolder":
        """Creates a folder under `root`; an existing run is never written into."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = root / f"{stamp}-{scenario}-{secrets.token_hex(3)}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)  # prompts and answers; a stricter umask holds
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise storage_error(error, path) from error
        created = cls(path)
        created.files.make_folder("cells")
        created.files.make_folder("logs")
        seal.begin(created.files)
        return created

    @property
    def files(self) -> Confined:
        return Confined(self.path)

    @property
    def run_id(self) -> str:
        """The folder's own name, also where the path is `.` or a link to it."""
        return self.path.resolve().name

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder until the block or the process ends. Raises SpecError if another process holds
        it.
        """
        with _locked(self.path, fcntl.LOCK_EX) as got:
            if got is False:
                raise SpecError("another bench is measuring this run", where=str(self.path))
            yield

    @property
    def is_held(self) -> bool | None:
        """Whether any process holds it, this one included; None on a file system without locks."""
        with _locked(self.path, fcntl.LOCK_SH) as got:
            return None if got is None else not got

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        self._put(name, json_bytes({"schema": RUN_FORMAT, **value}))

    def _write_as(self, name: str, value: Record, written: Mapping[str, str] | None = None) -> None:
        """Writes only what this version can read again. Raises StorageError for anything else, and leaves
        what was there."""
        data = json_bytes({"schema": RUN_FORMAT, **as_json(value)})
        try:
            check_size(len(data), MOST_BYTES)
            from_json(read_document(data), type(value))
        except ValueError as error:
            raise StorageError(
                f"would not be read again: {error}",
                where=str(self.path / name),
                hint="this is a defect of bench: please report it; the records of the run are kept",
            ) from None
        self._put(name, data, written)

    def _put(self, name: str, data: bytes, inputs: Mapping[str, str] | None = None) -> None:
        """`inputs`: the sha256 of files that were written for this one."""
        seal.enter(self.files, {**(inputs or {}), name: seal.sha256_of(data)})
        self.files.write(name, data)

    def has(self, name: str) -> bool:
        return self.files.has(name)

    def read_json(self, name: str, hint: str | None = None) -> dict[str, object]:
        """`hint`: what to do if the file is missing. Raises SpecError if it is not as written."""
        path = self.path / name
        try:
            data = self.files.read(name)
            seal.check(self.files, name, data)
            value = read_document(data)
        except FileNotFoundError:
            raise SpecError(
                f"has no {name}: not a run folder, or no cell of it has been measured",
                where=str(self.path),
                hint=hint,
            ) from None
        except (OSError, ValueError) as error:
            raise SpecError(f"cannot be read: {reason(error)}", where=str(path)) from None
        version = value.get("schema") if isinstance(value, dict) else None
        if not isinstance(value, dict) or version not in range(1, RUN_FORMAT + 1):
            raise SpecError(
                f"schema {version!r}; this version reads schemas 1 to {RUN_FORMAT}",
                where=str(path),
                hint="another version of bench may have written it: `bench --version` tells this one's",
            )
        return value

    def write_manifest(self, manifest: Manifest) -> None:
        self._write_as("manifest.json", manifest)

    def read_manifest(self) -> Manifest:
        return self._read_as("manifest.json", Manifest)

    def write_plan(self, plan: Plan) -> None:
        self._write_as("plan.json", plan)

    def read_plan(self) -> Plan:
        return self._read_as("plan.json", Plan)

    def write_cards(self, cards: WorkloadCards) -> None:
        self._write_as("workload.json", cards)

    def read_cards(self) -> WorkloadCards:
        return self._read_as("workload.json", WorkloadCards)

    def write_probe(self, label: str, probed: Probed) -> None:
        self._write_as(f"probe-{label}.json", probed)

    def read_probe(self, label: str) -> Probed:
        return self._read_as(f"probe-{label}.json", Probed)

    def write_summary(self, summary: Summary) -> None:
        self._write_as("summary.json", summary)

    def read_summary(self) -> Summary:
        hint = "`bench report` derives it again from the records"
        return self._read_as("summary.json", Summary, hint)

    def stored_summary(self) -> dict[str, object]:
        """summary.json as it was written, in today's names; keys that it lacks are not filled in."""
        return migration.upgraded(self.read_json("summary.json"), Summary)

    def _read_as(self, name: str, kind: type[T], hint: str | None = None) -> T:
        """Reads a document of any origin. Raises SpecError if it is not of this type."""
        document = migration.upgraded(self.read_json(name, hint), kind)
        try:
            return from_json(document, kind)
        except ValueError as error:
            raise SpecError(
                f"not what this version writes: {error}", where=str(self.path / name), hint=hint
            ) from None

    def write_requested(self, name: str, requested: RequestTable) -> str:
        """Writes what the cells of one load point and repeat ask, as JSON lines; returns the path in the
        folder."""
        file = f"workloads/{name}.jsonl.gz"
        self.files.make_folder("workloads")
        lines = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in requested.as_json())
        # No time stamp inside: equal workloads are equal files.
        self._put(file, gzip.compress("".join(f"{line}\n" for line in lines).encode(), 6, mtime=0))
        return file

    def read_requested(self, facts: CellFacts) -> RequestTable | None:
        """None if the run of this cell kept none. Raises SpecError for a damaged file."""
        file = facts.workload.file
        if file is None:
            return None
        seal.check(self.files, file)
        try:
            with self.files.opened(file) as descriptor:
                most = max(_FREE_LINES, self.files.size(f"cells/{facts.cell}/requests.parquet") // _ROW_BYTES)
                return RequestTable.from_json(map(json.loads, _lines(descriptor, most)))
        except _OF_DAMAGE as error:
            raise SpecError(f"cannot be read: {reason(error)}", where=str(self.path / file)) from None

    def write_answers(self, questions: Mapping[str, object], label: str, asked: AskedBackend) -> None:
        """Writes the answers of one backend to the agreement questions, with the questions."""
        self.files.make_folder("agreement/backends")
        self.write_json("agreement/questions.json", questions)
        self._write_as(f"agreement/backends/{label}.json", asked)

    def read_answers(self) -> tuple[dict[str, object] | None, dict[str, AskedBackend]]:
        """The questions, and the answers by backend; None and nothing if they were not asked."""
        answers = self.files.names("agreement/backends/*.json")
        if not answers:
            return None, {}
        by_label = {PurePosixPath(name).stem: self._read_as(name, AskedBackend) for name in answers}
        return self.read_json("agreement/questions.json"), by_label

    def cell_path(self, cell: str) -> Path:
        return self.path / "cells" / cell

    def log_path(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"

    def write_cell(self, records: Records, facts: CellFacts, telemetry: Telemetry | None = None) -> None:
        """Writes the records first and cell.json last: a cell with a cell.json is complete."""
        folder = f"cells/{facts.cell}"
        self.files.make_folder(folder)
        columns.write_records(records, self.files, folder)
        if telemetry is not None and telemetry.series:
            samples.write_telemetry(telemetry, self.files, folder)
        names = [f"{folder}/{name}" for name in self.files.children(folder) if name.endswith(".parquet")]
        written = {name: self.files.sha256(name) for name in names}
        self._write_as(f"{folder}/cell.json", facts, written)

    def set_aside(self, cell: str, *, cut_short: bool = False) -> str:
        """Moves a cell with all its files out of the measured ones; returns its new place in the folder."""
        target = f"set-aside/{cell}.{self.times_set_aside(cell) + 1}{_CUT_SHORT * cut_short}"
        self.files.make_folder("set-aside")
        seal.move(self.files, f"cells/{cell}", target)
        self.files.move(f"cells/{cell}", target)
        seal.leave(self.files, f"cells/{cell}")
        return target

    def times_set_aside(self, cell: str, *, whole: bool = False) -> int:
        """`whole`: without those that an interruption cut short."""
        names = (name for name in self.files.children("set-aside") if name.startswith(f"{cell}."))
        return sum(not (whole and name.endswith(_CUT_SHORT)) for name in names)

    def cells(self) -> list[str]:
        """Names of the complete cells, in plan order."""
        return sorted(PurePosixPath(name).parts[1] for name in self.files.names("cells/*/cell.json"))

    def read_facts(self, cell: str) -> CellFacts:
        facts = self._read_as(f"cells/{cell}/cell.json", CellFacts)
        if facts.cell != cell:  # a copy would count as one more repeat
            raise SpecError(f"is of the cell {facts.cell}", where=str(self.cell_path(cell)))
        return facts

    def read_cell(self, cell: str) -> tuple[Records, CellFacts]:
        """Raises SpecError if either is not as it was written."""
        facts = self.read_facts(cell)
        for name in ("requests", "events"):
            seal.check(self.files, f"cells/{cell}/{name}.parquet")
        try:
            closed_loop = facts.load.slots is not None
            return columns.read_records(self.files, f"cells/{cell}", closed_loop=closed_loop), facts
        except (OSError, ValueError, KeyError) as error:
            raise SpecError(f"records cannot be read: {error}", where=str(self.cell_path(cell))) from None

    def read_telemetry(self, cell: str) -> Telemetry:
        """Empty for a cell that was measured without. Raises SpecError for a damaged file."""
        seal.check(self.files, f"cells/{cell}/{samples.FILE}")
        try:
            return samples.read_telemetry(self.files, f"cells/{cell}")
        except (OSError, ValueError, KeyError) as error:
            raise SpecError(f"samples cannot be read: {error}", where=str(self.cell_path(cell))) from None


def _lines(descriptor: int, most: int) -> Iterator[bytes]:
    """The lines of a compressed file. Raises ValueError for more lines, or far more bytes, than it may
    have.
    """
    stored = os.fstat(descriptor).st_size
    left = max(_FREE_BYTES, _BYTES_PER_BYTE * stored)
    with os.fdopen(os.dup(descriptor), "rb") as compressed, gzip.open(compressed) as file:
        while line := file.readline(_LONGEST_LINE + 1):
            left -= len(line)
            most -= 1
            if min(left, most) < 0 or len(line) > _LONGEST_LINE:
                raise ValueError(f"{stored:,} bytes that hold more than a workload of this size can")
            yield line


@contextmanager
def _locked(folder: Path, kind: int) -> Iterator[bool | None]:
    """Whether the lock was taken; None where there are no locks. A shared lock is held for a moment only."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield _lock(descriptor, kind, tries=20 if kind == fcntl.LOCK_EX else 1)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int, tries: int) -> bool | None:
    for _ in range(tries):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return None
        else:
            return True
    return False


def stored_runs(results: Path, pattern: str = "*") -> list[RunFolder]:
    """The runs under `results` that have a manifest, as they began; none if that is no folder.

    One that may not be entered is among them where it has the name of a run: each is its owner's alone.
    """
    try:
        paths = sorted((path for path in results.glob(pattern) if _is_run(path)), key=_beginning)
    except (OSError, ValueError):
        return []
    return [RunFolder(path) for path in paths]


def _beginning(path: Path) -> tuple[str, int, str]:
    """Several results may be imported within a second: their names are then in no order."""
    if RUN_ID.fullmatch(path.name) is None:
        return path.name, 0, ""
    written_ns = 0
    with suppress(OSError):
        written_ns = (path / "manifest.json").stat().st_mtime_ns
    return path.name.partition("-")[0], written_ns, path.name


def _is_run(path: Path) -> bool:
    try:
        (path / "manifest.json").stat()
    except OSError as error:
        return isinstance(error, PermissionError) and RUN_ID.fullmatch(path.name) is not None
    return True


def each_once(runs: Iterable[RunFolder]) -> list[RunFolder]:
    """Leaves out runs that are others again, under another path."""
    return list({run.path.resolve(): run for run in runs}.values())


def names_apart(runs: Iterable[str]) -> list[str]:
    """The names, numbered from the second of a name on: copies of a run have the same name."""
    seen: Counter[str] = Counter()
    names = []
    for run in runs:
        seen[run] += 1
        names.append(run if seen[run] == 1 else f"{run} ({seen[run]})")
    return names
