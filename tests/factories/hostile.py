"""Hostile servers: what they answer to any request, without end where that does the harm."""

import gzip
import itertools
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.factories.sockets import accepting

PIECE = b"x" * 65536
_press = zlib.compressobj(9, zlib.DEFLATED, 31)
_BOMB_START = _press.flush(zlib.Z_FULL_FLUSH)
_BOMB_BLOCK = _press.compress(bytes(8 << 20)) + _press.flush(
    zlib.Z_FULL_FLUSH
)  # stands for itself: repeatable
_SMALL_BOMB = gzip.compress(bytes(8 << 20))


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def chunks(parts: Iterator[bytes]) -> Iterator[bytes]:
    yield head("content-type: text/event-stream", "transfer-encoding: chunked")
    for part in parts:
        yield b"%x\r\n%b\r\n" % (len(part), part)


def sized(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return head(*lines, f"content-length: {len(body)}", status=status) + body


def _bomb() -> Iterator[bytes]:
    yield head("content-encoding: gzip", "content-type: text/event-stream")
    yield _BOMB_START
    while True:
        yield _BOMB_BLOCK


def _slowly(data: bytes) -> Iterator[bytes]:
    for byte in itertools.cycle(data):
        time.sleep(0.02)
        yield bytes([byte])


# name -> what is sent, piece by piece
HARMS: dict[str, Callable[[], Iterator[bytes]]] = {
    "endless body": lambda: itertools.chain([head()], itertools.repeat(PIECE)),
    "endless chunks": lambda: chunks(itertools.repeat(PIECE)),
    "endless comments": lambda: chunks(itertools.repeat(b": still here\n\n" * 1000)),
    "endless headers": lambda: itertools.chain(
        [b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"a: b\r\n" * 1000)
    ),
    "one endless header": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\na: "], itertools.repeat(PIECE)),
    "endless interim answers": lambda: itertools.repeat(head(status="103 Early Hints") * 1000),
    "gzip bomb": _bomb,
    "small gzip bomb": lambda: iter([sized(_SMALL_BOMB, "content-encoding: gzip", "connection: close")]),
    "slow head": lambda: _slowly(b"HTTP/1.1 200 OK\r\na: b" + PIECE),
    "slow body": lambda: itertools.chain([head("content-length: 999999")], _slowly(b"x")),
    "slow chunks": lambda: chunks(_slowly(b"x")),
    "silence": lambda: iter([]),
}


@contextmanager
def serving(say: Callable[[bytes], Iterator[bytes]], *, stay: bool = True) -> Iterator[str]:
    """The base URL of a server that answers each connection's first request with `say(request head)`."""
    over = threading.Event()

    def talk(sock: socket.socket, _number: int) -> None:
        sock.settimeout(5)
        with sock:
            try:
                request = b""
                while b"\r\n\r\n" not in request:
                    received = sock.recv(65536)
                    if not received:
                        return
                    request += received
                for piece in say(request):
                    if over.is_set():
                        return
                    sock.sendall(piece)
                if stay:
                    over.wait(10)
            except OSError:
                return  # the client has had enough

    with accepting(talk) as address:
        try:
            yield f"http://{address}"
        finally:
            over.set()
