"""A job from start to result: workers started together, followed, and merged."""

import statistics
import threading
import time
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.apis import APIS
from harness.host import scratch
from harness.load.job import (
    ClientFacts,
    ClosedLoop,
    LoadJob,
    LoadResult,
    OpenLoop,
    Progress,
    ProgressSink,
)
from harness.load.sharding import choose_workers, split
from harness.load.spill import merge
from harness.load.transport import Transport, choose_transport
from harness.load.worker import Share
from harness.load.worker_pool import LocalWorkerPool, Worker, WorkerPool
from harness.records.layout import UNKNOWN, Outcome, Phase, Records, empty_requests

_LISTEN_S = 0.1
_STOP_GRACE_S = 10.0
_SOCKET_ERRORS = (Outcome.CONNECT_FAILED, Outcome.RESET, Outcome.TRUNCATED)
_LOST = "the load worker died"


def run_load(
    job: LoadJob,
    progress: ProgressSink | None = None,
    stop: threading.Event | None = None,
    worker_pool: WorkerPool[Any] | None = None,
) -> LoadResult:
    """Blocks until the window is closed and every request in it has ended.

    `stop` ends the window early: what is in flight becomes CANCELLED and everything so far is returned.
    Requests that never became due have no record; `unsent` counts them. `worker_pool`: a new one that runs
    the workers elsewhere; None: on this machine.
    """
    stop = stop or threading.Event()
    transport, reason = choose_transport(job)
    worker_pool = worker_pool or LocalWorkerPool()
    with scratch.folder("load") as root:
        try:
            for index, (part, seqs) in enumerate(split(job, job.workers or choose_workers(job))):
                folder = root / str(index)
                folder.mkdir()
                worker_pool.start(Share(part, seqs, index, folder, transport))
            while not stop.is_set() and not all(worker.ready for worker in worker_pool.running()):
                worker_pool.listen(_LISTEN_S)
            unix = time.time_ns() - time.monotonic_ns()
            t0 = worker_pool.begin()
            was_stopped = _follow(worker_pool, job, t0, progress, stop)
            t0 = worker_pool.collect(t0)
        finally:
            worker_pool.close()
        lost = [_missing(worker, job, t0) for worker in worker_pool.workers if worker.facts is None]
        folders = [worker.share.folder for worker in worker_pool.workers]
        records = merge(folders, np.concatenate([empty_requests(0), *lost]), _LOST)
    return LoadResult(
        t0_monotonic_ns=t0,
        t0_unix_ns=t0 + unix,
        records=records,
        client=_client_facts(worker_pool.workers, transport, reason, records),
        interrupted=was_stopped and any(w.facts is None or w.facts.stopped for w in worker_pool.workers),
        unsent=len(job.bodies) - len(records.requests),
    )


def _follow(
    worker_pool: WorkerPool[Any], job: LoadJob, t0: int, progress: ProgressSink | None, stop: threading.Event
) -> bool:
    """Follows the workers until none runs; True if they were asked to stop before that."""
    give_up = None
    while worker_pool.running():
        worker_pool.listen(_LISTEN_S)
        if progress is not None and time.monotonic_ns() > t0:
            progress(_progress(worker_pool, job, t0))
        if stop.is_set() and give_up is None:
            give_up = time.monotonic() + _STOP_GRACE_S
            worker_pool.stop()
        elif give_up is not None and time.monotonic() > give_up:
            break
    return give_up is not None


def _progress(worker_pool: WorkerPool[Any], job: LoadJob, t0: int) -> Progress:
    streamed, recent = APIS[job.api].gives == "text", worker_pool.recent_per_s()
    pulses = [worker.pulse for worker in worker_pool.workers if worker.pulse is not None]
    return Progress(
        elapsed_s=(time.monotonic_ns() - t0) / 1e9,
        planned=len(job.bodies),
        sent=sum(pulse.sent for pulse in pulses),
        done=sum(pulse.done for pulse in pulses),
        failed=sum(pulse.failed for pulse in pulses),
        in_flight=sum(pulse.in_flight for pulse in pulses),
        recent_ttft_ms=statistics.median(worker_pool.recent_ttft_ns) / 1e6
        if worker_pool.recent_ttft_ns
        else None,
        recent_output_tokens_per_s=recent[0] if recent and streamed else None,
        recent_items_per_s=recent[1] if recent and not streamed else None,
        duration_s=job.duration_s,
    )


def _missing(worker: Worker, job: LoadJob, t0: int) -> NDArray[Any]:
    """Rows for what a lost worker had sent, or had to send, and did not leave a record of."""
    seqs, schedule, lost_at = worker.share.seqs, worker.share.job.schedule, worker.lost_at_ns
    assert lost_at is not None
    rows = empty_requests(len(seqs))
    rows["seq"] = seqs
    rows["worker"] = worker.share.worker
    rows["phase"] = np.where(seqs < job.warmup_requests, Phase.WARMUP, Phase.MEASURE)
    rows["outcome"] = Outcome.LOST
    rows["end_ns"] = lost_at - t0
    if isinstance(schedule, OpenLoop) and worker.share.job.sessions is None:
        rows["intended_ns"] = rows["start_ns"] = schedule.intended_ns
        return rows[schedule.intended_ns <= lost_at - t0]
    return rows[: worker.pulse.sent if worker.pulse is not None else 0]


def _held_at_cap(workers: Sequence[Worker], rows: NDArray[Any]) -> NDArray[np.bool_]:
    """Requests that waited because they were due while their worker's share of the cap was used up."""
    held = np.zeros(len(rows), bool)
    for worker in workers:
        schedule = worker.share.job.schedule
        if isinstance(schedule, OpenLoop) and schedule.over_cap == "wait":
            own = (rows["worker"] == worker.share.worker) & (rows["sent_ns"] != UNKNOWN)
            left, due = rows["sent_ns"][own], rows["intended_ns"][own]
            sent, ended = np.sort(left), np.sort(rows["end_ns"][own])
            when_due = np.searchsorted(sent, due) - np.searchsorted(ended, due, side="right")
            when_sent = np.arange(1, len(sent) + 1) - np.searchsorted(ended, sent, side="right")
            filled = sent[when_sent >= schedule.max_in_flight]
            filled_meanwhile = np.searchsorted(filled, left) > np.searchsorted(filled, due)
            held[own] = (when_due >= schedule.max_in_flight) | filled_meanwhile
    return held


def _sum(counts: list[int | None]) -> int | None:
    return None if None in counts else sum(filter(None, counts))


def _largest(values: list[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _client_facts(
    workers: Sequence[Worker], transport: Transport, reason: str, records: Records
) -> ClientFacts:
    facts = [worker.facts for worker in workers if worker.facts is not None]
    schedule = next((worker.share.job.schedule for worker in workers), None)
    rows = records.requests
    left = rows["sent_ns"] != UNKNOWN
    held = _held_at_cap(workers, rows)
    notes = [reason] if reason else []
    notes += [note for fact in facts for note in fact.notes]
    unstamped, shared = sum(f.unstamped_reads for f in facts), sum(f.shared_events for f in facts)
    text_events = sum(fact.text_events for fact in facts)
    if unstamped:
        notes.append(f"{unstamped} reads came without a kernel stamp and were stamped when read")
    if shared:
        notes.append(f"{shared} of {text_events} text events arrived in one read with the event before")
    return ClientFacts(
        stamp_source="kernel" if transport is Transport.KERNEL_STAMPS else "user",
        stamp_uncertainty_ns=max((fact.stamp_uncertainty_ns for fact in facts), default=0),
        tick_ns=max((fact.longest_tick_ns for fact in facts), default=0),
        workers=len(workers),
        cpu_s=sum(fact.cpu_s for fact in facts),
        busy_share=max((fact.busy_share for fact in facts), default=0.0),
        wall_s=float(rows["end_ns"].max(initial=0)) / 1e9,
        send_lag_ns=(rows["sent_ns"] - rows["intended_ns"] - rows["connect_ns"])[left & ~held],
        merged_share=shared / text_events if text_events else 0.0,
        held_at_cap=int(np.count_nonzero(held)),
        loop_lag_ns=np.concatenate([np.zeros(0, np.int64), *(fact.loop_lag_ns for fact in facts)]),
        connections=sum(len(fact.connect_ns) for fact in facts),
        connect_ns=np.concatenate([np.zeros(0, np.int64), *(fact.connect_ns for fact in facts)]),
        peak_rss_bytes=max((fact.peak_rss_bytes for fact in facts), default=0),
        gc_collections=sum(fact.gc_collections for fact in facts),
        busy_shares=tuple(fact.busy_share for fact in facts),
        waits=sum(fact.waits for fact in facts),
        preemptions=sum(fact.preemptions for fact in facts),
        open_descriptors=_sum([fact.open_descriptors for fact in facts]),
        socket_errors=int(np.count_nonzero(np.isin(rows["outcome"], _SOCKET_ERRORS))),
        lost_workers=sum(worker.facts is None for worker in workers),
        clock_step_ns=_largest([fact.clock_step_ns for fact in facts]),
        clamped_stamps=sum(fact.clamped_stamps for fact in facts),
        start=_start(schedule),
        spread_over_ns=_largest([fact.spread_over_ns for fact in facts]),
        stalls=tuple(
            (worker.share.worker, *stall)
            for worker in workers
            if worker.facts is not None
            for stall in worker.facts.stalls
        ),
        suspended_ns=_largest([fact.suspended_ns for fact in facts]),
        notes=tuple(dict.fromkeys(notes)),
    )


def _start(schedule: ClosedLoop | OpenLoop | None) -> Literal["together", "spread"] | None:
    if not isinstance(schedule, ClosedLoop):
        return None
    return "spread" if schedule.spread else "together"
