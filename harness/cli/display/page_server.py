"""One small page over HTTP, at a bounded cost, for untrusted clients.

One thread serves every connection. It looks at its sockets at most once each `TICK_S` and makes the page at
most once in a look, so neither a flood of clients nor one that sends a byte at a time costs more than a
small share of a core. A connection ends at its deadline, whatever its client does.
"""

import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

TICK_S = 0.02  # between two looks at the sockets
CONNECTION_S = 5.0  # for the whole of a request and its answer
MOST_CONNECTIONS = 64  # at once; a new one takes the place of the oldest
ACCEPTED_AT_ONCE = 4  # in one look: 200 a second, and 16 looks until a flood can displace a connection
REQUEST_BYTES = 8192
_READ_BYTES = 4096
_HEAD_END = b"\r\n\r\n"


@dataclass(eq=False, slots=True)
class _Connection:
    socket: socket.socket
    ends: float  # on the monotonic clock
    request: bytes = b""
    answer: memoryview = field(default_factory=lambda: memoryview(b""))


@contextmanager
def serving(listener: socket.socket, path: str, kind: str, page: Callable[[], bytes]) -> Iterator[None]:
    """Answers GETs of `path` with `page()`, of the media type `kind`. Closes the listener at the end.

    The end waits for no client: open connections are closed.
    """
    listener.setblocking(False)
    server = _Server(listener, path, kind, page)
    thread = threading.Thread(target=server.run, name="page server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.stop()
        thread.join()


class _Server:
    def __init__(self, listener: socket.socket, path: str, kind: str, page: Callable[[], bytes]) -> None:
        self._listener, self._path, self._kind, self._page = listener, path.encode(), kind, page
        self._stopped = threading.Event()
        self._woken, self._waker = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._open: list[_Connection] = []  # in the order of their deadlines
        self._made: bytes | None = None  # the page, in this look

    def stop(self) -> None:
        self._waker.send(b".")  # before the event, after which the thread may close it
        self._stopped.set()

    def run(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        try:
            while not self._stopped.is_set():
                ready = self._selector.select(self._until_deadline_s())
                self._look([key.data for key, _ in ready if key.data], time.monotonic())
                self._stopped.wait(TICK_S)
        finally:
            for connection in tuple(self._open):
                self._close(connection)
            for resource in (self._selector, self._listener, self._woken, self._waker):
                resource.close()

    def _until_deadline_s(self) -> float | None:
        return max(0.0, self._open[0].ends - time.monotonic()) if self._open else None

    def _look(self, ready: list[_Connection], now: float) -> None:
        self._made = None
        for connection in ready:
            try:
                done = self._send(connection) if connection.answer else self._receive(connection)
            except BlockingIOError:
                continue
            except OSError:  # the client went away
                done = True
            if done:
                self._close(connection)
        while self._open and self._open[0].ends <= now:
            self._close(self._open[0])
        with suppress(OSError):  # nobody waits any more, or no descriptor is left: the next look tries again
            for _ in range(ACCEPTED_AT_ONCE):
                self._accept(now)

    def _accept(self, now: float) -> None:
        accepted, _ = self._listener.accept()
        accepted.setblocking(False)
        if len(self._open) == MOST_CONNECTIONS:
            self._close(self._open[0])
        connection = _Connection(accepted, now + CONNECTION_S)
        self._open.append(connection)
        self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> bool:
        """Whether the connection has ended."""
        data = connection.socket.recv(_READ_BYTES)
        connection.request += data
        if not data or len(connection.request) > REQUEST_BYTES:
            return True
        if _HEAD_END not in connection.request:
            return False
        connection.answer = memoryview(self._answered(connection.request))
        self._selector.modify(connection.socket, selectors.EVENT_WRITE, connection)
        return self._send(connection)

    def _send(self, connection: _Connection) -> bool:
        """Whether all of the answer has been sent."""
        sent = connection.socket.send(connection.answer)
        connection.answer = connection.answer[sent:]
        if not connection.answer:
            connection.socket.shutdown(socket.SHUT_WR)
        return not connection.answer

    def _answered(self, request: bytes) -> bytes:
        method, target, version = [*request.partition(b"\r\n")[0].split(b" "), b"", b"", b""][:3]
        if not version.startswith(b"HTTP/1."):
            return self._whole("400 Bad Request", "text/plain", b"not a request of HTTP/1.1\n")
        if method != b"GET":
            return self._whole("405 Method Not Allowed", "text/plain", b"only GET\n")
        if target.partition(b"?")[0] != self._path:
            return self._whole("404 Not Found", "text/plain", b"only " + self._path + b" is here\n")
        if self._made is None:
            self._made = self._page()
        return self._whole("200 OK", self._kind, self._made)

    @staticmethod
    def _whole(status: str, kind: str, body: bytes) -> bytes:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        return f"{head}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n".encode() + body

    def _close(self, connection: _Connection) -> None:
        self._open.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
