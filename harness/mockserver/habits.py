"""The habits of servers that clients must survive, and those that a stream has whatever it says."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from harness.mockserver.script import NS_PER_MS, Then, Write
from harness.mockserver.wire import LAST_CHUNK, chunk, head

Role = Literal["none", "early", "first"]
Usage = Literal["asked", "final", "finish", "each", "never"]
Framing = Literal["chunked", "content-length", "close"]


@dataclass(frozen=True, slots=True)
class Habits:
    role: Role = "first"  # the role-only chunk: none, at once on admission, or with the first token
    empty_delta_every: int = 0  # an empty delta ahead of every so many events; 0: none
    reasoning_tokens: int = 0  # so many tokens come as reasoning first
    reasoning_field: str = "reasoning_content"
    counts_reasoning: bool = False  # in the usage of a chat
    first_event_tokens: int = 1
    tokens_per_event: int = 1  # of the events after the first
    events_per_write: int = 1
    keepalive_ms: float = 0.0  # an SSE comment after so long a silence; 0: none
    crlf: bool = False
    no_done: bool = False
    usage: Usage = "asked"
    framing: Framing = "chunked"
    gzip: bool = False
    hang_up: bool = False  # the connection closes after each stream, and no header says so
    late_headers: bool = False  # the response head leaves with the first write of the body
    early_hints: bool = False  # a 103 ahead of the response head
    vocabulary: str = "ascii"


def streamed(body: Iterator[Write], habits: Habits) -> Iterator[Write]:
    """The habits that a stream has whatever it says."""
    if habits.keepalive_ms:
        body = _kept_alive(body, round(habits.keepalive_ms * NS_PER_MS))
    if habits.crlf:  # a line end inside JSON text is escaped, so every one found ends a line
        body = (write._replace(data=write.data.replace(b"\n", b"\r\n")) for write in body)
    return body


def _kept_alive(body: Iterable[Write], silence_ns: int) -> Iterator[Write]:
    """A comment whenever nothing else was due for so long."""
    last_ns = 0
    for write in body:
        for due_ns in range(last_ns + silence_ns, write.due_ns, silence_ns):
            yield Write(due_ns, b": keepalive\n\n")
        yield write
        last_ns = write.due_ns


def _gzipped(body: Iterable[Write]) -> Iterator[Write]:
    """Flushed at every write, so that a client can read each as it comes."""
    gzip = zlib.compressobj(wbits=31)
    for write in body:
        mode = zlib.Z_SYNC_FLUSH if write.then is Then.MORE else zlib.Z_FINISH
        yield write._replace(data=gzip.compress(write.data) + gzip.flush(mode))


def framed(
    body: Iterator[Write], habits: Habits, *, stream: bool, gzip: bool, close: bool
) -> Iterator[Write]:
    """The body as an HTTP answer, head included. What is not a stream is always sent with its length.

    `close`: the client asked for the connection to be closed.
    """
    framing = habits.framing if stream else "content-length"
    fields: dict[str, str | int] = {
        "content-type": "text/event-stream; charset=utf-8" if stream else "application/json"
    }
    if gzip:
        fields["content-encoding"] = "gzip"
        body = _gzipped(body)
    match framing:
        case "chunked":
            fields["transfer-encoding"] = "chunked"
            body = map(_chunked, body)
        case "content-length":
            writes = list(body)
            fields["content-length"] = sum(len(write.data) for write in writes)
            body = iter(writes)
    if close or framing == "close":
        fields["connection"] = "close"
    hints = head(103, {"link": "</>; rel=preconnect"}) if habits.early_hints else b""
    first = hints + head(200, fields)
    if stream and not habits.late_headers:
        return chain((Write(0, first),), body)
    write = next(body)
    return chain((write._replace(data=first + write.data),), body)


def _chunked(write: Write) -> Write:
    data = chunk(write.data) + (LAST_CHUNK if write.then is Then.END else b"")
    return write._replace(data=data)
