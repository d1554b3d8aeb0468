"""Reads the JSON documents of a file of any size: one per line, or one that is the whole file."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import SpecError, reason
from harness.host import paths
from harness.workload.traces.rows import BadRow

MOST_BYTES = 512 << 20  # of one document, which is in memory while it is read, and of a pipe: it may not end
_MOST_UNPACKED = 64  # bytes of each byte of a larger gzip file: no recorded traffic packs so well
_GZIP = b"\x1f\x8b"


class Documents:
    """Iterates over documents. `sha256` covers what was read so far: the whole file after the last one."""

    def __init__(self, path: Path) -> None:
        self.path, self._digest = path, hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yields line numbers from 1 and documents, or a BadRow for a line that is not JSON.

        Raises SpecError.
        """
        try:
            with _opened(self.path) as file:
                yield from self._lines(file)
        except FileNotFoundError:
            raise SpecError("no such file", where=str(self.path)) from None
        except (OSError, EOFError, ValueError, zlib.error) as error:  # a cut or damaged gzip file
            raise SpecError(f"cannot be read: {reason(error)}", where=str(self.path)) from None

    def _lines(self, file: "gzip.GzipFile | BufferedReader") -> Iterator[tuple[int, Any]]:
        number = size = 0
        most = self._most_bytes(packed=isinstance(file, gzip.GzipFile))
        while line := file.readline(MOST_BYTES + 1):
            number, size = number + 1, size + len(line)
            if len(line) > MOST_BYTES:
                raise self._too_long(number)
            if most is not None and size > most:
                raise self._without_end(most)
            self._digest.update(line)
            if not line.strip():
                continue
            value = _decoded(line)
            if number == 1 and isinstance(value, BadRow) and line.lstrip()[:1] in (b"{", b"["):
                rest = file.read(MOST_BYTES + 1 - len(line))
                if len(line) + len(rest) > MOST_BYTES:
                    raise self._too_long(1)
                self._digest.update(rest)
                whole = _decoded(line + rest)
                if not isinstance(whole, BadRow):
                    value, rest = whole, b""
                yield from enumerate(value if isinstance(value, list) else [value], start=1)
                for number, text in enumerate(rest.split(b"\n"), start=2):
                    if text.strip():
                        yield number, _decoded(text)
                return
            yield from ((number, entry) for entry in (value if isinstance(value, list) else [value]))

    def _most_bytes(self, *, packed: bool) -> int | None:
        """The limit of what may have no end; None: a plain file."""
        if paths.entry(self.path) != "file":
            return MOST_BYTES
        return max(MOST_BYTES, _MOST_UNPACKED * self.path.stat().st_size) if packed else None

    def _without_end(self, most: int) -> SpecError:
        if paths.entry(self.path) != "file":
            return long_pipe(self.path)
        hint = "unpack it and name what came of it"
        return SpecError(f"unpacks to more than {most >> 20} MiB", where=str(self.path), hint=hint)

    def _too_long(self, number: int) -> SpecError:
        return SpecError(
            f"has a document of more than {MOST_BYTES >> 20} MiB",
            where=f"{self.path}:{number}",
            hint="write each session as a line of its own",
        )


def long_pipe(path: Path) -> SpecError:
    hint = "write it to a file and name that"
    return SpecError(f"is a pipe with more than {MOST_BYTES >> 20} MiB", where=str(path), hint=hint)


@contextmanager
def _opened(path: Path) -> Iterator["gzip.GzipFile | BufferedReader"]:
    """Opens a file once, for a pipe can be read only once, and unpacks it where it is packed."""
    with path.open("rb") as file:
        if file.peek(len(_GZIP)).startswith(_GZIP):
            with gzip.open(file) as unpacked:
                yield unpacked
        else:
            yield file


def _decoded(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return BadRow("not JSON")
