"""What servers do wrong over HTTP/2, one case a row: its name, what is sent, and how that request ends.

Each server answers one request as its row says and every other one well.
"""

import functools
import gzip
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.records.layout import Outcome
from tests.integration.h2_frames import (
    ACK,
    BODY,
    CONTINUATION,
    DATA,
    DONE,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    TEXT,
    WINDOW_UPDATE,
    Peer,
    Script,
    block,
    data,
    frame,
    goaway,
    good,
    head,
    padded,
    reset,
    settings,
    trailers,
    window,
)

OK, EMPTY, RESET, TIMEOUT = Outcome.OK, Outcome.EMPTY, Outcome.RESET, Outcome.TIMEOUT
MALFORMED, OVERSIZED, TRUNCATED = Outcome.MALFORMED, Outcome.OVERSIZED, Outcome.TRUNCATED
CONNECT_FAILED, HTTP_ERROR, UNFINISHED = Outcome.CONNECT_FAILED, Outcome.HTTP_ERROR, Outcome.UNFINISHED

_MAX_FRAME = 16_384
_INITIAL_WINDOW, _MAX_FRAME_SIZE, _MAX_STREAMS, _ENABLE_PUSH, _TABLE_SIZE = 4, 5, 3, 2, 1
_LARGE_BODY = b'{"filler":"' + b"x" * 300_000 + b'"}'
_CODES = [*range(14), 99]  # of RST_STREAM; the last is not in the standard


@dataclass(frozen=True)
class Case:
    name: str
    script: Script
    outcome: Outcome
    error: str = ""  # part of the text in the record
    later: Outcome = OK  # of the next request
    body: bytes = b"{}"
    or_else: Outcome | None = None  # where the reads of the client fall otherwise


def says(name: str, outcome: Outcome, frames: Callable[[int], bytes], error: str = "") -> Case:
    """A server that sends these frames, made from the stream's number, and goes on to serve."""

    def answer(peer: Peer, stream: int) -> None:
        peer.say(frames(stream))

    return Case(name, Script(answer=answer), outcome, error)


def does(
    name: str, outcome: Outcome, answer: Callable[[Peer, int], None], error: str = "", **more: object
) -> Case:
    return Case(name, Script(answer=answer), outcome, error, **more)  # type: ignore[arg-type]


def greets(
    name: str, outcome: Outcome, greet: Callable[[Peer], None], error: str = "", **more: object
) -> Case:
    return Case(name, Script(greet=greet), outcome, error, **more)  # type: ignore[arg-type]


def floods(name: str, outcome: Outcome, frames: Callable[[int], bytes], error: str = "") -> Case:
    """A server that sends the same frames without end."""

    def answer(peer: Peer, stream: int) -> None:
        peer.forever(frames(stream) * 200)

    return Case(name, Script(answer=answer), outcome, error)


def _says_and_closes(frames: Callable[[int], bytes]) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        peer.say(frames(stream))
        peer.sock.close()

    return answer


def _after(frames: Callable[[int], bytes], end: Callable[[Peer], object]) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        peer.say(frames(stream))
        end(peer)

    return answer


def _greeting(*parts: bytes) -> Callable[[Peer], None]:
    return lambda peer: peer.say(*parts)


def _slowly(frames: Callable[[int], bytes], pause_s: float) -> Callable[[Peer, int], None]:
    def answer(peer: Peer, stream: int) -> None:
        for byte in frames(stream):
            peer.say(bytes([byte]))
            if peer.over.wait(pause_s):
                return

    return answer


def _fragments(stream: int, payload: bytes, flags: int = 0) -> bytes:
    """A header block as HEADERS and as many CONTINUATION frames as it needs."""
    pieces = [payload[at : at + _MAX_FRAME] for at in range(0, len(payload), _MAX_FRAME)]
    frames = [frame(HEADERS, flags, stream, pieces[0])]
    frames += [frame(CONTINUATION, 0, stream, piece) for piece in pieces[1:]]
    return b"".join([*frames, frame(CONTINUATION, END_HEADERS, stream)])


def _hpack_bomb(stream: int) -> bytes:
    """One field of 4,000 bytes that the block names 10,000 times, each in one byte."""
    entry = b"\x40\x01a\x7f" + _integer(4000 - 127) + b"b" * 4000
    return frame(HEADERS, END_HEADERS, stream, b"\x88" + entry + b"\xbe" * 10_000)


def _integer(value: int) -> bytes:
    """The rest of an HPACK integer."""
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes([*out, value])


def _raw_status(status: bytes) -> Callable[[int], bytes]:
    field = (
        b"\x00\x07:status\x7f" + _integer(len(status) - 127)
        if len(status) >= 127
        else (b"\x00\x07:status" + bytes([len(status)]))
    )
    return lambda stream: frame(HEADERS, END_HEADERS, stream, field + status) + data(stream, BODY, end=True)


def _many_headers(count: int) -> bytes:
    return block((":status", "200"), *((f"x-{number}", "y" * 100) for number in range(count)))


def _with_length(length: str) -> Callable[[int], bytes]:
    return lambda stream: head(stream, ("content-length", length)) + data(stream, BODY, end=True)


@functools.cache
def _gzip_bomb() -> bytes:
    bomb = gzip.compress(bytes(8 << 20))
    return b"".join(bomb[at : at + _MAX_FRAME] for at in range(0, len(bomb), _MAX_FRAME))


def _goes_on_after_goaway(peer: Peer, stream: int) -> None:
    peer.say(goaway(stream, 0), head(stream), data(stream, TEXT))
    time.sleep(0.1)
    peer.say(data(stream, DONE, end=True))


def _shrinks_the_window(peer: Peer, stream: int) -> None:
    """To nothing while a request is on its way: what was sent already makes the window negative."""
    peer.say(settings((_INITIAL_WINDOW, 0)))
    peer.wait()


def _crumbs(peer: Peer, stream: int) -> None:
    """A window that opens by one byte at a time."""
    peer.say(settings((_INITIAL_WINDOW, 0)))
    peer.forever(window(stream, 1) * 100)


def _answers_early(peer: Peer, stream: int) -> None:
    """Before it has read the request, whose rest no window lets through."""
    peer.say(good(stream), reset(stream, 0))


_STATUS = [
    says(
        "status no integer", MALFORMED, lambda s: head(s, status="abc") + data(s, BODY, end=True), ":status"
    ),
    says("status missing", MALFORMED, lambda s: head(s, status=None) + data(s, BODY, end=True), ":status"),
    says(
        "status twice",
        MALFORMED,
        lambda s: head(s, (":status", "500"), status="200") + data(s, BODY, end=True),
        ":status",
    ),
    says(
        "status after another header",
        MALFORMED,
        lambda s: head(s, ("content-type", "text/event-stream"), (":status", "200"), status=None),
        ":status",
    ),
    says("status empty", MALFORMED, _raw_status(b""), ":status"),
    says("status negative", MALFORMED, _raw_status(b"-20"), ":status"),
    says("status zero", MALFORMED, _raw_status(b"000"), ":status"),
    says("status of 20 digits", MALFORMED, _raw_status(b"2" * 20), ":status"),
    says("status of 5,000 digits", MALFORMED, _raw_status(b"2" * 5000), ":status"),
    says("status in other digits", MALFORMED, _raw_status("２００".encode()), ":status"),
    says("status with a space", MALFORMED, _raw_status(b"20 "), ":status"),
    says("status no text", MALFORMED, _raw_status(b"\xff\xfe\xfd"), ":status"),
    says("status 999", HTTP_ERROR, lambda s: head(s, status="999") + data(s, b"no", end=True), "no"),
    says("status 500", HTTP_ERROR, lambda s: head(s, status="500", end=True), "HTTP 500"),
    says("a request as the answer", MALFORMED, lambda s: head(s, (":method", "GET"), status=None), ":status"),
    says("switching protocols", TIMEOUT, lambda s: head(s, ("upgrade", "h3"), status="101")),
]

_ORDER = [
    says("DATA before HEADERS", MALFORMED, lambda s: data(s, BODY)),
    says("END_STREAM before HEADERS", MALFORMED, lambda s: data(s, b"", end=True)),
    says("CONTINUATION first", MALFORMED, lambda s: frame(CONTINUATION, END_HEADERS, s, b"\x88")),
    says("two heads", MALFORMED, lambda s: head(s) + head(s)),
    says("PING inside a header block", MALFORMED, lambda s: frame(HEADERS, 0, s, b"\x88") + _ping()),
    says("DATA after the end", OK, lambda s: good(s) + data(s, BODY)),
    says("HEADERS after the end", OK, lambda s: good(s) + head(s)),
    says("the answer again", OK, lambda s: good(s) * 2),
    says("garbage after the end", OK, lambda s: good(s) + b"\xff" * 100),
    says("an answer on stream 0", MALFORMED, lambda s: head(0)),
    says("DATA on stream 0", MALFORMED, lambda s: data(0, BODY)),
    says("an answer on a stream of the server", MALFORMED, lambda s: head(2)),
    says("an answer to no request", MALFORMED, lambda s: head(s + 100)),
    says("DATA to no request", MALFORMED, lambda s: data(s + 100, BODY)),
    says("the highest stream", MALFORMED, lambda s: head(0x7FFFFFFF)),
    says("a push promise", MALFORMED, lambda s: frame(PUSH_PROMISE, END_HEADERS, s, b"\0\0\0\2" + _get())),
    says("half-closed, then reset", OK, lambda s: good(s) + reset(s, 0)),
    says("no text", EMPTY, lambda s: head(s) + data(s, DONE, end=True)),
    says("no body", UNFINISHED, lambda s: head(s, end=True)),
    says("an end without [DONE]", UNFINISHED, lambda s: head(s) + data(s, TEXT, end=True)),
]


def _ping(payload: bytes = b"12345678", flags: int = 0) -> bytes:
    return frame(PING, flags, 0, payload)


def _get() -> bytes:
    return block((":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/"))


_SIZES = [
    says("DATA over the maximum", MALFORMED, lambda s: head(s) + data(s, b"x" * (_MAX_FRAME + 1)), "16385"),
    says("HEADERS over the maximum", MALFORMED, lambda s: frame(HEADERS, END_HEADERS, s, bytes(20_000))),
    says("16 MiB announced", MALFORMED, lambda s: head(s) + frame(DATA, 0, s, b"x", length=2**24 - 1)),
    says("an unknown frame over the maximum", MALFORMED, lambda s: frame(0xEE, 0, s, bytes(20_000))),
    says("SETTINGS of 5 bytes", MALFORMED, lambda s: frame(SETTINGS, 0, 0, bytes(5))),
    says("SETTINGS ACK with values", MALFORMED, lambda s: frame(SETTINGS, ACK, 0, bytes(6))),
    says("SETTINGS on a stream", MALFORMED, lambda s: frame(SETTINGS, 0, s, bytes(6))),
    says("PING of 7 bytes", MALFORMED, lambda s: _ping(bytes(7))),
    says("PING on a stream", MALFORMED, lambda s: frame(PING, 0, s, bytes(8))),
    says("RST_STREAM of 3 bytes", MALFORMED, lambda s: frame(RST_STREAM, 0, s, bytes(3))),
    says("RST_STREAM on stream 0", MALFORMED, lambda s: reset(0, 8)),
    says("WINDOW_UPDATE of 3 bytes", MALFORMED, lambda s: frame(WINDOW_UPDATE, 0, 0, bytes(3))),
    says("PRIORITY of 4 bytes", MALFORMED, lambda s: frame(PRIORITY, 0, s, bytes(4))),
    says("PRIORITY on itself", MALFORMED, lambda s: frame(PRIORITY, 0, s, struct.pack(">IB", s, 1))),
    says("GOAWAY of 7 bytes", MALFORMED, lambda s: frame(GOAWAY, 0, 0, bytes(7))),
    says("GOAWAY on a stream", MALFORMED, lambda s: frame(GOAWAY, 0, s, bytes(8))),
    says("padded", OK, lambda s: head(s) + padded(s, BODY, 200, end=True)),
    says("padding over the frame", MALFORMED, lambda s: head(s) + padded(s, b"x", 0, claimed=255)),
    says("DATA empty and padded", MALFORMED, lambda s: head(s) + frame(DATA, 0x8, s)),
    says("unknown frames", OK, lambda s: frame(0xEE, 0xFF, s, b"?" * 9) * 50 + good(s)),
]

_RESETS = [
    *(says(f"RST_STREAM {code}", RESET, lambda s, code=code: reset(s, code)) for code in _CODES),
    *(
        says(f"RST_STREAM {code} after the head", RESET, lambda s, c=code: head(s) + reset(s, c))
        for code in _CODES
    ),
    *(
        says(f"RST_STREAM {code} in the body", RESET, lambda s, c=code: head(s) + data(s, TEXT) + reset(s, c))
        for code in (0, 2, 8)
    ),
    says("RST_STREAM after [DONE]", OK, lambda s: head(s) + data(s, BODY) + reset(s, 2)),
    says("RST_STREAM of another", MALFORMED, lambda s: reset(s + 2, 8)),
    Case(
        "RST_STREAM before the request is read",
        Script(answer=lambda peer, s: peer.say(reset(s, 7)), whole=False),
        RESET,
        "REFUSED_STREAM",
        body=_LARGE_BODY,
    ),
]

_GOAWAYS = [
    does("GOAWAY, then the answer", OK, _goes_on_after_goaway),
    says("GOAWAY without the request", OK, lambda s: goaway(0, 0)),
    says("GOAWAY without the request, for an error", RESET, lambda s: goaway(0, 2), "INTERNAL_ERROR"),
    says("GOAWAY without the request, after its head", RESET, lambda s: head(s) + goaway(0, 0), "NO_ERROR"),
    says("GOAWAY with an error", RESET, lambda s: goaway(s, 11, b"calm down"), "ENHANCE_YOUR_CALM calm down"),
    says("GOAWAY with an unknown error", RESET, lambda s: goaway(s, 4000), "code 4000"),
    says("GOAWAY with control characters", RESET, lambda s: goaway(s, 1, b"\x1b[2J\r\n\0" * 99)),
    says("GOAWAY after the head", RESET, lambda s: head(s) + goaway(s, 2), "INTERNAL_ERROR"),
    says("GOAWAY in the body", OK, lambda s: head(s) + goaway(s, 0) + data(s, BODY, end=True)),
    says("GOAWAY after the answer", OK, lambda s: good(s) + goaway(s, 0)),
    says("GOAWAY twice, less each time", OK, lambda s: goaway(s, 0) + goaway(0, 0)),
    does("GOAWAY, then silence", TIMEOUT, _after(lambda s: goaway(s, 0), Peer.wait)),
    does("GOAWAY, then a close", TRUNCATED, _says_and_closes(lambda s: goaway(s, 0))),
    greets("GOAWAY as a greeting", CONNECT_FAILED, _greeting(goaway(0, 11)), "ENHANCE_YOUR_CALM"),
    greets("SETTINGS, then GOAWAY", CONNECT_FAILED, _greeting(settings(), goaway(0, 0)), "NO_ERROR"),
]

FLOODS = [  # seconds of work together: they have a window of their own
    Case("a window of crumbs", Script(answer=_crumbs, whole=False), MALFORMED, "floods", body=_LARGE_BODY),
    floods("GOAWAY without end", MALFORMED, lambda s: goaway(s, 0), "floods"),
    floods("SETTINGS without end", MALFORMED, lambda s: settings(), "floods"),
    floods("SETTINGS that change without end", MALFORMED, lambda s: settings((4, 1), (4, 99)), "floods"),
    floods("SETTINGS ACK without end", MALFORMED, lambda s: frame(SETTINGS, ACK, 0)),
    floods("PING without end", MALFORMED, lambda s: _ping(), "floods"),
    floods("PING ACK without end", MALFORMED, lambda s: _ping(flags=ACK), "floods"),
    floods(
        "PRIORITY without end", MALFORMED, lambda s: frame(PRIORITY, 0, s, struct.pack(">IB", 0, 1)), "floods"
    ),
    floods("WINDOW_UPDATE without end", MALFORMED, lambda s: window(0, 1), "floods"),
    floods("unknown frames without end", MALFORMED, lambda s: frame(0xEE, 0, s), "floods"),
    floods("CONTINUATION without end", MALFORMED, lambda s: frame(CONTINUATION, 0, s)),
    does(
        "HEADERS, then CONTINUATION without end",
        MALFORMED,
        lambda peer, s: _begin_and_flood(peer, frame(HEADERS, 0, s, b"\x88"), frame(CONTINUATION, 0, s)),
    ),
    does(
        "empty DATA without end",
        MALFORMED,
        lambda peer, s: _begin_and_flood(peer, head(s), data(s, b"")),
        "floods",
    ),
    does(
        "padding without end",
        OVERSIZED,
        lambda peer, s: _begin_and_flood(peer, head(s), padded(s, b"", 255)),
        "nothing of its body",
    ),
    does(
        "DATA of a byte without end",
        MALFORMED,
        lambda peer, s: _begin_and_flood(peer, head(s), data(s, b"x")),
        "floods",
    ),
    does(
        "DATA of 8 bytes without end",
        OVERSIZED,
        lambda peer, s: _begin_and_flood(peer, head(s), data(s, b"x" * 8)),
        "longer than",
    ),
    does(
        "DATA without end",
        OVERSIZED,
        lambda peer, s: _begin_and_flood(peer, head(s), data(s, b"x" * _MAX_FRAME)),
        "longer than",
    ),
    floods(
        "interim answers without end", OVERSIZED, lambda s: head(s, ("link", "x" * 20), status="103"), "head"
    ),
    floods("RST_STREAM without end", RESET, lambda s: reset(s, 8)),
    does("PING without end, and no reply read", MALFORMED, lambda peer, s: peer.forever(_ping() * 4000)),
    greets(
        "SETTINGS without end as a greeting",
        CONNECT_FAILED,
        lambda peer: peer.forever(settings() * 200),
        "floods",
        or_else=MALFORMED,
    ),
]


def _begin_and_flood(peer: Peer, begin: bytes, flood: bytes) -> None:
    peer.say(begin)
    peer.forever(flood * 200)


_WINDOWS = [
    says("WINDOW_UPDATE of zero", MALFORMED, lambda s: window(0, 0)),
    says("WINDOW_UPDATE of zero on the stream", MALFORMED, lambda s: window(s, 0)),
    says("WINDOW_UPDATE over the limit", MALFORMED, lambda s: window(0, 2**31 - 1) * 2),
    says("WINDOW_UPDATE over the limit of a stream", MALFORMED, lambda s: window(s, 2**31 - 1) * 2),
    says("WINDOW_UPDATE on a stream that never was", MALFORMED, lambda s: window(s + 100, 1)),
    says("an initial window over the limit", MALFORMED, lambda s: settings((_INITIAL_WINDOW, 2**31))),
    says("frames that may be too small", MALFORMED, lambda s: settings((_MAX_FRAME_SIZE, 1))),
    says("frames that may be too large", MALFORMED, lambda s: settings((_MAX_FRAME_SIZE, 2**24))),
    says("server push switched on", MALFORMED, lambda s: settings((_ENABLE_PUSH, 7))),
    says("a header table of 4 GiB", OK, lambda s: settings((_TABLE_SIZE, 2**32 - 1)) + good(s)),
    says("settings nobody knows", OK, lambda s: settings((0xABCD, 1), (0, 2)) + good(s)),
    says("no more streams allowed", OK, lambda s: settings((_MAX_STREAMS, 0)) + good(s)),
    greets("no stream allowed", CONNECT_FAILED, _greeting(settings((_MAX_STREAMS, 0))), "no requests"),
    greets("one stream allowed", OK, _greeting(settings((_MAX_STREAMS, 1)))),
    Case("a window that shrinks", Script(answer=_shrinks_the_window, whole=False), TIMEOUT, body=_LARGE_BODY),
    Case("an answer before its request", Script(answer=_answers_early, whole=False), OK, body=_LARGE_BODY),
    greets("no window at all", TIMEOUT, _greeting(settings((_INITIAL_WINDOW, 0))), later=TIMEOUT),
]

_HEADS = [
    says("an HPACK bomb", OVERSIZED, _hpack_bomb, "too long"),
    says("an HPACK index that is none", MALFORMED, lambda s: frame(HEADERS, END_HEADERS, s, b"\xff\xff\x01")),
    says("an HPACK integer without end", MALFORMED, lambda s: frame(HEADERS, END_HEADERS, s, b"\xff" * 9000)),
    says("an HPACK block cut short", MALFORMED, lambda s: frame(HEADERS, END_HEADERS, s, b"\x88\x40\x05a")),
    says(
        "an HPACK table over the limit",
        MALFORMED,
        lambda s: frame(HEADERS, END_HEADERS, s, b"\x3f\xe1\xff\x03"),
    ),
    says("an empty head", MALFORMED, lambda s: frame(HEADERS, END_HEADERS, s), ":status"),
    says("a list of 600 headers", OVERSIZED, lambda s: _fragments(s, _many_headers(600)), "too long"),
    says("a head of 1 MB", OVERSIZED, lambda s: _fragments(s, _many_headers(10_000)), "head"),
    says(
        "one header of 60 kB",
        OK,
        lambda s: _fragments(s, block((":status", "200"), ("a", "b" * 60_000))) + data(s, BODY, end=True),
    ),
    says("a header name in capitals", OK, lambda s: head(s, ("X-A", "b")) + data(s, BODY, end=True)),
    says("a connection header", OK, lambda s: head(s, ("connection", "close")) + data(s, BODY, end=True)),
    says(
        "chunked over HTTP/2",
        OK,
        lambda s: head(s, ("transfer-encoding", "chunked")) + data(s, BODY, end=True),
    ),
    says("interim answers, then one", OK, lambda s: head(s, ("link", "x"), status="103") * 20 + good(s)),
    says("content-length too small", MALFORMED, _with_length("5")),
    says("content-length too large", MALFORMED, _with_length("500000")),
    says("content-length no integer", MALFORMED, _with_length("many")),
    says("content-length negative", MALFORMED, _with_length("-1")),
    says("content-length of 5,000 digits", MALFORMED, _with_length("9" * 5000)),
    says(
        "two content-lengths",
        MALFORMED,
        lambda s: head(s, ("content-length", "5"), ("content-length", "6")) + data(s, BODY, end=True),
    ),
    says(
        "gzip that nobody asked for",
        OK,
        lambda s: head(s, ("content-encoding", "gzip")) + data(s, gzip.compress(BODY), end=True),
    ),
    says(
        "gzip that is none",
        MALFORMED,
        lambda s: head(s, ("content-encoding", "gzip")) + data(s, BODY, end=True),
    ),
    says("brotli", MALFORMED, lambda s: head(s, ("content-encoding", "br")) + data(s, BODY, end=True), "br"),
    says(
        "a gzip bomb",
        OVERSIZED,
        lambda s: head(s, ("content-encoding", "gzip")) + data(s, _gzip_bomb(), end=True),
        "decompressed",
    ),
]


def _body(stream: int) -> bytes:
    return head(stream) + data(stream, BODY)


_TRAILERS = [
    says("a trailer", OK, lambda s: _body(s) + trailers(s, ("x-time", "3"))),
    says("a content-encoding trailer", OK, lambda s: _body(s) + trailers(s, ("content-encoding", "gzip"))),
    says("a content-type trailer", OK, lambda s: _body(s) + trailers(s, ("content-type", "text/html"))),
    says("a content-length trailer", OK, lambda s: _body(s) + trailers(s, ("content-length", "5"))),
    says("a status trailer", OK, lambda s: _body(s) + trailers(s, (":status", "500"))),
    says("1,000 trailers", OK, lambda s: _body(s) + _fragments(s, block(*[("a", "b")] * 1000), END_STREAM)),
    says(
        "20,000 trailers",
        OVERSIZED,
        lambda s: _body(s) + _fragments(s, block(*[("a", "b")] * 20_000), END_STREAM),
        "too long",
    ),
    says(
        "a trailer of 500 kB",
        OVERSIZED,
        lambda s: _body(s) + _fragments(s, block(("a", "b" * 500_000)), END_STREAM),
        "bytes",
    ),
    says("a trailer that does not end", MALFORMED, lambda s: _body(s) + trailers(s, ("a", "b"), end=False)),
    says("a trailer before the head", MALFORMED, lambda s: trailers(s, ("a", "b"))),
    does("a body without its end", TIMEOUT, _after(_body, Peer.wait)),
]

_PACE = [
    does("silence", TIMEOUT, _after(lambda s: b"", Peer.wait)),
    does("silence after the head", TIMEOUT, _after(head, Peer.wait)),
    does("a byte every second", TIMEOUT, _slowly(good, 1.0)),
    does("a byte at a time", OK, _slowly(good, 0.0)),
    does(
        "a body of a byte every 50 ms",
        TIMEOUT,
        lambda peer, s: (peer.say(head(s)), peer.forever(data(s, b":"), pause_s=0.05)),  # type: ignore[func-returns-value]
    ),
    does(
        "closed without an answer", TRUNCATED, _says_and_closes(lambda s: b""), "after the request was sent"
    ),
    does("closed after the head", TRUNCATED, _says_and_closes(head), "before the answer was complete"),
    does("closed between frames", TRUNCATED, _says_and_closes(lambda s: head(s) + data(s, TEXT))),
    does("closed inside a frame", TRUNCATED, _says_and_closes(lambda s: head(s) + data(s, TEXT)[:-5])),
    does("closed inside a frame head", TRUNCATED, _says_and_closes(lambda s: head(s) + data(s, TEXT)[:5])),
    does("closed after [DONE]", OK, _says_and_closes(_body)),
    does("the connection reset", RESET, _after(lambda s: b"", Peer.reset)),
    does("the connection reset in the body", RESET, _after(lambda s: head(s) + data(s, TEXT), Peer.reset)),
]

_GREETINGS = [
    greets("no greeting", TIMEOUT, Peer.wait, "no connection in time"),
    greets("closed at once", CONNECT_FAILED, lambda peer: peer.sock.close()),
    greets("HTTP/1.1", CONNECT_FAILED, _greeting(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")),
    greets(
        "an upgrade", CONNECT_FAILED, _greeting(b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\n\r\n", settings())
    ),
    greets("noise", CONNECT_FAILED, _greeting(bytes(range(256)) * 99)),
    greets("PING as a greeting", OK, _greeting(_ping(), settings())),
    greets("an answer as a greeting", CONNECT_FAILED, _greeting(head(1))),
    Case("TLS with HTTP/1.1", Script(alpn=["http/1.1"]), CONNECT_FAILED, later=CONNECT_FAILED),
    Case("TLS without a protocol", Script(alpn=[]), CONNECT_FAILED, "does not choose HTTP/2", CONNECT_FAILED),
    Case("TLS", Script(alpn=["h2"]), OK),
    Case("TLS, closed at once", Script(alpn=["h2"], greet=lambda peer: peer.sock.close()), CONNECT_FAILED),
    Case("TLS, then silence", Script(alpn=["h2"], answer=_after(lambda s: b"", Peer.wait)), TIMEOUT),
    Case("TLS, then closed", Script(alpn=["h2"], answer=_says_and_closes(head)), TRUNCATED),
]

CASES = [*_STATUS, *_ORDER, *_SIZES, *_RESETS, *_GOAWAYS, *_WINDOWS, *_HEADS, *_TRAILERS, *_PACE, *_GREETINGS]
