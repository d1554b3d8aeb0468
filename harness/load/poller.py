"""Readiness of sockets: epoll, and poll(2) on macOS and the BSDs."""

import select
from typing import Protocol


class Poller(Protocol):
    """The part of select.epoll that is used; masks are select.POLLIN and select.POLLOUT, which equal epoll's
    on Linux."""

    def register(self, fd: int, mask: int, /) -> None: ...

    def modify(self, fd: int, mask: int, /) -> None: ...

    def unregister(self, fd: int, /) -> None: ...

    def poll(self, timeout: float, maxevents: int = -1, /) -> list[tuple[int, int]]:
        """`timeout` in seconds. More than `maxevents` may be returned."""
        ...

    def close(self) -> None: ...


class PortablePoller:
    """Slower the more descriptors there are."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self.register = self._poll.register
        self.modify = self._poll.modify
        self.unregister = self._poll.unregister

    def poll(self, timeout: float, maxevents: int = -1, /) -> list[tuple[int, int]]:
        return self._poll.poll(timeout * 1e3)

    def close(self) -> None: ...
