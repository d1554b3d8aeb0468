"""HTTP/1.1 as far as this server needs it: requests out of a byte buffer, heads and chunks into bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 64 * 1024
MAX_LENGTH_DIGITS = 12
LAST_CHUNK = b"0\r\n\r\n"


class ProtocolError(ValueError):
    """The bytes are not an HTTP/1.1 request; the connection cannot be used any further."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # without the query
    headers: Mapping[str, str]  # names in lower case; of a repeated one, the last
    body: bytes

    @property
    def keep_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


def take_request(buffer: bytearray) -> Request | None:
    """Removes the first whole request from the buffer; None leaves it as it is: bytes are missing."""
    head_end = buffer.find(b"\r\n\r\n")
    if head_end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise ProtocolError("the request head does not end")
        return None
    first, *lines = buffer[:head_end].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise ProtocolError(f"not a request line: {first[:100]!r}")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = _body(buffer, head_end + 4, headers)
    if body is None:
        return None
    content, end = body
    del buffer[:end]
    return Request(words[0], words[1].partition("?")[0], headers, content)


def _body(buffer: bytearray, start: int, headers: Mapping[str, str]) -> tuple[bytes, int] | None:
    """The body and where it ends in the buffer; None: bytes are missing."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _chunks(buffer, start)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > MAX_LENGTH_DIGITS:
        raise ProtocolError(f"not a content-length: {length[:100]!r}")
    end = start + int(length)
    return (bytes(buffer[start:end]), end) if len(buffer) >= end else None


def _chunks(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while (line_end := buffer.find(b"\r\n", at)) >= 0:
        try:
            size = int(buffer[at:line_end].partition(b";")[0], 16)
        except ValueError as error:
            raise ProtocolError("not a chunk size") from error
        if size < 0:
            raise ProtocolError("not a chunk size")
        at = line_end + 2
        if len(buffer) < at + size + 2:
            return None
        body += buffer[at : at + size]
        at += size + 2  # trailers are not read: no client of ours sends any
        if size == 0:
            return bytes(body), at
    return None


def head(status: int, fields: Mapping[str, str | int]) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", "x-bench-simulated: 1"]
    lines += (f"{name}: {value}" for name, value in fields.items())
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answer(
    status: int, body: bytes, content_type: str, fields: Mapping[str, str | int] | None = None
) -> bytes:
    return head(status, {"content-type": content_type, "content-length": len(body), **(fields or {})}) + body


def json_answer(status: int, value: Any, fields: Mapping[str, str | int] | None = None) -> bytes:
    return answer(status, json.dumps(value).encode(), "application/json", fields)


def error_answer(status: int, message: str, fields: Mapping[str, str | int] | None = None) -> bytes:
    error = {"message": message, "type": HTTPStatus(status).phrase, "param": None, "code": status}
    return json_answer(status, {"error": error}, fields)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
