"""Which request is due when: the schedule of one worker's share, on CLOCK_MONOTONIC."""

import heapq
from typing import Protocol

from harness.load.job import ClosedLoop, OpenLoop

NEVER = 2**63 - 1


class Work(Protocol):
    """Hands out (intended time, position in the share); times are absolute and never re-anchored."""

    dropped: list[tuple[int, int]]  # due at the cap and given up; taken away by the caller

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        """A request that is due, or None."""

    def next_due(self, in_flight: int) -> int:
        """When `take` may have something next; NEVER while only an ending answer can change that."""

    def freed(self, end: int) -> None:
        """An answer ended at `end`."""

    def left(self, now: int, in_flight: int) -> bool:
        """Whether a request may still be handed out."""

    def overdue(self, now: int) -> list[tuple[int, int]]:
        """Requests that were due and were never handed out, once the window is closed."""


class ClosedWork:
    def __init__(self, schedule: ClosedLoop, count: int, t0: int, close_at: int) -> None:
        self.dropped: list[tuple[int, int]] = []
        self._think = [0] * count if schedule.think_ns is None else schedule.think_ns.tolist()
        self._close_at = close_at
        self._next = 0
        self._due: list[tuple[int, int]] = []
        for _ in range(schedule.concurrency):
            self.freed(t0)

    def freed(self, end: int) -> None:
        if self._next < len(self._think):
            due = end + self._think[self._next]
            if due < self._close_at:
                heapq.heappush(self._due, (due, self._next))
                self._next += 1

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        if self._due and self._due[0][0] <= now < self._close_at:
            return heapq.heappop(self._due)
        return None

    def next_due(self, in_flight: int) -> int:
        return self._due[0][0] if self._due else NEVER

    def left(self, now: int, in_flight: int) -> bool:
        waiting = bool(self._due) or (in_flight > 0 and self._next < len(self._think))
        return waiting and now < self._close_at

    def overdue(self, now: int) -> list[tuple[int, int]]:
        return []  # a slot that no longer takes a request has none


class OpenWork:
    def __init__(self, schedule: OpenLoop, t0: int, close_at: int) -> None:
        self.dropped: list[tuple[int, int]] = []
        self._due = [t0 + offset for offset in schedule.intended_ns.tolist()]
        while self._due and self._due[-1] >= close_at:
            self._due.pop()
        self._close_at = close_at
        self._cap = schedule.max_in_flight
        self._drop = schedule.over_cap == "drop"
        self._next = 0

    def freed(self, end: int) -> None:
        """The cap is read from `in_flight`."""

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        while self._next < len(self._due) and self._due[self._next] <= now < self._close_at:
            if in_flight >= self._cap and not self._drop:
                return None
            request = self._due[self._next], self._next
            self._next += 1
            if in_flight < self._cap:
                return request
            self.dropped.append(request)
        return None

    def next_due(self, in_flight: int) -> int:
        blocked = in_flight >= self._cap and not self._drop
        return self._due[self._next] if self._next < len(self._due) and not blocked else NEVER

    def left(self, now: int, in_flight: int) -> bool:
        return self._next < len(self._due) and now < self._close_at

    def overdue(self, now: int) -> list[tuple[int, int]]:
        rest = range(self._next, len(self._due))
        return [(self._due[i], i) for i in rest if self._due[i] <= now]
