"""The workers of one window on several nodes: followed by remote calls, started and stamped on one clock."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from harness.cluster.clocks import Line, Ping, fit
from harness.cluster.node import About, Lost
from harness.cluster.pings import Clock
from harness.load.messages import Share
from harness.load.spill import FILES, move
from harness.load.worker_pool import Worker, WorkerPool, listened_s
from harness.model import LoadNode
from harness.records.series import Samples, Telemetry, node_series

_START_AHEAD_NS = 500_000_000  # so that every node and worker knows t0 before it
_TELL_NS = 2_000_000  # more for each node
_PINGS, _PINGS_DURING = 100, 5
_PINGED_AT_ONCE = 8  # more would wait for each other here, and their round trips with them
_PING_EVERY_S = 1.0
_HEAR_S = 0.5
_GATHER_S = 0.1  # of what the workers of a node say: each answer costs the coordinator a remote call
_FEW_NODES = 50  # more of them are heard the less often
_SILENCE_S = 30.0
_CALL_S = 30.0
_CHUNK_BYTES = 16 << 20

Call = Callable[..., "Future[Any]"]  # name of a method of Node, and its arguments


@dataclass(slots=True)
class RemoteNode:
    """One load node, as the coordinator sees it."""

    about: About
    call: Call
    clock: Clock
    lost: str | None = None  # why

    @property
    def name(self) -> str:
        return f"{self.about.hostname} ({self.about.address})"


@dataclass(slots=True)
class _Part:
    """A node in this window."""

    node: RemoteNode
    workers: list[Worker] = field(default_factory=list)
    bursts: list[list[Ping]] = field(default_factory=list)
    line: Line | None = None
    t0: int = 0  # as it was given, on its own clock
    lost: str | None = None  # in this window, and why
    skew_ns: int | None = None  # how much later than t0 it started
    hearing: "Future[Any] | None" = None
    silent_s: float = 0.0  # that was waited for it

    def running(self) -> bool:
        return self.node.lost is None and any(worker.running() for worker in self.workers)


class ClusterWorkerPool(WorkerPool[Worker]):
    def __init__(self, nodes: Sequence[RemoteNode], sample_hz: float = 0.0) -> None:
        """`sample_hz`: of each node's machine, during its load; 0: none is sampled."""
        super().__init__()
        self._samples: dict[str, Samples] = {}
        self._gather_s = _GATHER_S * max(1.0, len(nodes) / _FEW_NODES)
        self._parts = [_Part(node) for node in nodes]
        self._pinged = threading.Event()  # enough: the pingers end
        self._pingers: list[threading.Thread] = []  # one of each node: a frozen one holds up no other
        for part in self._parts:
            self._ask(part, "open", sample_hz)

    def start(self, share: Share) -> None:
        part = self._parts[share.worker % len(self._parts)]
        worker = Worker(share=share)
        self.workers.append(worker)
        part.workers.append(worker)
        bare = replace(share, job=replace(share.job, bodies=()))
        self._ask(part, "start", bare, list(share.job.bodies))

    def begin(self) -> int:
        self._burst()
        for part in self._alive():
            part.line = fit(part.bursts)
        t0 = time.monotonic_ns() + _START_AHEAD_NS + _TELL_NS * len(self._parts)
        refs = []
        for part in self._alive():
            assert part.line is not None
            part.t0 = part.line.on_node(t0)
            refs.append((part, part.node.call("begin", part.t0)))
        for part, call in refs:
            self._result(part, call)
        for part in self._alive():
            self._pingers.append(threading.Thread(target=self._ping_on, args=(part,), daemon=True))
            self._pingers[-1].start()
        return t0

    def stop(self) -> None:
        for part in self._alive():
            part.node.call("stop")

    def listen(self, timeout_s: float) -> None:
        parts = [part for part in self._parts if part.running()]
        for part in parts:
            if part.hearing is None:
                part.hearing, part.silent_s = part.node.call("hear", _HEAR_S, self._gather_s), 0.0
        began_s = time.monotonic()
        done, _ = wait([part.hearing for part in parts if part.hearing], timeout_s, FIRST_COMPLETED)
        waited_s = listened_s(began_s, timeout_s)
        for part in parts:
            part.silent_s += waited_s
            if part.hearing in done:
                self._take_from(part)
            elif part.silent_s > _SILENCE_S:
                self._lose_part(part, f"silent for {_SILENCE_S:.0f} s")

    def collect(self, t0: int) -> int:
        self._end_pinging()
        for part in self._alive():
            self._ask(part, "end")
        self._burst()
        base = min((part.skew_ns for part in self._timed(t0) if part.skew_ns is not None), default=0)
        for part in self._alive():
            for worker in part.workers:
                self._fetch(part, worker, t0, base)
            self._fetch_samples(part, t0, base)
        return t0 + base

    def close(self) -> None:
        self._end_pinging()
        for part, call in [(part, part.node.call("close")) for part in self._alive()]:
            try:
                call.result(_CALL_S)
            except Exception as error:  # its records are here: only the next window misses it
                part.node.lost = reason_of(error)
        for worker in self.workers:
            if worker.running():
                self.lose(worker)

    def telemetry(self) -> Telemetry:
        """Telemetry of the nodes' machines, on the common clock."""
        return Telemetry(self._samples)

    def nodes(self) -> tuple[LoadNode, ...]:
        """What cell.json keeps of each node."""
        return tuple(map(_facts_of, self._parts))

    def _alive(self) -> list[_Part]:
        return [part for part in self._parts if part.node.lost is None]

    def _take_from(self, part: _Part) -> None:
        assert part.hearing is not None
        messages = self._result(part, part.hearing) or ()
        part.hearing = None
        for number, message in messages:
            worker = next(candidate for candidate in part.workers if candidate.share.worker == number)
            if isinstance(message, Lost):
                self.lose(worker)
            else:
                self.take(worker, message)

    def _ask(self, part: _Part, method: str, *arguments: object) -> Any:
        return None if part.node.lost else self._result(part, part.node.call(method, *arguments))

    def _result(self, part: _Part, call: "Future[Any]") -> Any:
        """None for a node that is lost."""
        try:
            return call.result(_CALL_S)
        except Exception as error:  # whatever a remote call says, the node did not do it
            self._lose_part(part, reason_of(error))
            return None

    def _lose_part(self, part: _Part, why: str) -> None:
        part.lost = part.node.lost = why
        part.hearing = None
        for worker in part.workers:
            worker.facts = None
            self.lose(worker)

    def _burst(self) -> None:
        alive = self._alive()
        with ThreadPoolExecutor(_PINGED_AT_ONCE) as pool:
            for part, pings in zip(alive, pool.map(lambda p: p.node.clock.burst(_PINGS), alive), strict=True):
                if pings:
                    part.bursts.append(pings)
                else:
                    self._lose_part(part, "its clock does not answer")

    def _ping_on(self, part: _Part) -> None:
        while not self._pinged.wait(_PING_EVERY_S) and not part.node.lost:
            if pings := part.node.clock.burst(_PINGS_DURING):
                part.bursts.append(pings)

    def _end_pinging(self) -> None:
        """Waits for the pingers: the next window asks over the same connections."""
        self._pinged.set()
        for pinger in self._pingers:
            pinger.join()

    def _timed(self, t0: int) -> list[_Part]:
        """Nodes that started, with what is known of their clocks after the window."""
        parts = [part for part in self._parts if part.t0]
        for part in parts:
            part.line = fit(part.bursts)
            part.skew_ns = part.t0 - part.line.on_node(t0)
        return parts

    def _fetch(self, part: _Part, worker: Worker, t0: int, base: int) -> None:
        """The records of one worker into its folder, on the common clock."""
        line = part.line
        if line is None or part.node.lost:
            return
        folder, number = worker.share.folder, worker.share.worker
        for name in FILES:
            with (folder / name).open("wb") as file:
                while data := self._ask(part, "read", number, name, file.tell(), _CHUNK_BYTES):
                    file.write(data)
        if part.node.lost:
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
        else:
            move(folder, lambda since_t0: line.shift(t0, part.t0, since_t0) - base)

    def _fetch_samples(self, part: _Part, t0: int, base: int) -> None:
        if part.line is None:
            return
        found: dict[str, Samples] = self._ask(part, "samples") or {}
        for name, (since_t0, values) in found.items():
            at_ns = since_t0 + part.line.shift(t0, part.t0, since_t0) - base
            self._samples[f"{node_series(part.node.about.address)}.{name}"] = Samples(at_ns, values)


def _facts_of(part: _Part) -> LoadNode:
    line, about = part.line, part.node.about
    facts = [worker.facts for worker in part.workers if worker.facts]
    connects = [int(fact.connect_ns.min()) for fact in facts if len(fact.connect_ns)]
    steps = [fact.clock_step_ns for fact in facts if fact.clock_step_ns is not None]
    return LoadNode(
        name=about.hostname,
        address=about.address,
        kernel=about.kernel,
        cpus=about.cpus,
        workers=tuple(worker.share.worker for worker in part.workers),
        lost=part.lost,
        clock_offset_ms=_ms(line.offset) if line else None,
        clock_uncertainty_ms=_ms(line.uncertainty_ns) if line else None,
        drift_ppm=line.drift * 1e6 if line else None,
        rtt_ms=_ms(line.rtt_ns) if line else None,
        pings=line.pings if line else 0,
        path_rtt_ms=_ms(min(connects, default=None)),
        start_skew_ms=_ms(part.skew_ns),
        longest_stall_ms=_ms(max((fact.longest_stall_ns for fact in facts), default=None)),
        clock_step_ms=_ms(max(steps, default=None)),
    )


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6


def reason_of(error: BaseException) -> str:
    """The first line that says something, of what a remote call raised."""
    error = getattr(error, "cause", None) or error  # Ray's own text begins with a traceback of the node
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
