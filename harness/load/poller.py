"""Says which sockets are ready: epoll, and poll(2) on macOS and the BSDs."""

import select
from typing import Protocol


class Poller(Protocol):
    """The part of select.epoll that is used; masks are select.POLLIN and select.POLLOUT, epoll's on Linux."""

    def register(self, fd: int, mask: int, /) -> None: ...

    def modify(self, fd: int, mask: int, /) -> None: ...

    def unregister(self, fd: int, /) -> None: ...

    def poll(self, timeout: float, maxevents: int = -1, /) -> list[tuple[int, int]]:
        """Seconds; more than `maxevents` may come."""
        ...

    def close(self) -> None: ...


class PortablePoller:
    """A look costs the more, the more descriptors there are, and keeps none waiting for the next."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self.register = self._poll.register
        self.modify = self._poll.modify
        self.unregister = self._poll.unregister

    def poll(self, timeout: float, maxevents: int = -1, /) -> list[tuple[int, int]]:
        return self._poll.poll(timeout * 1e3)

    def close(self) -> None:
        """poll(2) holds nothing."""
