"""A folder as one archive in parts small enough to be carried, and back. The standard library only.

Next to the parts lies a list of check sums. Where there is no bench yet, this file joins them, as `join.py`.
"""

import hashlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Literal

MB = 1_000_000
_LIST = ".sha256"
SUMS = "SHA256SUMS"  # of a kit
_BLOCK = 1 << 20


class PartsError(Exception):
    """The message is one line."""


def split(folder: Path, target: Path, max_mb: float, *, pack: bool = False) -> list[Path]:
    """The files `target`.000, .001, …, and `target`.sha256; `pack`: compressed."""
    limit = max(1, int(min(max_mb * MB, sys.maxsize)))  # infinity: one part
    target.parent.mkdir(parents=True, exist_ok=True)
    writer = _Parts(target, limit, 0o600 if pack else 0o666)  # results hold prompts and answers
    with tarfile.open(fileobj=writer, mode="w|xz" if pack else "w|") as archive:
        archive.add(folder, arcname=folder.name, filter=plain)
    writer.close()
    target.with_name(target.name + _LIST).write_text(sums(writer.written, target.parent), encoding="utf-8")
    return writer.written


def join(parts: Sequence[Path], folder: Path) -> list[Path]:
    """Unpacks each archive below `folder`, whole or not at all, after all have been checked.

    Raises PartsError, also where one would replace what is there: a report may have been made of it.
    """
    archives = [_whole(part) for part in parts if part.name.endswith(_LIST)]
    if not archives:
        raise PartsError("the list of check sums (NAME.sha256) is not among the parts")
    targets = [folder / _first_name(names) for names in archives]
    for number, target in enumerate(targets):
        if target in targets[:number]:
            raise PartsError(f"two of these archives hold {target.name}: unpack them into two folders")
        if target.exists():
            raise PartsError(f"{target} is there already: move it away, or unpack into another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for names, target in zip(archives, targets, strict=True):
        with tempfile.TemporaryDirectory(prefix=".join-", dir=folder) as room:
            unpack(io.BufferedReader(_Joined(names)), Path(room))
            Path(room, target.name).rename(target)
    return targets


def _first_name(parts: Sequence[Path]) -> str:
    """The folder that an archive holds. Raises PartsError."""
    try:
        with tarfile.open(fileobj=io.BufferedReader(_Joined(parts)), mode="r|*") as members:
            first = members.next()
    except (tarfile.TarError, EOFError) as error:
        raise PartsError(f"it cannot be unpacked: {error}") from None
    name = PurePosixPath(first.name).parts[:1] if first else ()
    if not name or name[0] in ("/", ".."):
        raise PartsError("it cannot be unpacked: it holds no folder")
    return name[0]


def _whole(listed: Path) -> list[Path]:
    """The parts of one archive, as its list has them. Raises PartsError."""
    names = []
    for part, state in states(listed):
        if state == "missing" or part.parent != listed.parent:
            raise PartsError(f"{part.name} is missing: carry it again")
        if state == "damaged":
            raise PartsError(f"{part.name} is damaged: its check sum is not the listed one; carry it again")
        names.append(part)
    return names


def unpack(archive: IO[bytes], folder: Path) -> str:
    """Unpacks below `folder`; returns the name of its first member. Raises PartsError.

    Python's `data` filter refuses members, and links, that lead out of the folder. Python before 3.11.4 has
    no such filter: there every link is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=archive, mode="r|*") as members:
            if hasattr(tarfile, "data_filter"):
                members.extractall(folder, _fitting(members, folder), filter=_data)
            else:
                members.extractall(folder, map(_plain_below, _fitting(members, folder)))
            return members.getnames()[0]
    except (tarfile.TarError, EOFError, IndexError) as error:
        raise PartsError(f"it cannot be unpacked: {error}") from None


def _fitting(members: Iterable[tarfile.TarInfo], folder: Path) -> Iterator[tarfile.TarInfo]:
    """Each, if the disk has room for it: a few packed bytes may be terabytes. Raises TarError."""
    for member in members:
        if member.size > (free := shutil.disk_usage(folder).free):
            sizes = f"{member.size / MB:,.0f} MB, and {free / MB:,.0f} MB are free"
            raise tarfile.TarError(f"{member.name!r} has {sizes}")
        yield member


def sum_of(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def sums(files: Sequence[Path], below: Path) -> str:
    """A line for each, as `sha256sum` writes it; names are relative to `below`."""
    return "".join(f"{sum_of(file)}  {file.relative_to(below)}\n" for file in files)


def states(listed: Path) -> Iterator[tuple[Path, Literal["whole", "missing", "damaged"]]]:
    """The state of each file in such a list, which is next to them.

    Raises OSError if there is no list, PartsError if it is damaged.
    """
    try:
        lines = listed.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise PartsError(f"{listed.name} is damaged: it is not UTF-8 text; carry it again") from None
    for line in lines:
        digest, _, name = line.partition("  ")
        file = listed.parent / name
        if not file.is_file():
            yield file, "missing"
        else:
            yield file, "whole" if sum_of(file) == digest else "damaged"


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Drops owners, and what Python left behind."""
    if "__pycache__" in member.name.split("/"):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _data(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """Python's own filter, which would let everybody read a folder that was its owner's alone."""
    kept = tarfile.data_filter(member, folder)
    return kept.replace(mode=0o700, deep=False) if _is_private(member) else kept


def _is_private(member: tarfile.TarInfo) -> bool:
    return member.isdir() and not member.mode & 0o077


def _plain_below(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Returns it if it is a file or a folder below where it is unpacked. Raises TarError."""
    path = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir()) or path.is_absolute() or ".." in path.parts:
        raise tarfile.TarError(f"{member.name!r} is no plain file in the folder; Python 3.11.4 unpacks links")
    member.mode = 0o700 if _is_private(member) else 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


class _Parts(io.RawIOBase):
    """Goes on in the next part when one is full."""

    def __init__(self, path: Path, limit: int, mode: int) -> None:
        self.written: list[Path] = []
        self._path, self._limit, self._mode = path, limit, mode
        self._file = self._next()

    def _next(self) -> io.BufferedWriter:
        part = self._path.with_name(f"{self._path.name}.{len(self.written):03}")
        self.written.append(part)
        self._left = self._limit
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, self._mode)
        return os.fdopen(descriptor, "wb")

    def write(self, data: bytes) -> int:  # type: ignore[override]  # tarfile writes bytes alone
        view = memoryview(data)
        while view:
            if not self._left:
                self._file.close()
                self._file = self._next()
            some = view[: self._left]
            self._file.write(some)
            self._left -= len(some)
            view = view[len(some) :]
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Joined(io.RawIOBase):
    def __init__(self, parts: Sequence[Path]) -> None:
        self._blocks = self._read(parts)
        self._rest = b""

    def _read(self, parts: Sequence[Path]) -> Iterator[bytes]:
        for part in parts:
            with part.open("rb") as handle:
                while block := handle.read(_BLOCK):
                    yield block

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # as BufferedReader calls it
        self._rest = self._rest or next(self._blocks, b"")
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    try:
        print(*join(sorted(here.glob("*.*")), Path(sys.argv[1]) if sys.argv[1:] else here), sep="\n")
    except PartsError as error:
        sys.exit(f"error: {error}")
