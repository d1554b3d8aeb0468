"""The one door to the files of a run folder, which a stranger may have made.

Every name is followed from a descriptor of the folder, one part after the other, and never through a link.
Only plain files that have no other name are read. A new file has a random name until it is whole.
"""

import errno
import fnmatch
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from harness.errors import SpecError, StorageError, reason
from harness.host.paths import LONGEST_NAME

PARTIAL = ".partial"
MOST_BYTES = 128 << 20  # of a file that is read at once; a summary has 20 to 45 kB for each cell

_HIDDEN_HINT = "a run folder has plain files and folders only: nothing else of it was read or written"
_MOST_ENTRIES = 1_000_000
_DEEPEST = 8  # folders; bench makes three
_HOLE_BYTES = 64 << 20  # a larger file that takes far less of the disk is a hole, and has no end
_HOLE_RATIO = 64
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


class UnsafeError(SpecError):
    """An entry of a folder could lead out of it, or has no end."""


@dataclass(frozen=True, slots=True)
class Confined:
    """Files of a folder. Names are relative to `root`, with `/` between their parts.

    Methods raise UnsafeError for a name that leads out of the folder or is no plain file. Other failures of
    the system are an OSError when something is read, and a StorageError when something is written.
    """

    root: Path

    def check(self) -> None:
        """Raises UnsafeError for the first entry, in any sub-folder, that is no plain file or folder."""
        for _ in self.walk():
            pass

    def names(self, pattern: str) -> list[str]:
        """The files that match, sorted. `*` stands for any part of a component; hidden files never match."""
        return sorted(self._matching("", pattern.split("/")))

    def children(self, name: str) -> list[str]:
        """The last parts of the names in a folder, sorted; none if there is no such folder."""
        try:
            return sorted(child.rpartition("/")[2] for child, _status in self._entries(name))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def has(self, name: str) -> bool:
        """Whether there is a plain file of this name."""
        try:
            with self.opened(name):
                return True
        except OSError:
            return False

    def size(self, name: str) -> int:
        with self.opened(name) as descriptor:
            return os.fstat(descriptor).st_size

    def read(self, name: str, most_bytes: int = MOST_BYTES) -> bytes:
        """The whole file. Raises ValueError for one of more than `most_bytes`."""
        with self.opened(name) as descriptor:
            size = os.fstat(descriptor).st_size
            check_size(size, most_bytes)
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(size)

    def sha256(self, name: str) -> str:
        with self.opened(name) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """A descriptor for reading, closed at the end of the block."""
        with self._parent(name) as (folder, last):
            self._refuse(os.stat(last, dir_fd=folder, follow_symlinks=False), name)
            descriptor = os.open(last, _READ, dir_fd=folder)
        try:
            self._refuse(os.fstat(descriptor), name)
            yield descriptor
        finally:
            os.close(descriptor)

    def write(self, name: str, data: bytes) -> None:
        with self.replacing(name) as file:
            file.write(data)

    @contextmanager
    def replacing(self, name: str) -> Iterator[IO[bytes]]:
        """A new file, which takes `name` and is synced when the block ends. It goes if the block fails."""
        with self._writing(name), self._parent(name) as (folder, last):
            partial = f".{last[:100]}.{secrets.token_hex(8)}{PARTIAL}"
            descriptor = os.open(partial, _NEW, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "w+b") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, last, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise

    @contextmanager
    def unnamed(self, near: str) -> Iterator[IO[bytes]]:
        """A new file in the folder of `near` that no other process can open, and that ends with the
        block.
        """
        with self._writing(near), self._parent(near) as (folder, last):
            partial = f".{last[:100]}.{secrets.token_hex(8)}{PARTIAL}"
            with os.fdopen(os.open(partial, _NEW, 0o600, dir_fd=folder), "w+b") as file:
                os.unlink(partial, dir_fd=folder)
                yield file

    def append(self, name: str, data: bytes) -> None:
        """Adds lines to a file, and creates it if there is none. They are on the disk when it returns.

        They begin a line, whatever the file ends with. If it fails, nothing of them stays.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with self._writing(name), self._parent(name) as (folder, last):
            with suppress(FileNotFoundError):
                self._refuse(os.stat(last, dir_fd=folder, follow_symlinks=False), name)
            with os.fdopen(os.open(last, flags, 0o666, dir_fd=folder), "r+b", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    data = b"\n" + data
                try:
                    write_all(file.fileno(), data)
                    os.fsync(file.fileno())
                except BaseException:
                    with suppress(OSError):
                        os.ftruncate(file.fileno(), size)
                    raise

    def make_folder(self, name: str) -> None:
        """Creates a folder and those above it; no error if it exists."""
        parts = _parts(name)
        for depth in range(1, len(parts) + 1):
            below = "/".join(parts[:depth])
            with self._writing(below), self._parent(below) as (folder, last):
                with suppress(FileExistsError):
                    os.mkdir(last, dir_fd=folder)
                os.close(self._descend(folder, last, below))

    def move(self, old: str, new: str) -> None:
        """Moves a file or a folder, within this one."""
        with self._writing(new), self._parent(old) as (source, was), self._parent(new) as (target, becomes):
            os.rename(was, becomes, src_dir_fd=source, dst_dir_fd=target)

    def remove(self, name: str) -> None:
        """Removes a file; no error if there is none."""
        with self._writing(name), self._parent(name) as (folder, last), suppress(FileNotFoundError):
            os.unlink(last, dir_fd=folder)

    def remove_partials(self) -> None:
        """Removes what a killed process had not finished. For the holder of the run."""
        for name, _status in self.walk():
            if name.endswith(PARTIAL) and name.rpartition("/")[2].startswith("."):
                self.remove(name)

    def path(self, name: str) -> Path:
        """Used for a message, or for a program that opens the file itself."""
        return self.root.joinpath(*_parts(name))

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(error, self.root / name) from error

    @contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder that holds `name`, and the last part of the name."""
        *above, last = _parts(name)
        folder = os.open(self.root, _FOLDER)
        try:
            for depth, part in enumerate(above, 1):
                below = self._descend(folder, part, "/".join(above[:depth]))
                os.close(folder)
                folder = below
            yield folder, last
        finally:
            os.close(folder)

    def _descend(self, folder: int, part: str, name: str) -> int:
        try:
            return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                self._refuse(os.stat(part, dir_fd=folder, follow_symlinks=False), name)
            raise

    def _refuse(self, status: os.stat_result, name: str) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.root / name))
        if (what := _refusal(status)) is not None:
            raise UnsafeError(what, where=str(self.root / name), hint=_HIDDEN_HINT)

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Every plain file with its status, hidden ones included. Raises UnsafeError for other entries."""
        pending, count = [""], 0
        while pending:
            inside = pending.pop()
            for name, status in self._entries(inside):
                count += 1
                if count > _MOST_ENTRIES or name.count("/") >= _DEEPEST:
                    limits = f"more than {_MOST_ENTRIES:,} entries, or folders deeper than {_DEEPEST}"
                    raise UnsafeError(f"has {limits}", where=str(self.root), hint=_HIDDEN_HINT)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(name)
                    continue
                self._refuse(status, name)
                yield name, status

    def _entries(self, inside: str) -> list[tuple[str, os.stat_result]]:
        """Names in the folder with their status; links are not followed."""
        with self.folder(inside) as folder:
            found = []
            for last in os.listdir(folder):  # noqa: PTH208  # of a descriptor, which pathlib cannot list
                name = f"{inside}/{last}" if inside else last
                if not last.isprintable():
                    raise UnsafeError(
                        "has a name that a terminal cannot show",
                        where=str(self.root / name),
                        hint=_HIDDEN_HINT,
                    )
                with suppress(FileNotFoundError):  # another process renamed it since
                    found.append((name, os.stat(last, dir_fd=folder, follow_symlinks=False)))
            return found

    @contextmanager
    def folder(self, name: str) -> Iterator[int]:
        """A descriptor of a folder in it, of itself for "", closed at the end of the block."""
        if not name:
            folder = os.open(self.root, _FOLDER)
        else:
            with self._parent(name) as (above, last):
                folder = self._descend(above, last, name)
        try:
            yield folder
        finally:
            os.close(folder)

    def _matching(self, inside: str, patterns: Sequence[str]) -> Iterator[str]:
        """Files below `inside`, one component of their name for each pattern."""
        try:
            entries = self._entries(inside)
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, status in entries:
            last = name.rpartition("/")[2]
            if last.startswith(".") or not fnmatch.fnmatchcase(last, patterns[0]):
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from self._matching(name, patterns[1:]) if patterns[1:] else ()
            else:
                self._refuse(status, name)
                yield from () if patterns[1:] else (name,)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data: a disk that becomes full takes a part first."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def check_size(size: int, most_bytes: int) -> None:
    """Raises ValueError for a file that is too long to be read at once."""
    if size > most_bytes:
        raise ValueError(f"{size:,} bytes, more than the {most_bytes:,} that are read")


def storage_error(error: OSError | ValueError, path: Path) -> StorageError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            "no space left on the disk",
            where=str(path),
            hint="free space, or choose another disk (`--out` of a run); what was written before is kept",
        )
    hint = "choose another folder with --out; of a run that is there, make a copy"
    if isinstance(error, OSError) and error.errno == errno.ENOENT:  # bench makes folders that are not there
        hint = (
            "its folder was removed or moved while bench wrote to it: "
            "`bench resume` goes on with a run where it is now; else measure again"
        )
    return StorageError(f"cannot be written: {reason(error)}", where=str(path), hint=hint)


def is_name(name: str) -> bool:
    """Whether a file in the folder can have this name: it does not lead out of it."""
    return not any(part in ("", ".", "..") or "\0" in part for part in name.split("/"))


def fitting(name: str) -> str:
    """Returns the name itself where a file can have it with a number, a load and a repeat around it; else its
    beginning and its hash.
    """
    data = name.encode()
    if len(data) <= LONGEST_NAME:
        return name
    begun = data[: LONGEST_NAME - 8].decode(errors="ignore")
    return f"{begun}-{hashlib.sha256(data).hexdigest()[:7]}"


def _parts(name: str) -> list[str]:
    if not is_name(name):
        raise UnsafeError("is not the name of a file in the folder", where=name, hint=_HIDDEN_HINT)
    return name.split("/")


def _refusal(status: os.stat_result) -> str | None:
    """The reason a file is not opened; None for a plain one."""
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        return "is a link, which could lead out of the folder"
    if not stat.S_ISREG(mode):
        return "is a pipe, a socket or a device, not a file"
    if status.st_nlink > 1:
        return "has another name (a hard link), which could lie outside the folder"
    if status.st_size > _HOLE_BYTES and status.st_blocks * 512 < status.st_size // _HOLE_RATIO:
        return f"is {status.st_size:,} bytes long but nearly empty on the disk"
    return None
