"""One worker process: takes its share over a pipe, runs the window, leaves records in a folder.

Talk over the pipe: a Share in, READY out, t0 in, Pulses out, at the end Facts out; anything in after t0
means stop. The worker dies with its parent and leaves Ctrl-C to it.
"""

import ctypes
import gc
import resource
import select
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness.apis import APIS
from harness.host import descriptors
from harness.host.heartbeat import Heartbeat, suspended_ns
from harness.host.helper_process import in_words, open_descriptors, peak_rss_bytes, set_up
from harness.load.balance import balancer_of
from harness.load.bounds import Limits
from harness.load.carrier import Carrier
from harness.load.connection_pool import ConnectionPool
from harness.load.dispatcher import (
    NEVER,
    ClosedLoopDispatcher,
    Dispatcher,
    OpenLoopDispatcher,
    SessionDispatcher,
)
from harness.load.exchange import Exchange
from harness.load.finalize import Finalized, Finalizer
from harness.load.job import ClosedLoop, LoadJob
from harness.load.poller import PortablePoller
from harness.load.route import find_route
from harness.load.socket_carrier import SocketCarrier
from harness.load.spill import Spill
from harness.load.stamps import StampClock
from harness.load.transport import Transport
from harness.load.turns import TurnBodies
from harness.load.window import CHORE_NS, Window
from harness.load.wire import render, secrets
from harness.records.layout import UNKNOWN, Outcome
from harness.untrusted import Secrets

if TYPE_CHECKING:
    from harness.load.async_carrier import AsyncCarrier

READY = "ready"
_PULSE_EVERY = 250_000_000 // CHORE_NS
_PR_SET_TIMERSLACK = 29
_MOST_MODELS = 4096  # names that are kept: a server may write anything


@dataclass(frozen=True, slots=True)
class Share:
    """One worker's part of a job: `job` has its requests only, `seqs` their numbers in the cell."""

    job: LoadJob
    seqs: NDArray[np.int32]
    worker: int
    folder: Path
    transport: Transport


@dataclass(frozen=True, slots=True)
class Pulse:
    """Counts so far, and what was finished since the last pulse."""

    sent: int
    done: int
    failed: int
    in_flight: int
    ttft_ns: tuple[int, ...]
    text_events: int
    items: int = 0
    timeouts: int = 0  # in a row without a token, up to the last request that ended


@dataclass(frozen=True, slots=True)
class Facts:
    stamp_uncertainty_ns: int
    longest_tick_ns: int
    cpu_s: float
    busy_share: float
    loop_lag_ns: NDArray[np.int64]
    connect_ns: NDArray[np.int64]
    peak_rss_bytes: int
    gc_collections: int
    waits: int  # context switches it asked for, inside the window
    preemptions: int  # context switches forced on it
    open_descriptors: int | None  # when its window closed
    unstamped_reads: int
    text_events: int
    shared_events: int  # generated events that arrived in one read with the one before
    clock_step_ns: int | None
    clamped_stamps: int
    spread_over_ns: int | None  # from t0; None: the loop does not spread its start
    longest_stall_ns: int  # by which a chore came late: the loop, or the whole process, stood still
    stalls: tuple[tuple[int, int], ...]  # the longer ones: when from t0, how long, ns
    suspended_ns: int | None  # of the machine, inside the window; None: the system does not count it
    stopped: bool
    notes: tuple[str, ...]
    models: dict[str, NDArray[np.int32]]  # numbers in the cell of the requests whose answers name each


class Tally:
    """Settles exchanges into the spill and keeps the counts of the pulses."""

    def __init__(self, finalizer: Finalizer, spill: Spill, turns: TurnBodies | None = None) -> None:
        """`turns`: of chats, whose later turns carry the answers."""
        self.done = self.failed = self.text_events = self.shared_events = self.clamped = self.items = 0
        self.timeouts = 0  # in a row, without a token
        self.models: dict[str, array[int]] = {}  # places in the share, by each model that the answer names
        self._finalizer, self._spill, self._turns = finalizer, spill, turns
        self._ttfts: deque[int] = deque(maxlen=256)
        self._events_sent = self._items_sent = 0

    def finalize(self, exchange: Exchange) -> Finalized:
        finalized = self._read(exchange)
        self._spill.add(finalized)
        self.done += finalized.outcome in (Outcome.OK, Outcome.ABANDONED)
        self.failed += finalized.outcome not in (Outcome.OK, Outcome.ABANDONED, Outcome.CANCELLED)
        if finalized.ttft_ns != UNKNOWN or finalized.outcome not in (Outcome.TIMEOUT, Outcome.ABANDONED):
            self.timeouts = 0
        elif finalized.outcome is Outcome.TIMEOUT:  # who hangs up says nothing of whether a token would come
            self.timeouts += 1
        self.clamped += finalized.clamped
        self.items += finalized.items
        stamps = finalized.generated_ns
        self.text_events += len(stamps)
        self.shared_events += int(np.count_nonzero(stamps[1:] == stamps[:-1]))
        if finalized.ttft_ns != UNKNOWN:
            self._ttfts.append(finalized.ttft_ns)
        for model in finalized.models:
            if model in self.models or len(self.models) < _MOST_MODELS:
                self.models.setdefault(model, array("i")).append(exchange.index)
        return finalized

    def _read(self, exchange: Exchange) -> Finalized:
        try:
            return self._finalize(exchange)
        except Exception as error:  # one answer that nobody foresaw takes no other record with it
            exchange.answer, exchange.failure = None, Outcome.MALFORMED
            exchange.error = f"the answer cannot be read: {type(error).__name__}: {error}"
            return self._finalize(exchange)

    def _finalize(self, exchange: Exchange) -> Finalized:
        finalized = self._finalizer.finalize(exchange)
        if self._turns is not None:
            self._turns.keep(exchange.index, finalized)
        return finalized

    def pulse(self, sent: int, in_flight: int) -> Pulse:
        events, self._events_sent = self.text_events - self._events_sent, self.text_events
        items, self._items_sent = self.items - self._items_sent, self.items
        ttfts = tuple(self._ttfts)
        self._ttfts.clear()
        return Pulse(sent, self.done, self.failed, in_flight, ttfts, events, items, self.timeouts)


def run_share(share: Share, pipe: "Connection[Any, Any]") -> Facts:
    job = share.job
    clock = StampClock() if share.transport is Transport.KERNEL_STAMPS else None
    limits = Limits(
        int(job.request_timeout_s * 1e9),
        int(job.drain_timeout_s * 1e9),
        () if job.patience_ns is None else job.patience_ns.tolist(),
    )
    notes = [_allow(_connections_wanted(job))]
    chats = job.sessions if job.sessions is not None and not job.sessions.after else None
    turns = TurnBodies(job.bodies, chats, APIS[job.api]) if chats is not None else None
    window = Window(share.seqs.tolist(), balancer_of(job), limits)
    carrier = _make_carrier(share, turns or job.bodies, clock, window)
    notes.append(carrier.open_ahead(_open_ahead(job)))
    pipe.send(READY)
    t0: int = pipe.recv()
    spill = Spill(share.folder)
    tally = Tally(_make_finalizer(share, clock, t0), spill, turns)
    dispatcher = _make_dispatcher(job, t0)
    finalize: Callable[[Exchange], object] = tally.finalize
    if isinstance(dispatcher, SessionDispatcher):
        finalize = partial(_follow_up, tally, dispatcher)
    chores, heart = 0, Heartbeat(CHORE_NS)

    def chore() -> bool:
        nonlocal chores
        heart.beat()
        chores += 1
        if chores % _PULSE_EVERY == 0:
            spill.flush()
            pipe.send(tally.pulse(window.sent, window.in_flight))
        return pipe.poll()

    gc.collect()
    gc.freeze()
    if share.transport is not Transport.ASYNCIO:  # tasks and their exceptions do make cycles
        gc.disable()
    collections, cpu, started = _gc_collections(), time.process_time(), time.monotonic()
    switches, suspended = resource.getrusage(resource.RUSAGE_SELF), suspended_ns()
    try:
        stopped = window.run(carrier, dispatcher, finalize, chore)
    finally:
        spill.flush()  # what is recorded so far outlives whatever ends the window
    cpu, wall = time.process_time() - cpu, time.monotonic() - started
    suspended = _since(suspended, suspended_ns())
    collections = _gc_collections() - collections
    switched, descriptors = resource.getrusage(resource.RUSAGE_SELF), open_descriptors()
    gc.enable()
    spill.close()
    carrier.close()
    pipe.send(tally.pulse(window.sent, 0))
    return Facts(
        stamp_uncertainty_ns=clock.uncertainty_ns() if clock is not None else 0,
        longest_tick_ns=carrier.counters.longest_tick_ns,
        cpu_s=cpu,
        busy_share=cpu / wall,
        loop_lag_ns=np.asarray(carrier.counters.loop_lag_ns, np.int64),
        connect_ns=np.asarray(carrier.counters.connect_ns, np.int64),
        peak_rss_bytes=peak_rss_bytes(),
        gc_collections=collections,
        waits=switched.ru_nvcsw - switches.ru_nvcsw,
        preemptions=switched.ru_nivcsw - switches.ru_nivcsw,
        open_descriptors=descriptors,
        unstamped_reads=carrier.counters.unstamped_reads,
        text_events=tally.text_events,
        shared_events=tally.shared_events,
        clock_step_ns=clock.step_ns if clock is not None else None,
        clamped_stamps=tally.clamped,
        spread_over_ns=_since(t0, dispatcher.spread.over_at) if dispatcher.spread is not None else None,
        longest_stall_ns=heart.longest_ns,
        stalls=heart.stalls(t0),
        suspended_ns=suspended,
        stopped=stopped,
        notes=tuple(filter(None, notes)),
        models={name: share.seqs[np.asarray(places)] for name, places in tally.models.items()},
    )


def _since(before: int | None, moment: int | None) -> int | None:
    return None if before is None or moment is None else moment - before


def _follow_up(tally: Tally, dispatcher: SessionDispatcher, exchange: Exchange) -> None:
    whole = tally.finalize(exchange).outcome is Outcome.OK
    dispatcher.answered(exchange.index, exchange.sent, exchange.end, whole=whole)


def _make_carrier(share: Share, bodies: Sequence[bytes], clock: StampClock | None, window: Window) -> Carrier:
    job = share.job
    if share.transport is Transport.ASYNCIO:
        from harness.load.task_carrier import TaskCarrier  # uvloop and httpx are loaded where they are used

        return TaskCarrier(_make_async_carrier(job), bodies, job.answer_bytes, window)
    poller = PortablePoller() if share.transport is Transport.POLL else select.epoll()
    wires = [render(url, job, bodies, share.seqs.tolist()) for url in job.urls]
    routes = [find_route(url, job.access.certificates) for url in job.urls]
    pool = ConnectionPool(poller, routes, kernel=clock is not None, reuse=job.promised.keeps_connection)
    return SocketCarrier(wires, pool, clock, job.answer_bytes, window)


def _make_async_carrier(job: LoadJob) -> "AsyncCarrier":
    if job.http2:
        from harness.load.http2 import Http2Carrier  # h2 comes with an extra

        return Http2Carrier(job, job.request_timeout_s)
    from harness.load.httpx_carrier import HttpxCarrier

    return HttpxCarrier(job)


def _make_finalizer(share: Share, clock: StampClock | None, t0: int) -> Finalizer:
    job = share.job
    return Finalizer(
        t0,
        clock.to_monotonic_many if clock is not None else partial(np.asarray, dtype=np.int64),
        Secrets(tuple(secret for url in job.urls for secret in secrets(url, job.access))),
        job.phases(share.seqs),
        share.worker,
        closed_loop=isinstance(job.schedule, ClosedLoop),
        promised=job.promised,
        api=APIS[job.api],
        items=job.items,
        dimensions=job.dimensions,
    )


def _make_dispatcher(job: LoadJob, t0: int) -> Dispatcher:
    close_at = NEVER if job.duration_s is None else t0 + int(job.duration_s * 1e9)
    if job.sessions is not None:
        return SessionDispatcher(job.schedule, job.sessions, t0, close_at)
    if isinstance(job.schedule, ClosedLoop):
        return ClosedLoopDispatcher(job.schedule, len(job.bodies), t0, close_at)
    return OpenLoopDispatcher(job.schedule, t0, close_at)


def _gc_collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _connections_wanted(job: LoadJob) -> int:
    if not isinstance(job.schedule, ClosedLoop):
        return min(job.schedule.max_in_flight, len(job.bodies))
    each = 1
    if job.sessions is not None and job.sessions.after:  # at most all of a session at once
        each = int(np.unique(job.sessions.session, return_counts=True)[1].max(initial=1))
    return min(job.schedule.concurrency * each, len(job.bodies))


def _open_ahead(job: LoadJob) -> int:
    """Connections to open: all slots of a closed loop; the arrivals of its busiest second for an open one."""
    wanted = _connections_wanted(job)
    if isinstance(job.schedule, ClosedLoop):
        wanted = min(wanted, job.schedule.concurrency)
    else:
        intended = job.schedule.intended_ns
        in_a_second = np.searchsorted(intended, intended + 1_000_000_000) - np.arange(len(intended))
        wanted = min(wanted, int(in_a_second.max(initial=0)))
    return wanted


def _allow(connections: int) -> str:
    """Raises the limit of open files for the connections; returns what is short."""
    if (fit := descriptors.allow(connections)) >= connections:
        return ""
    return f"{connections} connections wanted, and the hard limit of open files allows {max(0, fit)}"


def main() -> None:
    descriptor, parent = map(int, sys.argv[1:])
    set_up(parent)
    if sys.platform == "linux":  # sleeps end when asked, not up to 50 microseconds later
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    with in_words("load worker"), Connection(descriptor) as pipe:
        pipe.send(run_share(pipe.recv(), pipe))
