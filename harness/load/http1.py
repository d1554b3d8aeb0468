"""One answer: its framing by httptools or by another parser, body parts and arrival stamps kept undecoded."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httptools
import numpy as np
from numpy.typing import NDArray

from harness.load.bounds import HEAD_BYTES, USUAL_BYTES
from harness.load.stamps import Look

_IDENTITY = (b"", b"identity")
_NO_CONTENT = 204


class DecodeError(ValueError):
    """The content-encoding is unknown or its bytes are broken."""


class OversizedError(ValueError):
    """The decompressed body is longer than an answer may be."""


@dataclass(slots=True, eq=False)
class Answer:
    """Grows by one read at a time. `close` it at the end: parser and answer hold each other, and the
    collector does not run in the window."""

    most_bytes: int = USUAL_BYTES  # of the body
    oversized: bool = False
    parts: list[bytes] = field(default_factory=list)
    on_body: Callable[[bytes], None] = field(init=False)
    stamps: list[Any] = field(default_factory=list)  # one per read: a packed timespec, or CLOCK_MONOTONIC ns
    looks: list[Look] = field(default_factory=list)  # one per read where the kernel stamps it
    marks: list[int] = field(default_factory=list)  # len(parts) after each read
    wire_bytes: int = 0
    status: int = 0  # 0: the head of the answer is not complete
    headers: dict[bytes, bytes] = field(default_factory=dict)  # by lower-case name; repeated ones joined
    headers_read: int = 0  # index of the read that completed the head
    complete: bool = False
    closes_itself: bool = False  # its end is a frame of its own, as in HTTP/2
    keep_alive: bool = False
    problem: str = ""  # why the bytes are not HTTP/1.1
    _wire_limit: int = HEAD_BYTES  # of all bytes so far; rises once the head is complete
    _checkpoint: int = HEAD_BYTES  # of all bytes so far: where the limits are looked at next
    _parts_before: int = 0  # how many there were at the checkpoint before
    _interim: bool = False
    _complete_parts: int = 0
    _parser: Any = field(init=False)
    _feed: Any = field(init=False)

    def __post_init__(self) -> None:
        self.on_body = self.parts.append
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data

    def take(self, data: memoryview | bytes, stamp: Any, look: Look | None = None) -> bool:
        """Takes one read; True when no more is to be read: the answer is whole, or is not HTTP."""
        self.wire_bytes += len(data)
        self.stamps.append(stamp)
        if look is not None:
            self.looks.append(look)
        try:
            self._feed(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.problem = f"not HTTP/1.1: {error}"
        self.marks.append(len(self.parts))
        if self.wire_bytes > self._checkpoint:
            self._check_limits()
        return self.complete or bool(self.problem)

    def read_ended(self, stamp: int) -> None:
        """Ends one read that another parser took apart: it added to `wire_bytes` and called `on_…`."""
        self.stamps.append(stamp)
        self.marks.append(len(self.parts))
        if self.wire_bytes > self._checkpoint:
            self._check_limits()

    def take_part(self, part: bytes, stamp: int) -> None:
        """Takes one read that another client has unframed."""
        self.wire_bytes += len(part)
        self.parts.append(part)
        self.read_ended(stamp)

    def _check_limits(self) -> None:
        """Raises, every so many bytes, if the answer is too long or they brought nothing of its body."""
        if self.wire_bytes <= self._wire_limit and len(self.parts) > self._parts_before:
            self._parts_before = len(self.parts)
            self._checkpoint = min(self.wire_bytes + HEAD_BYTES, self._wire_limit)
            return
        self.oversized = True
        if not self.status:
            self.problem = f"the head of the answer is longer than {HEAD_BYTES} bytes"
        elif self.wire_bytes > self._wire_limit:
            self.problem = f"the answer is longer than {self.most_bytes} bytes"
        else:  # trailers, or frames without content
            self.problem = f"{HEAD_BYTES} bytes of the answer brought nothing of its body"

    def head_ended(self, status: int) -> None:
        self.status = status
        self.headers_read = len(self.marks)
        self._wire_limit = self.wire_bytes + self.most_bytes
        self._checkpoint = min(self.wire_bytes + HEAD_BYTES, self._wire_limit)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:  # a trailer: it comes too late to say how the body is to be read
            return
        key = name.lower()
        self.headers[key] = self.headers[key] + b", " + value if key in self.headers else value

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200 and status != 101
        if self._interim:
            self.headers.clear()
        else:
            self.head_ended(status)

    def on_message_complete(self) -> None:
        if self._interim or self.complete:
            return
        self.keep_alive = self._parser.should_keep_alive()
        self.complete_parts()

    def complete_parts(self) -> None:
        """Marks the parts so far as the whole body."""
        self.complete = True
        self._complete_parts = len(self.parts)

    def header(self, name: bytes) -> bytes:
        return self.headers.get(name, b"").strip().lower()

    def framed(self) -> bool:
        """Whether a length, chunks, frames or a status without a body mark its end; else the close of the
        connection does.
        """
        if self.closes_itself or self.status == _NO_CONTENT or self.header(b"content-length"):
            return True
        return b"chunked" in self.header(b"transfer-encoding")

    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self.complete and self.keep_alive and not self.problem

    def close(self) -> None:
        if self.complete:
            del self.parts[self._complete_parts :]  # bytes after the answer are not the answer
        del self._parser, self._feed

    def body(self) -> tuple[bytes, NDArray[np.int64]]:
        """The decoded body, and its length after each read. Raises DecodeError or OversizedError."""
        encoding = self.header(b"content-encoding")
        plain = encoding in _IDENTITY
        parts = self.parts if plain else _decompress(self.parts, encoding, self.most_bytes)
        lengths = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=lengths[1:])
        marks = np.minimum(np.fromiter(self.marks, np.int64, len(self.marks)), len(parts))
        return b"".join(parts), lengths[marks]


def _decompress(parts: list[bytes], encoding: bytes, most_bytes: int) -> list[bytes]:
    if encoding not in (b"gzip", b"x-gzip", b"deflate"):
        raise DecodeError(f"content-encoding {encoding.decode('latin-1')} was not asked for")
    first = next(filter(None, parts), b"")
    # Servers send "deflate" with the zlib header and without; its first byte tells.
    bare = encoding == b"deflate" and first[:1] != b"\x78"
    window = -zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32
    inflate = zlib.decompressobj(window)
    inflated: list[bytes] = []
    left = most_bytes
    try:
        for part in parts:
            inflated.append(b"")
            rest = part
            while rest:
                if inflate.eof:  # gzip may have several members, perhaps one for each event, and zeros behind
                    if not (rest := rest.lstrip(b"\0")):
                        break
                    inflate = zlib.decompressobj(window)
                inflated[-1] += inflate.decompress(rest, left + 1 - len(inflated[-1]))
                if len(inflated[-1]) > left:
                    raise OversizedError(f"the decompressed answer is longer than {most_bytes} bytes")
                rest = inflate.unused_data
            left -= len(inflated[-1])
    except zlib.error as error:
        raise DecodeError(str(error)) from error
    return inflated
