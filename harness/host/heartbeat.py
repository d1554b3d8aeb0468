"""Time that a process did not see pass: it was starved of CPU or stopped, or its machine stood still."""

import heapq
import time
from functools import partial

from harness.host.clocks import tightest

STALL_NS = 100_000_000  # shorter ones are how a busy machine schedules
_MOST = 1_000  # stalls that are kept, the longest ones
_TRIES = 8


class Heartbeat:
    """Keeps the beats of a loop that came later than `period_ns` by STALL_NS. A beat reads the clock once."""

    def __init__(self, period_ns: int) -> None:
        self.longest_ns = 0  # by which any beat came late
        self._period_ns = period_ns
        self._late: list[tuple[int, int]] = []  # a heap: by how much, when the beat was due
        self._due_ns = time.monotonic_ns() + period_ns

    def beat(self) -> None:
        now = time.monotonic_ns()
        late_ns = now - self._due_ns
        if late_ns > self.longest_ns:
            self.longest_ns = late_ns
        if late_ns >= STALL_NS:
            push = heapq.heappush if len(self._late) < _MOST else heapq.heappushpop
            push(self._late, (late_ns, self._due_ns))
        self._due_ns = now + self._period_ns

    def stalls(self, t0_ns: int) -> tuple[tuple[int, int], ...]:
        """Start and least duration of each stall, in order, ns from `t0_ns` on CLOCK_MONOTONIC.

        Nothing of the process ran in between: a stall may have begun up to one period earlier.
        """
        return tuple(sorted((due_ns - t0_ns, late_ns) for late_ns, due_ns in self._late))


def suspended_ns() -> int | None:
    """The time that the machine has been suspended since it started; None where the system does not count it.

    CLOCK_MONOTONIC stands still meanwhile, so no beat comes late.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    boot = tightest(partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME), _TRIES)
    return boot.value_ns - boot.at_ns
