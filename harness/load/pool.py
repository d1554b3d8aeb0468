"""The connections of one worker: opened ahead, reused while warm, their cost kept apart."""

import select
import time

from harness.load.flow import Flow, connect
from harness.load.poller import Poller
from harness.load.way import Way

_AT_ONCE = 64  # below the listen backlog of any server
_GIVE_UP_NS = 10_000_000_000
_RIGHT_AFTER_NS = 100_000_000  # after its answer; a server that is tired of waiting takes seconds


class Pool:
    """Where `reuse` is False, or a server closes right after an answer, each request has a new connection.

    Such servers (llama.cpp among them) do not say so in their headers, and lose a request that is on its way.
    """

    def __init__(self, poller: Poller, way: Way, *, kernel: bool, reuse: bool = True) -> None:
        self.poller = poller
        self.flows: dict[int, Flow] = {}  # by descriptor
        self.connect_ns: list[int] = []  # one per connection that was made
        self._way, self._kernel, self._reuse = way, kernel, reuse
        self._idle: list[Flow] = []

    def open(self) -> Flow:
        """Starts a connection: POLLOUT tells that it is made. Raises OSError where it fails at once."""
        flow = connect(self._way, time.monotonic_ns(), kernel=self._kernel)
        self.flows[flow.fd] = flow
        self.poller.register(flow.fd, select.POLLOUT)
        return flow

    def finish_open(self, flow: Flow) -> bool:
        """One step towards a usable connection; True at the last. Raises OSError where it was refused."""
        flow.raise_if_refused()
        self.poller.modify(flow.fd, select.POLLIN)
        if not flow.greet():
            return False
        self.connect_ns.append(time.monotonic_ns() - flow.opened)
        return True

    def open_ahead(self, count: int) -> str:
        """Opens `count` idle connections; returns what kept it from opening them all, or ""."""
        give_up = time.monotonic_ns() + _GIVE_UP_NS
        opening: set[Flow] = set()
        problem = ""
        while len(self._idle) < count and not problem:
            try:
                while len(opening) < _AT_ONCE and len(self.flows) < count:
                    opening.add(self.open())
                for fd, _ in self.poller.poll(1.0):
                    flow = self.flows[fd]
                    if flow in opening:
                        if self.finish_open(flow):
                            opening.remove(flow)
                            self.release(flow)
                    elif not flow.still_open():
                        raise ConnectionAbortedError("the server closed an idle connection")
            except OSError as error:
                problem = str(error)
            if time.monotonic_ns() > give_up:
                problem = "connecting took too long"
        for flow in opening:
            self.discard(flow)
        return problem and f"{len(self._idle)} of {count} connections opened ahead: {problem}"

    def take_idle(self) -> Flow | None:
        """A connection that no close has reached; those that one has are discarded."""
        while self._idle:
            flow = self._idle.pop()
            if flow.still_open():
                return flow
            self.discard_closed(flow)
        return None

    def release(self, flow: Flow) -> None:
        """The connection is free; the next request takes it."""
        if flow.answered and not self._reuse:
            self.discard(flow)
            return
        flow.warm, flow.freed = True, time.monotonic_ns()
        self._idle.append(flow)

    def discard_closed(self, flow: Flow) -> None:
        """Closed by the server while idle."""
        self.learn_from(flow)
        self.discard(flow)

    def learn_from(self, flow: Flow) -> None:
        """A connection that the server closed before it began an answer."""
        if flow.answered and time.monotonic_ns() - flow.freed < _RIGHT_AFTER_NS:
            self._reuse = False

    def busy(self) -> list[Flow]:
        """Those that a request is on, or waits for."""
        return [flow for flow in self.flows.values() if flow.exchange is not None]

    def discard(self, flow: Flow) -> None:
        del self.flows[flow.fd]
        if flow in self._idle:
            self._idle.remove(flow)
        self.poller.unregister(flow.fd)
        flow.sock.close()

    def close(self) -> None:
        for flow in list(self.flows.values()):
            flow.sock.close()
        self.flows.clear()
        self.poller.close()
