"""The use of cores by process. Linux only; elsewhere nothing is pinned or known."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import psutil

from harness.sampling.sources.system import busy_s


@contextmanager
def shared_out() -> Iterator[int | None]:
    """Leaves one core to the server and yields it; None if there is only one, or if pinning is unknown.

    What this process starts stays on the other cores.
    """
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(usable) < 2:
        yield None
        return
    core = min(usable)
    os.sched_setaffinity(0, usable - {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, usable)


def pin(pid: int, core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(pid, {core})


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far. `machine_s` counts stolen time too: no process here could use it."""

    at_s: float
    ours_s: float  # this process and the children that have ended
    server_s: float | None
    machine_s: float | None

    @classmethod
    def now(cls, server_pid: int) -> Self:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours_s = sum(usage.ru_utime + usage.ru_stime for usage in used)
        return cls(time.monotonic(), ours_s, _process_s(server_pid), busy_s(psutil.cpu_times()))

    def server_cores_since(self, before: "Usage") -> float | None:
        if self.server_s is None or before.server_s is None:
            return None
        return (self.server_s - before.server_s) / (self.at_s - before.at_s)

    def other_cores_since(self, before: "Usage") -> float | None:
        """Cores kept busy by neither the client nor the server."""
        server_cores = self.server_cores_since(before)
        if server_cores is None or self.machine_s is None or before.machine_s is None:
            return None
        others_s = self.machine_s - before.machine_s - (self.ours_s - before.ours_s)
        return max(0.0, others_s / (self.at_s - before.at_s) - server_cores)


def _process_s(pid: int) -> float | None:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)
