"""The connections of one worker: opened ahead, reused while warm, their cost kept apart."""

import select
import time
from collections.abc import Sequence

from harness.load.connection import Connection, connect
from harness.load.poller import Poller
from harness.load.route import Route

AT_ONCE = 64  # connections being opened: below the listen backlog of any server
_GIVE_UP_NS = 10_000_000_000
_RIGHT_AFTER_NS = 100_000_000  # after its answer; a server that is tired of waiting takes seconds


class ConnectionPool:
    """Connections to every replica, each by the route at its position.

    If `reuse` is False, or a server closes right after an answer, each request has a new connection. Such
    servers (llama.cpp among them) do not announce the close in their headers, and lose a request that is on
    its way.
    """

    def __init__(self, poller: Poller, routes: Sequence[Route], *, kernel: bool, reuse: bool = True) -> None:
        self.poller = poller
        self.connections: dict[int, Connection] = {}  # by descriptor
        self.connect_ns: list[int] = []  # one per connection that was made
        self._routes, self._kernel = routes, kernel
        self._reuse = [reuse] * len(routes)  # by replica
        # By replica and descriptor, the last that was freed at the end.
        self._idle: list[dict[int, Connection]] = [{} for _ in routes]

    def open(self, replica: int) -> Connection:
        """Starts a connection; POLLOUT says that it is made. Raises OSError if it fails at once."""
        connection = connect(self._routes[replica], replica, time.monotonic_ns(), kernel=self._kernel)
        self.connections[connection.fd] = connection
        self.poller.register(connection.fd, select.POLLOUT)
        return connection

    def finish_open(self, connection: Connection) -> bool:
        """Takes one step towards a usable connection; True at the last. Raises OSError if it was refused."""
        connection.raise_if_refused()
        self.poller.modify(connection.fd, select.POLLIN)
        if not connection.greet():
            return False
        self.connect_ns.append(time.monotonic_ns() - connection.opened)
        return True

    def open_ahead(self, count: int) -> str:
        """Opens `count` idle connections, to the replicas in turn; returns what prevented that, or ""."""
        give_up = time.monotonic_ns() + _GIVE_UP_NS
        opening: set[Connection] = set()
        problem = ""
        while self._idle_count() < count and not problem:
            try:
                while len(opening) < AT_ONCE and len(self.connections) < count:
                    opening.add(self.open(len(self.connections) % len(self._routes)))
                for fd, _ in self.poller.poll(1.0):
                    connection = self.connections[fd]
                    if connection in opening:
                        if self.finish_open(connection):
                            opening.remove(connection)
                            self.release(connection)
                    elif not connection.still_open():
                        raise ConnectionAbortedError("the server closed an idle connection")
            except OSError as error:
                problem = str(error)
            if time.monotonic_ns() > give_up:
                problem = "connecting took too long"
        for connection in opening:
            self.discard(connection)
        return problem and f"{self._idle_count()} of {count} connections opened ahead: {problem}"

    def take_idle(self, replica: int) -> Connection | None:
        """An idle connection that no close has reached; discards those that one has."""
        idle = self._idle[replica]
        while idle:
            _, connection = idle.popitem()
            if connection.still_open():
                return connection
            self.discard_closed(connection)
        return None

    def release(self, connection: Connection) -> None:
        if connection.answered and not self._reuse[connection.replica]:
            self.discard(connection)
            return
        connection.warm, connection.freed = True, time.monotonic_ns()
        self._idle[connection.replica][connection.fd] = connection

    def discard_closed(self, connection: Connection) -> None:
        """Discards an idle connection that the server closed."""
        self.learn_from(connection)
        self.discard(connection)

    def learn_from(self, connection: Connection) -> None:
        """Notes a connection that the server closed before it began an answer."""
        if connection.answered and time.monotonic_ns() - connection.freed < _RIGHT_AFTER_NS:
            self._reuse[connection.replica] = False

    def _idle_count(self) -> int:
        return sum(map(len, self._idle))

    def busy(self) -> list[Connection]:
        """Connections that carry a request, or that one waits for."""
        return [connection for connection in self.connections.values() if connection.exchange is not None]

    def discard(self, connection: Connection) -> None:
        del self.connections[connection.fd]
        self._idle[connection.replica].pop(connection.fd, None)
        self.poller.unregister(connection.fd)
        connection.sock.close()

    def close(self) -> None:
        for connection in list(self.connections.values()):
            connection.sock.close()
        self.connections.clear()
        self.poller.close()
