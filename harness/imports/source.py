"""A result file of another tool, mapped and not loaded: files of gigabytes are read in place."""

import hashlib
import mmap
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.errors import SpecError

T = TypeVar("T")
_UTF8_MARK = b"\xef\xbb\xbf"
_NO_NUMBER = re.compile(rb"NaN|Infinity")
_MORE = "trailing characters"  # as the decoder says that a value is not all
_ABOUT = "metadata"
HINT = "run the tool again, or leave this file out"


class Percentiles(msgspec.Struct, frozen=True):
    """Percentiles of a cell, as tools write them."""

    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One value of a file: all of it, a line, or an entry of its list."""

    source: "Source"
    data: memoryview
    place: str = ""  # `:3` of a line, `: [3]` of an entry

    @property
    def path(self) -> Path:
        return self.source.path

    @property
    def tool_version(self) -> str | None:
        """The version that the user gave."""
        return self.source.tool_version

    def read_as(self, kind: type[T], tool: str) -> T:
        """Reads only what `kind` names. Raises SpecError for anything else."""
        try:
            return msgspec.json.decode(self.data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
            raise self._unread(error, f"is not what {tool} writes") from None

    @property
    def where(self) -> str:
        return f"{self.path}{self.place}"

    @property
    def head(self) -> bytes:
        return bytes(self.data[:200])

    @property
    def keys(self) -> frozenset[str]:
        """The keys of an object, also inside its `metadata`, as `metadata.key`; none of anything else."""
        try:
            values = msgspec.json.decode(self.data, type=dict[str, msgspec.Raw])
            inside = self.part(values[_ABOUT]).keys if _ABOUT in values else ()
            return frozenset((*values, *(f"{_ABOUT}.{key}" for key in inside)))
        except msgspec.ValidationError:
            return frozenset()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unread(error, "is not whole JSON") from None

    def _unread(self, error: Exception, what: str) -> SpecError:
        """Names the float that is no number, where Python wrote one, else what the decoder says."""
        words = str(error).replace("`", "'")
        match = re.search(r"\(byte (\d+)\)", words)
        found = _NO_NUMBER.match(self.data, int(match[1])) if match else None
        if found:
            return wrong(f"holds {found[0].decode()}, which is no number (byte {found.start()})", self.where)
        return wrong(f"{what}: {words}", self.where)

    @property
    def entries(self) -> Iterator["Document"]:
        """The entries of a list. Raises SpecError."""
        try:
            found = msgspec.json.decode(self.data, type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if _MORE in str(error):
                hint = "write each run of the tool to a file of its own"
                raise wrong("holds more than one list", self.where, hint=hint) from None
            raise self._unread(error, "is not whole JSON") from None
        for index, raw in enumerate(found):
            yield replace(self, data=memoryview(raw), place=f"{self.place}: [{index}]")

    @property
    def text(self) -> str:
        """The text of a small file of lines. Raises SpecError, also if the last line has no end."""
        if len(self.data) > 64 << 20:
            raise wrong("is longer than any file of this kind", self.where)
        if bytes(self.data[-1:]) != b"\n":
            raise wrong("ends inside a line", self.where)
        try:
            return str(self.data, "utf-8")
        except UnicodeDecodeError:
            raise wrong("is not UTF-8 text", self.where) from None

    def part(self, raw: msgspec.Raw) -> "Document":
        """A value inside this one."""
        return replace(self, data=memoryview(raw))


@dataclass(frozen=True, slots=True, eq=False)
class ReadFile:
    """A file that was read, without its content, which may be as large as the memory."""

    path: Path
    sha256: str
    modified_ns: int


class Source:
    """Raises SpecError for a file that is empty or cannot be read."""

    def __init__(self, path: Path, tool_version: str | None = None) -> None:
        self.path, self.tool_version = path, tool_version
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            self.file = ReadFile(path, sha256, path.stat().st_mtime_ns)
        except ValueError:
            raise wrong("is empty", str(path)) from None
        except OSError as error:
            raise SpecError(f"cannot be read: {error.strerror}", where=str(path)) from None
        _name_infinite_rates(self._map)
        start = len(_UTF8_MARK) if self._map[:3] == _UTF8_MARK else 0
        self._data = memoryview(self._map)[start:]

    @property
    def whole(self) -> Document:
        return Document(self, self._data)

    @property
    def is_list(self) -> bool:
        return self.whole.head.lstrip().startswith(b"[")

    def documents(self) -> Iterator[Document]:
        """One for the whole file, for each line of JSON lines, or for each entry of a list."""
        if self.is_list:
            yield from self.whole.entries
            return
        if not self._is_lines():
            yield self.whole
            return
        start, stop = len(self._map) - len(self._data), 0
        while start < len(self._map):
            end = self._map.find(b"\n", start)
            end = len(self._map) if end < 0 else end
            stop += 1
            line = memoryview(self._map)[start:end]
            start = end + 1
            if bytes(line[:200]).strip():
                yield Document(self, line, f":{stop}")

    def _is_lines(self) -> bool:
        if not self.whole.head.lstrip().startswith(b"{"):
            return False
        try:
            msgspec.json.decode(self._data, type=msgspec.Raw)
        except msgspec.DecodeError as error:
            return _MORE in str(error)
        except (UnicodeDecodeError, RecursionError):
            return False
        return False


def all_next_to(path: Path, pattern: str) -> list[Path]:
    """The files of that pattern in the same folder, sorted by name."""
    return sorted(path.parent.glob(pattern))


def next_to(path: Path, name: str, kind: type[T], tool: str) -> T | None:
    """Reads another file that a tool wrote into the same folder; None if it is absent. Raises SpecError."""
    file = path.with_name(name)
    if not file.is_file():
        return None
    return Source(file).whole.read_as(kind, tool)


def wrong(what: str, where: str, hint: str = HINT) -> SpecError:
    return SpecError(what, where=where, hint=hint)


def finite(value: float | None, what: str, where: str) -> float:
    """Raises SpecError for a value that is no time or amount."""
    if value is None or not 0 <= value < 1e15:
        raise wrong(f"{what} is {value}, which is no amount", where)
    return value


def _name_infinite_rates(data: mmap.mmap) -> None:
    """Replaces `Infinity`, which SGLang writes for an unlimited rate and which is no JSON, by a string in our
    copy."""
    start = 0
    while (start := data.find(b'"request_rate": Infinity', start)) >= 0:
        data[start : start + 24] = b'"request_rate": "inf"   '
        start += 24


def plain(value: Any) -> float | None:
    """A number as JSON has it; None for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def name_of(value: Any) -> str | None:
    """A model's name; None for anything else."""
    return value if isinstance(value, str) else None
