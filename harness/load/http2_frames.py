"""HTTP/2 frames cut out of what is read, and a limit on frames that bring nothing."""

from collections.abc import Iterator
from typing import NamedTuple

import h2.errors
import h2.exceptions

DATA, HEADERS, RST_STREAM, GOAWAY = 0, 1, 3, 7
_HTTP1 = b"HTTP/1"
_HEAD_BYTES = 9
_PAYLOAD_BYTES = 16_384  # the most of a frame, as announced
_READ_BYTES = 32_768  # in frames of 8 bytes they keep h2 busy for 25 ms
_SAID_BYTES = 200  # of a server's reason to close

# A frame costs one unit of credit. Requests, pieces of them, and DATA earn some: DATA of 8 bytes pays for
# itself, so that a server may send each line of an event in a frame of its own.
_CREDIT = 4096
_MOST_CREDIT = 1 << 16
_EARNED = 16
_BYTES_PER_CREDIT = 8


class Frame(NamedTuple):
    kind: int
    stream: int
    whole: bytes  # with its head of 9 bytes


class FrameBuffer:
    """Cuts reads of any size into whole frames."""

    def __init__(self) -> None:
        self._buffer, self._filled = bytearray(_READ_BYTES), 0

    def space(self) -> memoryview:
        """The buffer for the next read; never empty."""
        return memoryview(self._buffer)[self._filled :]

    def take(self, size: int) -> Iterator[Frame]:
        """Frames that are whole with `size` more bytes. Raises FrameTooLargeError, after which nothing may
        follow."""
        self._filled += size
        begin, buffer = 0, self._buffer
        try:
            while self._filled - begin >= _HEAD_BYTES:
                length = int.from_bytes(buffer[begin : begin + 3])
                if length > _PAYLOAD_BYTES:
                    error = f"a frame of {length} bytes, where {_PAYLOAD_BYTES} are the most"
                    if buffer.startswith(_HTTP1, begin):
                        error = "the server answers in HTTP/1"
                    begin = self._filled
                    raise h2.exceptions.FrameTooLargeError(error)
                end = begin + _HEAD_BYTES + length
                if end > self._filled:
                    break
                whole = bytes(buffer[begin:end])
                begin = end
                yield Frame(whole[3], int.from_bytes(whole[5:9]) & 0x7FFFFFFF, whole)
        finally:
            self._filled -= begin
            buffer[: self._filled] = buffer[begin : begin + self._filled]


class FloodError(Exception):
    """The server sends frames without end that bring next to nothing."""


class Allowance:
    def __init__(self) -> None:
        self._credit = _CREDIT

    def spend(self) -> None:
        self._credit -= 1
        if self._credit < 0:
            raise FloodError("the server floods the connection with frames that bring next to nothing")

    def earn(self, payload_bytes: int | None = None) -> None:
        """Earns credit for a DATA frame of `payload_bytes`; None: for a request, or a piece of one."""
        earned = _EARNED if payload_bytes is None else min(payload_bytes // _BYTES_PER_CREDIT, _EARNED)
        self._credit = min(self._credit + earned, _MOST_CREDIT)


class Goaway(NamedTuple):
    last: int  # the newest stream that the server answers
    failed: bool
    reason: str


def read_goaway(frame: Frame) -> Goaway:
    """Raises ProtocolError."""
    payload = frame.whole[_HEAD_BYTES:]
    if len(payload) < 8 or frame.stream:
        raise h2.exceptions.ProtocolError("a GOAWAY frame too short, or on a stream")
    code = int.from_bytes(payload[4:8])
    message = payload[8 : 8 + _SAID_BYTES].decode("utf-8", "replace")
    return Goaway(
        int.from_bytes(payload[:4]) & 0x7FFFFFFF, bool(code), f"{code_name(code)} {message}".rstrip()
    )


def code_name(code: int) -> str:
    try:
        return h2.errors.ErrorCodes(code).name
    except ValueError:
        return f"code {code}"
