"""Asking a node for its clock over a plain socket: a remote call's own delays are ten times larger."""

import hmac
import socket
import struct
import threading
import time
from contextlib import suppress

from harness.cluster.clocks import Ping
from harness.errors import SetupError

TOKEN_BYTES = 32
_ANSWER = struct.Struct("=qq")
_TIMEOUT_S = 5.0
_MOST_BURST_S = 10.0


class ClockServer:
    """Answers each byte with the clock, on connections that begin with the token."""

    def __init__(self, host: str, token: bytes) -> None:
        self._token = token
        self._socket = socket.create_server((host, 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(_TIMEOUT_S)
            if not hmac.compare_digest(_exactly(connection, TOKEN_BYTES), self._token):
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(None)
            while connection.recv(1):
                received = time.monotonic_ns()
                connection.sendall(_ANSWER.pack(received, time.monotonic_ns()))


class Clock:
    """A node's clock as the coordinator asks for it. Raises SetupError where it cannot be reached."""

    def __init__(self, host: str, port: int, token: bytes) -> None:
        self._place, self._token = (host, port), token
        self._socket: socket.socket | None = None
        try:
            self._connected()
        except OSError as error:
            raise SetupError(
                f"its clock cannot be asked for at port {port}: {error}",
                where=host,
                hint="load nodes and the machine that runs bench must reach each other on all ports",
            ) from error

    def burst(self, count: int) -> list[Ping]:
        """Returns the pings that come back in ten seconds; fewer from a node that is gone."""
        pings: list[Ping] = []
        give_up = time.monotonic() + _MOST_BURST_S
        try:
            connection = self._connected()
            while len(pings) < count and time.monotonic() < give_up:
                sent = time.monotonic_ns()
                connection.sendall(b"?")
                answer = _exactly(connection, _ANSWER.size)
                heard = time.monotonic_ns()
                received, answered = _ANSWER.unpack(answer)
                pings.append(Ping(sent, received, answered, heard))
        except OSError:  # an answer that comes late would be taken for the next one's
            self.close()
        return pings

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connected(self) -> socket.socket:
        if self._socket is None:
            self._socket = socket.create_connection(self._place, _TIMEOUT_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(self._token)
        return self._socket


def _exactly(connection: socket.socket, size: int) -> bytes:
    """Raises OSError if the other side ends before that."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionResetError("closed")
        data += part
    return data
