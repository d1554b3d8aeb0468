"""checksums.json: the sha256 of every file of a run folder when it was written.

A file is entered before it appears, next to what it replaces, so that an interrupted run has an entry for
every file. What is entered in a sub-folder is a line after the document, until a file of the run itself is
entered: the document of a run of 2,000 cells has a megabyte. A last line that was cut off is none, because
what it enters had not appeared. Folders from before 0.2 have no checksums, and are read unchecked.
"""

import errno
import fcntl
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from harness.errors import DamagedError
from harness.store.atomic import json_bytes
from harness.store.confined import Confined, is_name
from harness.untrusted import read_document

FILE = "checksums.json"
_SCHEMA = 1
_END = b"\n}\n"  # of the document
_DATA = (
    "*.json",
    "cells/*/*",
    "set-aside/*/*",
    "workloads/*",
    "agreement/*.json",
    "agreement/backends/*.json",
)
_NO_FILE = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)
_HINT = "copy the run folder again, or measure again; `bench verify` checks every file"

Sums = Mapping[str, list[str]]  # path in the folder → sha256 of what may lie there: the newest first

# The checksums that were read or entered last. To parse them takes longer than to check or enter a file.
_last: list[tuple[bytes | None, Sums]] = [(None, {})]


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    what: str


def begin(files: Confined) -> None:
    """Starts checksums for a new folder: from here on every file in it is entered."""
    _write(files, {})


def enter(files: Confined, written: Mapping[str, str]) -> None:
    """Enters the sha256 of files that are about to appear, or just have."""
    if not files.has(FILE):
        return
    with _locked(files):
        sums, more = dict(_read(files)), {}
        for name, sha256 in written.items():
            there = _digest(files, name)
            more[name] = [sha256, *(known for known in sums.get(name, ()) if known == there != sha256)]
        sums.update(more)
        data, _ = _last[0]
        if data and data.endswith(b"\n") and all("/" in name for name in more):
            line = json.dumps({"files": more, "sha256": _own_sum(more)}).encode() + b"\n"
            files.append(FILE, line)
            data += line
        else:
            data = _write(files, sums)
        _last[0] = data, sums


def move(files: Confined, old: str, new: str) -> None:
    """Enters a sub-folder that is about to be renamed in both places."""
    if files.has(FILE):
        with _locked(files):
            sums = _read(files)
            moved = {name: sums[name] for name in sums if name.startswith(f"{old}/")}
            _write(files, {**sums, **{f"{new}{name.removeprefix(old)}": moved[name] for name in moved}})


def leave(files: Confined, old: str) -> None:
    """Removes the entries of a sub-folder that is gone."""
    if files.has(FILE):
        with _locked(files):
            _write(
                files,
                {name: digest for name, digest in _read(files).items() if not name.startswith(f"{old}/")},
            )


def check(files: Confined, name: str, data: bytes | None = None) -> None:
    """Raises DamagedError unless the file, or its `data` if given, is as it was written."""
    if not files.has(FILE):
        return
    what = _fault(files, name, _read(files), data)
    if what is not None:
        raise DamagedError(what, where=str(files.root / name), hint=_HINT)


def faults(files: Confined) -> tuple[int, list[Fault]] | None:
    """The number of files entered, and those that are not as written; None without checksums."""
    if not files.has(FILE):
        return None
    sums = _read(files)
    damage = [Fault(name, what) for name in sums if (what := _fault(files, name, sums, None)) is not None]
    damage += [Fault(name, "was not written by bench") for name in _data_files(files) if name not in sums]
    return len(sums), sorted(damage, key=lambda fault: fault.path)


def measured(files: Confined) -> dict[str, str]:
    """sha256 by name of all data files but the summary, which is made of them."""
    names = sorted({name for name in _data_files(files) if name != "summary.json"})
    return {name: sha256 for name in names if (sha256 := _digest(files, name)) is not None}


def seal_of(measured: Mapping[str, str]) -> str:
    """One sha256 of all of them: kept elsewhere, it shows any change of any of these files."""
    return _own_sum({name: [sha256] for name, sha256 in measured.items()})


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _fault(files: Confined, name: str, sums: Sums, data: bytes | None) -> str | None:
    there = _digest(files, name) if data is None else sha256_of(data)
    if there is None:
        return "is missing" if name in sums else None
    if name not in sums:
        return "is damaged: it has no checksum"
    return None if there in sums[name] else "is damaged: it is not what was written"


def _digest(files: Confined, name: str) -> str | None:
    """None if there is no such file, or none can have this name."""
    try:
        return files.sha256(name)
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def _data_files(files: Confined) -> Iterator[str]:
    """All files but logs, which grow, and what `bench report` makes again."""
    return (name for pattern in _DATA for name in files.names(pattern) if name != FILE)


def _read(files: Confined) -> Sums:
    try:
        data = files.read(FILE)
        known, sums = _last[0]
        if data != known:
            sums = _parsed(data)
            _last[0] = data, sums
        return sums
    except (OSError, ValueError, KeyError, TypeError):
        raise DamagedError(
            "is damaged itself, so no file can be checked",
            where=str(files.root / FILE),
            hint=_HINT,
        ) from None


def _parsed(data: bytes) -> Sums:
    """Raises ValueError, KeyError or TypeError for what `_write` and `enter` do not make."""
    document, end, lines = data.partition(_END)
    sums: dict[str, list[str]] = {}
    for part in (document + end, *filter(None, lines.split(b"\n")[:-1])):
        entered = read_document(part)
        if entered["sha256"] != _own_sum(entered["files"]) or not _is_sums(entered["files"]):
            raise ValueError("not the checksums that were written")
        sums.update(entered["files"])
    return sums


def _is_sums(document: object) -> bool:
    """Whether every name is one of a file in the folder: the sender of a run may have made the checksums as
    well."""
    return isinstance(document, dict) and all(
        is_name(name) and isinstance(sums, list) and all(isinstance(entry, str) for entry in sums)
        for name, sums in document.items()
    )


def _write(files: Confined, sums: Sums) -> bytes:
    data = json_bytes({"schema": _SCHEMA, "files": sums, "sha256": _own_sum(sums)})
    files.write(FILE, data)
    return data


def _own_sum(sums: Sums) -> str:
    return sha256_of(json.dumps(sums, sort_keys=True).encode())


@contextmanager
def _locked(files: Confined) -> Iterator[None]:
    """Locks the checksums alone: a report may be made while the run, which holds the folder, goes on."""
    with ExitStack() as stack:
        with suppress(OSError):  # no cells, or a file system without locks
            fcntl.flock(stack.enter_context(files.folder("cells")), fcntl.LOCK_EX)
        yield
