"""The part of a load node, inside a Ray actor: workers of its machine, driven from elsewhere."""

import os
import platform
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from harness import __version__
from harness.cluster.pings import ClockServer
from harness.errors import refused
from harness.host import scratch
from harness.host.address import port_of
from harness.host.cpus import usable_cpus
from harness.load.bodies import write_bodies
from harness.load.job import LoadJob
from harness.load.messages import Share
from harness.load.spill import FILES
from harness.load.transport import Transport, choose_transport
from harness.load.worker_pool import LocalWorkerPool, Process
from harness.records.series import Samples, Telemetry
from harness.sampling.job import Watch
from harness.sampling.watcher import Watcher

_LISTEN_S = 0.02  # an order from the coordinator waits so long at most
_REACH_S = 5.0


@dataclass(frozen=True, slots=True)
class About:
    """The node's identity, and where its clock can be asked for."""

    address: str
    hostname: str
    version: str  # of this package
    kernel: str
    cpus: int
    pid: int  # of the actor
    clock_port: int


@dataclass(frozen=True, slots=True)
class Reach:
    transport: Transport
    trouble: str = ""


class Lost:
    """Takes the place of a message: the worker died."""


Message = tuple[int, object]  # number of the worker, and what it sent


class _KeepingWorkerPool(LocalWorkerPool):
    """Keeps the workers' messages for the coordinator."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: deque[Message] = deque()

    def take(self, worker: Process, message: object) -> None:
        super().take(worker, message)
        self.messages.append((worker.share.worker, message))

    def lose(self, worker: Process) -> None:
        super().lose(worker)
        self.messages.append((worker.share.worker, Lost()))


class Node:
    """Called from threads of Ray. The worker pool has one of its own, since its workers end with it."""

    def __init__(self, address: str, token: bytes) -> None:
        scratch.clear()
        self._clock = ClockServer(address, token)
        self._about = About(
            address=address,
            hostname=socket.gethostname(),
            version=__version__,
            kernel=platform.release(),
            cpus=usable_cpus(),
            pid=os.getpid(),
            clock_port=self._clock.port,
        )
        self._window: _Window | None = None

    def about(self) -> About:
        return self._about

    def reach(self, job: LoadJob) -> Reach:
        """How such a job would leave this node; its bodies are not looked at."""
        for url in job.urls:
            host, port = urlsplit(url).hostname or "", port_of(url)
            try:
                socket.create_connection((host, port), _REACH_S).close()
            except OSError as error:
                return Reach(choose_transport(job)[0], f"cannot reach {host}:{port}: {error}")
        return Reach(choose_transport(job)[0])

    def open(self, sample_hz: float) -> None:
        """Begins a new window and forgets the one before. Rate 0: this machine is not sampled."""
        self.close()
        self._window = _Window(sample_hz)

    def start(self, share: Share, bodies: Sequence[bytes]) -> None:
        self._now().start(share, bodies)

    def begin(self, t0: int) -> None:
        self._now().begin_at = t0

    def stop(self) -> None:
        self._now().stopping.set()

    def hear(self, wait_s: float, gather_s: float) -> list[Message]:
        """Messages of the workers since the last call; waits up to `wait_s` for one, then `gather_s` for
        more.

        Raises RuntimeError, as `end` does, with the reason if the window failed, for example of a full disk.
        """
        return self._now().hear(wait_s, gather_s)

    def end(self) -> None:
        """Kills the workers that still run. Records stay until the window is closed."""
        self._now().end()

    def samples(self) -> dict[str, Samples]:
        """Samples of this machine while the window was open, on its own clock from t0."""
        return dict(self._now().telemetry.series)

    def read(self, worker: int, name: str, offset: int, most: int) -> bytes:
        """Reads a part of one of `FILES` of a worker."""
        return self._now().read(worker, name, offset, most)

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def _now(self) -> "_Window":
        if self._window is None:
            raise RuntimeError("no window is open")
        return self._window


class _Window:
    def __init__(self, sample_hz: float) -> None:
        self.telemetry = Telemetry()
        # Neither is the engine here nor its GPUs.
        watch = Watch(bench_pid=os.getpid(), hz=sample_hz, engine_here=False) if sample_hz else None
        self._watcher = Watcher(watch)
        self._shares: deque[tuple[Share, Sequence[bytes]]] = deque()
        self.begin_at: int | None = None
        self.stopping, self._ending, self._closing = (threading.Event() for _ in range(3))
        self._worker_pool = _KeepingWorkerPool()
        self._folder: Path | None = None
        self._ended = threading.Event()
        self._trouble = ""  # why it failed
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def start(self, share: Share, bodies: Sequence[bytes]) -> None:
        self._shares.append((share, bodies))

    def hear(self, wait_s: float, gather_s: float) -> list[Message]:
        give_up = time.monotonic() + wait_s
        messages = self._worker_pool.messages
        while not messages and not self._trouble and time.monotonic() < give_up:
            time.sleep(_LISTEN_S)
        self._check()
        if messages:
            time.sleep(gather_s)
        return [messages.popleft() for _ in range(len(messages))]

    def end(self) -> None:
        self._ending.set()
        self._ended.wait()
        self._check()

    def read(self, worker: int, name: str, offset: int, most: int) -> bytes:
        if name not in FILES or self._folder is None:
            raise ValueError(name)
        try:
            with (self._folder / str(worker) / name).open("rb") as file:
                file.seek(offset)
                return file.read(most)
        except FileNotFoundError:  # it died before its window opened
            return b""

    def close(self) -> None:
        self._ending.set()
        self._closing.set()
        self._thread.join()

    def _check(self) -> None:
        if self._trouble:
            raise RuntimeError(self._trouble)

    def _run(self) -> None:
        try:
            with scratch.folder("load") as self._folder, self._watcher:
                try:
                    self._lead(self._folder)
                    self.telemetry = self._watcher.stop(self.begin_at or 0)
                finally:
                    self._worker_pool.close()
                self._ended.set()
                self._closing.wait()
        except Exception as error:  # the coordinator hears it; nobody waits for this thread
            self._trouble = str(refused(error) or f"{type(error).__name__}: {error}")
            self._ended.set()

    def _lead(self, folder: Path) -> None:
        worker_pool, begun, stopped = self._worker_pool, False, False
        while not self._ending.is_set():
            while self._shares:
                worker_pool.start(_here(*self._shares.popleft(), folder))
            if self.begin_at is not None and not begun:
                worker_pool.begin_at(self.begin_at)
                begun = True
            if self.stopping.is_set() and not stopped:
                worker_pool.stop()
                stopped = True
            if worker_pool.running():
                worker_pool.listen(_LISTEN_S)
            else:
                self._ending.wait(_LISTEN_S)


def _here(share: Share, bodies: Sequence[bytes], folder: Path) -> Share:
    """The same share with its files on this machine."""
    own = folder / str(share.worker)
    own.mkdir()
    return replace(share, folder=own, job=replace(share.job, bodies=write_bodies(own / "bodies", bodies)))
