"""The workers of one window, seen from the parent: started, followed, never waited for forever."""

import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from harness.host.helper_process import how_it_ended, spawn
from harness.load.messages import READY, Facts, Pulse, Share

_SETTINGS = {
    # glibc gives large freed blocks back to the kernel at once and faults them in again for the next answer,
    # a quarter of the cost of a token at full speed. Other libcs ignore the names.
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(512 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
    # Else the linear algebra of numpy, which no worker uses, starts a thread for each further core.
    "OPENBLAS_NUM_THREADS": "1",
}
_SILENCE_S = 60.0  # a running worker tells something four times a second
_EXIT_S = 1.0  # one whose pipe is closed is gone at once
_START_AHEAD_NS = 50_000_000  # so that every worker hears of t0 before it


@dataclass(slots=True, kw_only=True)
class Worker:
    share: Share
    silent_s: float = 0.0  # that it was listened to since its last message
    ready: bool = False
    pulse: Pulse | None = None
    facts: Facts | None = None
    lost_at_ns: int | None = None  # CLOCK_MONOTONIC
    ended: str = ""  # how the process did that was lost; "": not known

    def running(self) -> bool:
        return self.facts is None and self.lost_at_ns is None


W = TypeVar("W", bound=Worker)


class WorkerPool(ABC, Generic[W]):
    """t0 is on the caller's CLOCK_MONOTONIC, wherever the workers run."""

    def __init__(self) -> None:
        self.workers: list[W] = []
        self.recent_ttft_ns: deque[int] = deque(maxlen=256)
        self._recent: deque[tuple[float, int, int]] = deque(maxlen=64)  # when heard, text events, items

    @abstractmethod
    def start(self, share: Share) -> None: ...

    @abstractmethod
    def begin(self) -> int:
        """Sends the start time to all who are ready; returns t0."""

    @abstractmethod
    def stop(self) -> None:
        """Cancels what is in flight."""

    @abstractmethod
    def listen(self, timeout_s: float) -> None:
        """Takes messages of the workers for the time given; the silent and the dead count as lost."""

    @abstractmethod
    def collect(self, t0: int) -> int:
        """Call after the window. The records are in the folders of the shares; returns the t0 that they count
        from."""

    @abstractmethod
    def close(self) -> None:
        """Kills workers that are left."""

    def running(self) -> list[W]:
        return [worker for worker in self.workers if worker.running()]

    def recent_per_s(self) -> tuple[float, float] | None:
        """Text events and items per second over the last few seconds; None before there are two pulses."""
        first, *rest = self._recent or [(0.0, 0, 0)]
        span = rest[-1][0] - first[0] if rest else 0.0
        if span <= 0:
            return None
        return sum(events for _, events, _ in rest) / span, sum(items for *_, items in rest) / span

    def take(self, worker: W, message: object) -> None:
        worker.silent_s = 0.0
        if isinstance(message, Pulse):
            worker.pulse = message
            self.recent_ttft_ns += message.ttft_ns
            self._recent.append((time.monotonic(), message.text_events, message.items))
        elif isinstance(message, Facts):
            worker.facts = message
        else:
            worker.ready = message == READY

    def lose(self, worker: W) -> None:
        worker.lost_at_ns = time.monotonic_ns()


def listened_s(began_s: float, timeout_s: float) -> float:
    """The time of a wait, without that in which this process stood still: it would have heard nobody."""
    return min(time.monotonic() - began_s, timeout_s)


@dataclass(slots=True, kw_only=True)
class Process(Worker):
    process: subprocess.Popen[bytes]
    pipe: "Connection[Any, Any]"


class LocalWorkerPool(WorkerPool[Process]):
    """Processes of this machine, which write into the folders of their shares."""

    def start(self, share: Share) -> None:
        process, here = spawn("harness.load", _SETTINGS)
        worker = Process(share=share, process=process, pipe=here)
        self.workers.append(worker)
        self._send(worker, share)

    def begin(self) -> int:
        t0 = time.monotonic_ns() + _START_AHEAD_NS
        self.begin_at(t0)
        return t0

    def begin_at(self, t0: int) -> None:
        self._tell(t0)

    def stop(self) -> None:
        self._tell("stop")

    def listen(self, timeout_s: float) -> None:
        by_pipe = {worker.pipe: worker for worker in self.running()}
        began_s = time.monotonic()
        for pipe in wait(list(by_pipe), timeout_s):
            worker = by_pipe[pipe]  # type: ignore[index]  # wait() returns what it was given
            try:
                self.take(worker, worker.pipe.recv())
            except (EOFError, OSError):
                with suppress(subprocess.TimeoutExpired):
                    worker.ended = how_it_ended(worker.process.wait(_EXIT_S))
                self.lose(worker)
        waited_s = listened_s(began_s, timeout_s)
        for worker in self.running():
            worker.silent_s += waited_s
            if worker.silent_s > _SILENCE_S:
                worker.ended = f"silent for {_SILENCE_S:.0f} s"
                self.lose(worker)

    def collect(self, t0: int) -> int:
        return t0

    def close(self) -> None:
        for worker in self.workers:
            if worker.running():
                self.lose(worker)
            worker.process.kill()
            worker.process.wait()
            worker.pipe.close()

    def lose(self, worker: Process) -> None:
        super().lose(worker)
        worker.process.kill()

    def _tell(self, message: object) -> None:
        for worker in self.running():
            self._send(worker, message)

    def _send(self, worker: Process, message: object) -> None:
        with suppress(OSError):  # it has ended; listen() finds what it left in the pipe
            worker.pipe.send(message)
