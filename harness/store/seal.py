"""checksums.json: what every file of a run folder held when it was written.

A file is entered before it appears, beside what it replaces: whenever a run is cut off, what lies there is
entered. Folders of before 0.2 have no checksums, and are read unchecked.
"""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from harness.errors import DamagedError
from harness.store import atomic
from harness.untrusted import read_document

FILE = "checksums.json"
_SCHEMA = 1
_NO_FILE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)
_HINT = "copy the run folder again, or measure anew; `bench verify` checks every file"

Sums = dict[str, list[str]]  # path in the folder → sha256 of what may lie there: the newest first


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    what: str


def begin(folder: Path) -> None:
    """A new folder: from here on every file in it is entered."""
    _write(folder, {})


def enter(folder: Path, written: Mapping[str, str]) -> None:
    """The sha256 of files that are about to appear, or just have."""
    if not (folder / FILE).exists():
        return
    with _locked(folder):
        sums = _read(folder)
        for name, sha256 in written.items():
            there = _digest(folder / name)
            sums[name] = [sha256, *(one for one in sums.get(name, ()) if one == there != sha256)]
        _write(folder, sums)


def move(folder: Path, old: str, new: str) -> None:
    """A sub-folder that is about to be renamed: it is entered in both places."""
    if (folder / FILE).exists():
        with _locked(folder):
            sums = _read(folder)
            moved = {name: sums[name] for name in sums if name.startswith(f"{old}/")}
            _write(folder, sums | {f"{new}{name.removeprefix(old)}": one for name, one in moved.items()})


def leave(folder: Path, old: str) -> None:
    """A sub-folder that is no longer there."""
    if (folder / FILE).exists():
        with _locked(folder):
            _write(
                folder, {name: one for name, one in _read(folder).items() if not name.startswith(f"{old}/")}
            )


def check(folder: Path, name: str, data: bytes | None = None) -> None:
    """Raises DamagedError unless the file, or `data` that was read from it, is as it was written."""
    if not (folder / FILE).exists():
        return
    what = _fault(folder, name, _read(folder), data)
    if what is not None:
        raise DamagedError(what, where=str(folder / name), hint=_HINT)


def faults(folder: Path) -> tuple[int, list[Fault]] | None:
    """How many files are entered, and which of them are not as they were written; None without checksums."""
    if not (folder / FILE).exists():
        return None
    sums = _read(folder)
    damage = [Fault(name, what) for name in sums if (what := _fault(folder, name, sums, None)) is not None]
    damage += [Fault(name, "was not written by bench") for name in _data_files(folder) if name not in sums]
    return len(sums), sorted(damage, key=lambda fault: fault.path)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fault(folder: Path, name: str, sums: Sums, data: bytes | None) -> str | None:
    there = _digest(folder / name) if data is None else sha256_of(data)
    if there is None:
        return "is missing" if name in sums else None
    if name not in sums:
        return "is damaged: it has no checksum"
    return None if there in sums[name] else "is damaged: it is not what was written"


def _digest(path: Path) -> str | None:
    """None where there is no such file, or there can be none of this name."""
    try:
        return sha256_of_file(path)
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def _data_files(folder: Path) -> Iterator[str]:
    """Without logs, which grow, and what `bench report` makes anew."""
    for pattern in ("*.json", "cells/*/*", "set-aside/*/*", "workloads/*", "agreement/**/*.json"):
        for path in folder.glob(pattern):
            if path.name != FILE and not path.name.startswith(".") and path.is_file():
                yield path.relative_to(folder).as_posix()


def _read(folder: Path) -> Sums:
    try:
        document = read_document((folder / FILE).read_bytes())
        sums: Sums = document["files"]
        whole = document["sha256"] == _own_sum(sums) and _is_sums(sums)
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        raise DamagedError(
            "is damaged itself: it cannot be told which file is as it was written",
            where=str(folder / FILE),
            hint=_HINT,
        )
    return sums


def _is_sums(document: object) -> bool:
    """And every name is one of a file in the folder: whoever sent it may have made the checksums as well."""
    return isinstance(document, dict) and all(
        isinstance(sums, list)
        and all(isinstance(one, str) for one in sums)
        and not Path(name).is_absolute()
        and ".." not in Path(name).parts
        for name, sums in document.items()
    )


def _write(folder: Path, sums: Sums) -> None:
    atomic.write_json(folder / FILE, {"schema": _SCHEMA, "files": sums, "sha256": _own_sum(sums)})


def _own_sum(sums: Sums) -> str:
    return sha256_of(json.dumps(sums, sort_keys=True).encode())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A report may be made while the run goes on. Not the lock of the folder, which the run holds."""
    with ExitStack() as stack:
        with suppress(OSError):  # no cells, or a file system without locks
            descriptor = os.open(folder / "cells", os.O_RDONLY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
