"""HTTP/2 frames byte by byte, legal or not, and a server that sends whatever a script says."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

import hpack

from tests.factories.sockets import accepting, server_tls

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
END_STREAM = ACK = 0x1
END_HEADERS, PADDED = 0x4, 0x8
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_STREAM_TYPE = ("content-type", "text/event-stream")
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
DONE = b"data: [DONE]\n\n"
BODY = TEXT + DONE


def frame(kind: int, flags: int, stream: int, payload: bytes = b"", length: int | None = None) -> bytes:
    """`length`: what the head claims, where that is not the truth."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(*fields: tuple[str, str]) -> bytes:
    """A header block; each by an encoder of its own, which refers to nothing that was sent before."""
    return bytes(hpack.Encoder().encode(list(fields), huffman=False))


def head(stream: int, *more: tuple[str, str], status: str | None = "200", end: bool = False) -> bytes:
    fields = [(":status", status)] if status is not None else []
    payload = block(*fields, *(more or (_STREAM_TYPE,)))
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, payload)


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    return frame(DATA, END_STREAM if end else 0, stream, payload)


def trailers(stream: int, *fields: tuple[str, str], end: bool = True) -> bytes:
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block(*fields))


def good(stream: int) -> bytes:
    return head(stream) + data(stream, BODY, end=True)


def padded(
    stream: int, payload: bytes, padding: int, *, claimed: int | None = None, end: bool = False
) -> bytes:
    length = padding if claimed is None else claimed
    flags = PADDED | (END_STREAM if end else 0)
    return frame(DATA, flags, stream, bytes([length]) + payload + bytes(padding))


def settings(*pairs: tuple[int, int]) -> bytes:
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in pairs))


def reset(stream: int, code: int) -> bytes:
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def goaway(last: int, code: int, said: bytes = b"") -> bytes:
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, code) + said)


def window(stream: int, by: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", by))


@dataclass
class Peer:
    """One accepted connection."""

    sock: socket.socket
    over: threading.Event  # the test has seen enough
    resets: list[int] = field(default_factory=list)  # streams that the client has reset
    _heard: bytearray = field(default_factory=bytearray)

    def say(self, *parts: bytes) -> None:
        self.sock.sendall(b"".join(parts))

    def forever(self, part: bytes, *, pause_s: float = 0.0) -> None:
        while not self.over.wait(pause_s):
            self.say(part)

    def wait(self) -> None:
        """Holds the connection open and silent."""
        self.over.wait()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def preface(self) -> None:
        while len(self._heard) < len(_PREFACE):
            self._receive()
        del self._heard[: len(_PREFACE)]

    def request(self, *, whole: bool = True) -> int:
        """The stream of the next request, once its end was read, or else its head."""
        while True:
            kind, flags, stream = self.hear()
            if (kind == HEADERS and not whole) or (kind in (DATA, HEADERS) and flags & END_STREAM):
                return stream

    def hear(self) -> tuple[int, int, int]:
        """Kind, flags and stream of the next frame."""
        while len(self._heard) < 9 or len(self._heard) < 9 + int.from_bytes(self._heard[:3]):
            self._receive()
        length, kind, flags = int.from_bytes(self._heard[:3]), self._heard[3], self._heard[4]
        stream = int.from_bytes(self._heard[5:9])
        del self._heard[: 9 + length]
        if kind == DATA and length:
            self.say(window(0, length))  # of the connection; that of the stream stays as it is
        if kind == RST_STREAM:
            self.resets.append(stream)
        return kind, flags, stream

    def _receive(self) -> None:
        more = self.sock.recv(65_536)
        if not more:
            raise ConnectionError("the client closed")
        self._heard += more


@dataclass(frozen=True)
class Script:
    """What a server does wrong: when a connection is accepted, or with the first requests that it reads."""

    greet: Callable[[Peer], None] | None = None  # instead of its settings; None: they are empty
    greeted: int = 2  # so many connections, from the first on; the client opens one ahead of the window
    answer: Callable[[Peer, int], None] | None = None  # to the first requests only; None: like all others
    times: int = 1  # how many are the first
    whole: bool = True  # it reads the first request to its end
    alpn: list[str] | None = None  # over TLS, with these protocols


class Server:
    """Serves every request well that its script says nothing of."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None, over: threading.Event) -> None:
        self._script, self._tls, self._over = script, tls, over
        self._answered = threading.Semaphore(script.times)

    def talk(self, sock: socket.socket, number: int) -> None:
        sock.settimeout(30)
        with suppress(OSError), ExitStack() as stack:
            stack.callback(sock.close)
            if self._tls is not None:
                sock = stack.enter_context(self._tls.wrap_socket(sock, server_side=True))
            peer = Peer(sock, self._over)
            if self._script.greet is not None and number <= self._script.greeted:
                self._script.greet(peer)
            else:
                peer.say(settings())
            peer.preface()
            while True:
                wrong = self._script.answer if self._answered.acquire(blocking=False) else None
                if wrong is None:
                    peer.say(good(peer.request()))
                else:
                    try:
                        stream = peer.request(whole=self._script.whole)
                    except OSError:
                        self._answered.release()  # another connection brings the first request
                        raise
                    wrong(peer, stream)


@contextmanager
def serving(*scripts: Script) -> Iterator[list[str]]:
    """The URLs of one server for each script."""
    urls, over = list[str](), threading.Event()
    with ExitStack() as servers:
        for script in scripts:
            tls = None if script.alpn is None else server_tls(script.alpn)
            address = servers.enter_context(accepting(Server(script, tls, over).talk))
            urls.append(f"{'https' if tls else 'http'}://{address}")
        servers.callback(over.set)
        yield urls
