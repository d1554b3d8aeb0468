"""One worker process: takes its share over a pipe, runs the window, leaves records in a folder.

The worker dies with its parent and leaves Ctrl-C to it.
"""

import ctypes
import gc
import resource
import select
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.apis import APIS
from harness.host import descriptors
from harness.host.heartbeat import Heartbeat, suspended_ns
from harness.host.helper_process import in_words, open_descriptors, peak_rss_bytes, set_up
from harness.load.balance import balancer_of
from harness.load.bounds import Limits
from harness.load.carrier import Carrier
from harness.load.connection_pool import ConnectionPool
from harness.load.dispatcher import (
    ClosedLoopDispatcher,
    Closing,
    Dispatcher,
    OpenLoopDispatcher,
    SessionDispatcher,
)
from harness.load.exchange import Exchange
from harness.load.finalize import Finalizer
from harness.load.job import ClosedLoop, LoadJob, OpenLoop
from harness.load.messages import READY, Facts, Share
from harness.load.poller import PortablePoller
from harness.load.route import find_route
from harness.load.socket_carrier import SocketCarrier
from harness.load.spill import Spill
from harness.load.stamps import StampClock
from harness.load.tally import Tally
from harness.load.transport import Transport
from harness.load.turns import TurnBodies
from harness.load.window import CHORE_NS, Window
from harness.load.wire import render, secrets
from harness.records.layout import Outcome
from harness.untrusted import Secrets

if TYPE_CHECKING:
    from harness.load.async_carrier import AsyncCarrier

_PULSE_EVERY = 250_000_000 // CHORE_NS
_PR_SET_TIMERSLACK = 29
_ON_TASKS = (Transport.HTTP2, Transport.HTTPX)


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
    dispatcher = make_dispatcher(share, t0)
    finalize: Callable[[Exchange], object] = tally.finalize
    if isinstance(dispatcher, SessionDispatcher):
        finalize = partial(_follow_up, tally, dispatcher)
    chores, heart, room = 0, Heartbeat(CHORE_NS), select.poll()
    room.register(pipe, select.POLLOUT)

    def chore() -> bool:
        nonlocal chores
        heart.beat()
        chores += 1
        if chores % _PULSE_EVERY == 0:
            spill.flush()
            if room.poll(0):  # a parent that does not read, such as a stopped one, holds up no load
                pipe.send(tally.pulse(window.sent, window.in_flight))
        return pipe.poll()

    gc.collect()
    gc.freeze()
    if share.transport not in _ON_TASKS:  # tasks and their exceptions do make cycles
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
    if share.transport in _ON_TASKS:
        from harness.load.task_carrier import TaskCarrier  # uvloop is loaded where it is used

        return TaskCarrier(_make_async_carrier(share), bodies, job.answer_bytes, window)
    poller = PortablePoller() if share.transport is Transport.POLL else select.epoll()
    wires = [render(url, job, bodies, share.seqs.tolist()) for url in job.urls]
    routes = [find_route(url, job.access.certificates) for url in job.urls]
    pool = ConnectionPool(poller, routes, kernel=clock is not None, reuse=job.promised.keeps_connection)
    return SocketCarrier(wires, pool, clock, job.answer_bytes, window)


def _make_async_carrier(share: Share) -> "AsyncCarrier":
    if share.transport is Transport.HTTP2:
        from harness.load.http2 import Http2Carrier  # h2 comes with an extra

        return Http2Carrier(share.job, share.job.request_timeout_s)
    from harness.load.httpx_carrier import HttpxCarrier

    return HttpxCarrier(share.job)


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


def make_dispatcher(share: Share, t0: int) -> Dispatcher:
    """A duration begins at one time in all shares of an open loop, and in each closed one on its own."""
    job = share.job
    lasts = None if job.duration_s is None else int(job.duration_s * 1e9)
    begin_ns = job.schedule.measured_ns if isinstance(job.schedule, OpenLoop) else None
    if begin_ns is None:
        closing = Closing(t0, lasts, int(np.searchsorted(share.seqs, job.warmup_requests)))
    else:
        closing = Closing(t0 + begin_ns, lasts)
    if job.sessions is not None:
        return SessionDispatcher(job.schedule, job.sessions, t0, closing)
    if isinstance(job.schedule, ClosedLoop):
        return ClosedLoopDispatcher(job.schedule, len(job.bodies), t0, closing)
    return OpenLoopDispatcher(job.schedule, t0, closing)


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
