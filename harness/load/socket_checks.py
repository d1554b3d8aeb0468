"""Looks at the sockets, and what each proves: data read after a look came since the last look that saw
none.
"""

import time

from harness.load.dispatcher import NEVER
from harness.load.poller import Poller
from harness.load.stamps import Look

BATCH = 64  # reads between two looks at the schedule


class SocketChecks:
    def __init__(self, poller: Poller) -> None:
        self._poll = poller.poll
        # When every socket was last known empty; the same once the events of the last look are read.
        self._empty_at = self._empty_next = time.monotonic_ns()
        self.current: Look = [self._empty_at, self._empty_at, NEVER]

    def poll(self, timeout_s: float = 0.0) -> list[tuple[int, int]]:
        """Readable sockets, at most a batch. With a timeout only if the look before found none."""
        begun = time.monotonic_ns()
        events = self._poll(timeout_s, BATCH)
        if not events:
            self._empty_at = self._empty_next = begun
            return events
        self._empty_next = begun if len(events) < BATCH else self._empty_at
        floor = time.monotonic_ns() if timeout_s else self._empty_at  # it woke as soon as there was something
        self.current = [self._empty_at, floor, NEVER]
        return events

    def is_read(self) -> None:
        """Notes that the answers so far have been read."""
        self.current[2] = time.monotonic_ns()

    def emptied(self) -> None:
        """Notes that every socket of the last look was read until nothing was left."""
        self._empty_at = self._empty_next
