"""One HTTP/1.1 answer: framing by httptools, body parts and arrival stamps kept undecoded."""

import zlib
from typing import Any

import httptools
import numpy as np
from numpy.typing import NDArray

_IDENTITY = (b"", b"identity")


class DecodeError(ValueError):
    """The content-encoding is unknown or its bytes are broken."""


class Answer:
    """Grows by one read at a time: call `feed`, then append the read's stamp and `len(parts)`.

    `feed` raises httptools.HttpParserError on bytes that are not HTTP. Call `close` at the end: the
    parser and this object hold each other, and the collector does not run in the window.
    """

    __slots__ = (
        "_complete_parts",
        "_interim",
        "_parser",
        "complete",
        "content_type",
        "encoding",
        "feed",
        "framed",
        "headers_read",
        "keep_alive",
        "marks",
        "on_body",
        "parts",
        "stamps",
        "status",
        "wire_bytes",
    )

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.on_body = self.parts.append
        self.stamps: list[Any] = []  # one per read: a packed timespec, or CLOCK_MONOTONIC nanoseconds
        self.marks: list[int] = []  # len(parts) after each read
        self.wire_bytes = 0
        self.status = 0  # 0: the head of the answer is not complete
        self.headers_read = 0  # index of the read that completed the head
        self.content_type = b""
        self.encoding = b""
        self.framed = False  # a length or chunks tell the end; otherwise the close of the connection does
        self.complete = False
        self.keep_alive = False
        self._interim = False
        self._complete_parts = 0
        self._parser: Any = httptools.HttpResponseParser(self)
        self.feed = self._parser.feed_data

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"content-type":
            self.content_type = value.lower()
        elif name == b"content-encoding":
            self.encoding = value.strip().lower()
        elif name == b"content-length" or (name == b"transfer-encoding" and b"chunked" in value.lower()):
            self.framed = True

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200 and status != 101
        if self._interim:
            self.framed = False
        else:
            self.status = status
            self.headers_read = len(self.marks)

    def on_message_complete(self) -> None:
        if self._interim or self.complete:
            return
        self.complete = True
        self.keep_alive = self._parser.should_keep_alive()
        self._complete_parts = len(self.parts)

    def close(self) -> None:
        if self.complete:
            del self.parts[self._complete_parts :]  # bytes after the answer are not the answer
        self._parser = None
        del self.feed

    def body(self) -> tuple[bytes, NDArray[np.int64]]:
        """The decoded body, and its length after each read."""
        parts = self.parts if self.encoding in _IDENTITY else _decompress(self.parts, self.encoding)
        lengths = np.zeros(len(parts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=lengths[1:])
        marks = np.minimum(np.fromiter(self.marks, np.int64, len(self.marks)), len(parts))
        return b"".join(parts), lengths[marks]


def _decompress(parts: list[bytes], encoding: bytes) -> list[bytes]:
    if encoding not in (b"gzip", b"x-gzip", b"deflate"):
        raise DecodeError(f"content-encoding {encoding.decode('latin-1')} was not asked for")
    first = next(filter(None, parts), b"")
    # Servers send "deflate" with the zlib header and without; its first byte tells.
    bare = encoding == b"deflate" and first[:1] != b"\x78"
    inflate = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS | 32)
    try:
        return [inflate.decompress(part) for part in parts]
    except zlib.error as error:
        raise DecodeError(str(error)) from error
