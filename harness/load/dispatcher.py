"""The schedule of one worker's share, on CLOCK_MONOTONIC: which request is due when."""

import heapq
from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import Protocol

import numpy as np

from harness.load.job import ClosedLoop, OpenLoop, Sessions
from harness.load.stagger import StaggeredStart
from harness.records.layout import UNKNOWN

NEVER = 2**63 - 1


class Dispatcher(Protocol):
    """Hands out (intended time, position in the share). Times are absolute and never re-anchored."""

    dropped: list[tuple[int, int]]  # due at the cap and given up; taken away by the caller
    waits_for_answers: bool  # every answer must be finalized as soon as it ended
    spread: StaggeredStart | None  # of a closed loop that spreads its start

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        """A request that is due, or None."""

    def next_due(self, now: int, in_flight: int) -> int:
        """When `take` may next return a request; NEVER if only the end of an answer can change that, or
        nothing can.
        """

    def freed(self, index: int, sent: int, end: int) -> None:
        """Is called when the request at `index`, sent at `sent` or UNKNOWN, has ended."""

    def has_more(self, now: int, in_flight: int) -> bool:
        """Whether a request may still be handed out."""

    def overdue(self, now: int) -> list[tuple[int, int]]:
        """Requests that were due and never handed out, once the window is closed."""


class Closing:
    """The time from which a share sends no more: so long after `t0`, or after its first measured request was
    due where warm-up comes before it.
    """

    def __init__(self, t0: int, lasts: int | None, warmup: int = 0) -> None:
        """`lasts`: None where only the end of the requests closes it. `warmup`: requests of this share that
        come first and are not measured.
        """
        self._lasts, self._warmup = lasts, warmup
        self.at = NEVER if lasts is None or warmup else t0 + lasts

    def begins(self, due: int, index: int) -> bool:
        """Whether the request at `index` is the first measured one: from now on `at` is known."""
        if self._lasts is None or self.at != NEVER or index < self._warmup:
            return False
        self.at = due + self._lasts
        return True


def _spread(schedule: ClosedLoop | OpenLoop) -> StaggeredStart | None:
    slots = schedule.spread_slots() if isinstance(schedule, ClosedLoop) else None
    return StaggeredStart(slots) if slots is not None else None


class ClosedLoopDispatcher:
    """Gives up the slot, not the request, where think time goes past the end: what was sent has no gap, as
    ideal hit rates assume, which take requests in order.
    """

    waits_for_answers = False

    def __init__(self, schedule: ClosedLoop, count: int, t0: int, closing: Closing) -> None:
        self.dropped: list[tuple[int, int]] = []
        self._think = cycle([0] if schedule.think_ns is None else schedule.think_ns.tolist())
        self._closing = closing
        self._count, self._next = count, 0
        self._due: list[int] = []  # when slots take the next requests
        self.spread = _spread(schedule)
        for _ in range(schedule.concurrency):
            self._add(t0, t0)
        self._first_wave = len(self._due)

    @property
    def _left(self) -> bool:
        return self._next + len(self._due) < self._count

    def freed(self, index: int, sent: int, end: int) -> None:
        earliest = end
        if self.spread is not None and index < self._first_wave and self._left:
            if sent != UNKNOWN:
                self.spread.answered(sent, end)
            earliest = self.spread.earliest(end)
        self._add(end, earliest)

    def _add(self, end: int, earliest: int) -> None:
        if self._left:
            due = max(end + next(self._think), earliest)
            if due < self._closing.at:
                heapq.heappush(self._due, due)

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        if not self._due or not self._due[0] <= now < self._closing.at:
            return None
        request = heapq.heappop(self._due), self._next
        self._next += 1
        if self._closing.begins(*request):
            self._due = sorted(due for due in self._due if due < self._closing.at)
        return request

    def next_due(self, now: int, in_flight: int) -> int:
        return self._due[0] if self._due and now < self._closing.at else NEVER

    def has_more(self, now: int, in_flight: int) -> bool:
        waiting = bool(self._due) or (in_flight > 0 and self._left)
        return waiting and now < self._closing.at

    def overdue(self, now: int) -> list[tuple[int, int]]:
        return []  # a slot that no longer takes a request has none


class OpenLoopDispatcher:
    waits_for_answers = False
    spread: StaggeredStart | None = None

    def __init__(self, schedule: OpenLoop, t0: int, closing: Closing) -> None:
        self.dropped: list[tuple[int, int]] = []
        self._due = [t0 + offset for offset in schedule.intended_ns.tolist()]
        while self._due and self._due[-1] >= closing.at:
            self._due.pop()
        self._close_at = closing.at
        self._cap = schedule.max_in_flight
        self._drop = schedule.over_cap == "drop"
        self._next = 0

    def freed(self, index: int, sent: int, end: int) -> None:
        """Does nothing: the cap is read from `in_flight`."""

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

    def next_due(self, now: int, in_flight: int) -> int:
        blocked = in_flight >= self._cap and not self._drop
        return self._due[self._next] if self.has_more(now, in_flight) and not blocked else NEVER

    def has_more(self, now: int, in_flight: int) -> bool:
        return self._next < len(self._due) and now < self._close_at

    def overdue(self, now: int) -> list[tuple[int, int]]:
        rest = range(self._next, len(self._due))
        return [(self._due[i], i) for i in rest if self._due[i] <= now]


class SessionDispatcher:
    """Wraps a loop over sessions: it decides on first requests; later ones are due once all they wait for
    were answered."""

    waits_for_answers = True

    def __init__(
        self, schedule: ClosedLoop | OpenLoop, sessions: Sessions, t0: int, closing: Closing
    ) -> None:
        self.dropped: list[tuple[int, int]] = []
        count = len(sessions.session)
        self._think = sessions.think_ns.tolist()
        self._closing = closing
        self._due: list[tuple[int, int]] = []
        self._pending = count  # requests that were not handed out and may still be
        starts = sessions.starts()
        sizes = np.diff([*starts, count])
        self._start_of = np.repeat(starts, sizes).tolist()
        self._left_in = dict(zip(starts, sizes.tolist(), strict=True))  # by start: not handed out so far
        self._begun: Counter[int] = Counter()  # by start: handed out or due, and not ended
        self._failed: set[int] = set()  # starts of sessions that end with what is in flight
        self._outlasting: set[int] = set()  # starts of sessions that wait past the end, and keep their slot
        self._followers, self._missing = _links(sessions.after, self._start_of)
        self._ready = [0] * count  # the latest end of what a request waits for
        self._waiting: list[int] = []  # first requests that a slot of the closed loop will take
        self.spread = _spread(schedule)
        self._first_wave = 0  # requests of the slots' first sessions
        self._closed_loop = isinstance(schedule, ClosedLoop)
        if isinstance(schedule, ClosedLoop):
            self._cap, self._drop = NEVER if sessions.after else schedule.concurrency, False
            self._waiting = starts[::-1]
            self._first_wave = [*starts, count][min(schedule.concurrency, len(starts))]
            for _ in range(schedule.concurrency):
                self._begin_next(t0, t0)
        else:
            self._cap, self._drop = schedule.max_in_flight, schedule.over_cap == "drop"
            due = [t0 + offset for offset in schedule.intended_ns.tolist()]
            for each, start in zip(due, starts, strict=True):
                self._begin(each, start)

    def _begin_next(self, end: int, earliest: int) -> None:
        if self._waiting:
            start = self._waiting.pop()
            self._begin(max(end + self._think[start], earliest), start)

    def _begin(self, due: int, start: int) -> None:
        self._add(due, start)
        for index in self._followers.pop(~start, ()):  # they wait for the start of the session itself
            self._add(due + self._think[index], index)

    def _add(self, due: int, index: int) -> None:
        start = self._start_of[index]
        if due < self._closing.at:
            heapq.heappush(self._due, (due, index))
            self._begun[start] += 1
        else:
            self._outlasting.add(start)

    def answered(self, index: int, sent: int, end: int, *, whole: bool) -> None:
        """Is called at the end of every request that was handed out or dropped. One that is not whole ends
        its session."""
        start = self._start_of[index]
        spread = self.spread if index < self._first_wave else None
        if spread is not None and sent != UNKNOWN:
            spread.answered(sent, end)
        self._begun[start] -= 1
        if not whole and start not in self._failed:
            self._give_up(start)
        if start not in self._failed:
            for follower in self._followers.pop(index, ()):
                self._missing[follower] -= 1
                self._ready[follower] = max(self._ready[follower], end)
                if not self._missing[follower]:
                    self._add(self._ready[follower] + self._think[follower], follower)
        if not self._begun[start]:
            del self._begun[start]
            if start not in self._outlasting:
                self._begin_next(end, spread.earliest(end) if spread is not None and self._waiting else end)

    def _give_up(self, start: int) -> None:
        self._failed.add(start)
        self._outlasting.discard(start)
        self._pending -= self._left_in[start]
        if self._begun[start]:  # some of a tree may be due; of a chain never
            kept = [request for request in self._due if self._start_of[request[1]] != start]
            self._begun[start] -= len(self._due) - len(kept)
            self._due = kept
            heapq.heapify(kept)

    def freed(self, index: int, sent: int, end: int) -> None:
        """Does nothing: an answer counts once it is finalized."""

    def take(self, now: int, in_flight: int) -> tuple[int, int] | None:
        while self._due and self._due[0][0] <= now < self._closing.at:
            if in_flight >= self._cap and not self._drop:
                return None
            self._pending -= 1
            request = heapq.heappop(self._due)
            self._closing.begins(*request)
            self._left_in[self._start_of[request[1]]] -= 1
            if in_flight < self._cap:
                return request
            self.dropped.append(request)
        return None

    def next_due(self, now: int, in_flight: int) -> int:
        blocked = in_flight >= self._cap and not self._drop
        return self._due[0][0] if self._due and now < self._closing.at and not blocked else NEVER

    def has_more(self, now: int, in_flight: int) -> bool:
        return now < self._closing.at and (bool(self._due) or (in_flight > 0 and self._pending > 0))

    def overdue(self, now: int) -> list[tuple[int, int]]:
        if self._closed_loop:  # no cap holds back what a slot takes
            return []
        return sorted(request for request in self._due if request[0] <= now)


def _links(after: Sequence[tuple[int, ...]], start_of: list[int]) -> tuple[dict[int, list[int]], list[int]]:
    """Requests that wait for each request, and the number that each waits for.

    What waits for the start of a session is under the complement of that start.
    """
    followers: dict[int, list[int]] = {}
    missing = [0] * len(start_of)
    for index, start in enumerate(start_of):
        if index == start:
            continue
        for back in after[index] if after else (1,):
            followers.setdefault(index - back if back else ~start, []).append(index)
            missing[index] += bool(back)
    return followers, missing
