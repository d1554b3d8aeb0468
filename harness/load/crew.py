"""The worker processes of one window, seen from the parent: started, followed, never waited for forever."""

import subprocess
import time
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from harness.child import spawn
from harness.load.worker import READY, Facts, Pulse, Share

# glibc gives large freed blocks back to the kernel at once and faults them in again for the next answer,
# a quarter of the cost of a token at full speed. Other libcs ignore the names.
_KEEP_FREED_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(512 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(512 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
}
_SILENCE_S = 60.0  # a running worker tells something four times a second


@dataclass(slots=True)
class Worker:
    share: Share
    process: subprocess.Popen[bytes]
    pipe: "Connection[Any, Any]"
    heard: float = field(default_factory=time.monotonic)
    ready: bool = False
    pulse: Pulse | None = None
    facts: Facts | None = None
    lost_at_ns: int | None = None  # CLOCK_MONOTONIC

    def running(self) -> bool:
        return self.facts is None and self.lost_at_ns is None


class Crew:
    def __init__(self) -> None:
        self.workers: list[Worker] = []
        self.recent_ttft_ns: deque[int] = deque(maxlen=256)
        self._recent_events: deque[tuple[float, int]] = deque(maxlen=64)  # when heard, text events

    def start(self, share: Share) -> None:
        process, here = spawn("harness.load", _KEEP_FREED_MEMORY)
        worker = Worker(share, process, here)
        self.workers.append(worker)
        self._send(worker, share)

    def running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.running()]

    def tell(self, message: object) -> None:
        for worker in self.running():
            self._send(worker, message)

    def listen(self, timeout_s: float) -> None:
        """Takes what the workers say within the time; the silent and the dead count as lost."""
        by_pipe = {worker.pipe: worker for worker in self.running()}
        for pipe in wait(list(by_pipe), timeout_s):
            worker = by_pipe[pipe]  # type: ignore[index]  # wait() returns what it was given
            try:
                self._take(worker, worker.pipe.recv())
            except (EOFError, OSError):
                self._lose(worker)
        for worker in self.running():
            if time.monotonic() - worker.heard > _SILENCE_S:
                self._lose(worker)

    def text_events_per_s(self) -> float | None:
        """Over the pulses kept, a few seconds; None before there are two."""
        first, *rest = self._recent_events or [(0.0, 0)]
        span = rest[-1][0] - first[0] if rest else 0.0
        return sum(events for _, events in rest) / span if span > 0 else None

    def close(self) -> None:
        """Kills whoever is left."""
        for worker in self.workers:
            if worker.running():
                self._lose(worker)
            worker.process.kill()
            worker.process.wait()
            worker.pipe.close()

    def _take(self, worker: Worker, message: object) -> None:
        worker.heard = time.monotonic()
        if isinstance(message, Pulse):
            worker.pulse = message
            self.recent_ttft_ns += message.ttft_ns
            self._recent_events.append((worker.heard, message.text_events))
        elif isinstance(message, Facts):
            worker.facts = message
        else:
            worker.ready = message == READY

    def _send(self, worker: Worker, message: object) -> None:
        try:
            worker.pipe.send(message)
        except OSError:
            self._lose(worker)

    def _lose(self, worker: Worker) -> None:
        worker.lost_at_ns = time.monotonic_ns()
        worker.process.kill()
