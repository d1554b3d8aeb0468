"""A job from start to result: workers started together, followed, and merged."""

import math
import statistics
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.apis import APIS
from harness.host import scratch
from harness.load.client_stats import client_stats
from harness.load.job import ClosedBy, ClosedLoop, LoadJob, LoadResult, OpenLoop, Progress, ProgressSink
from harness.load.messages import Share
from harness.load.sharding import choose_workers, split
from harness.load.spill import merge
from harness.load.transport import choose_transport
from harness.load.worker_pool import LocalWorkerPool, Worker, WorkerPool
from harness.records.layout import Outcome, empty_requests

_LISTEN_S = 0.1
_STOP_GRACE_S = 10.0
_LOST = "the load worker died"
_LEAST_TIMEOUTS = 3
_ROUNDS = 2  # of all slots


def run_load(
    job: LoadJob,
    progress: ProgressSink | None = None,
    stop: threading.Event | None = None,
    worker_pool: WorkerPool[Any] | None = None,
) -> LoadResult:
    """Blocks until the window is closed and every request in it has ended.

    `stop` ends the window early: what is in flight becomes CANCELLED and everything so far is returned. So
    does a closed loop all of whose slots time out without a token: each further round would cost a limit.
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
            closed_by, timeouts = _follow(worker_pool, job, t0, progress, stop)
            t0 = worker_pool.collect(t0)
        finally:
            worker_pool.close()
        lost = [_missing(worker, t0) for worker in worker_pool.workers if worker.facts is None]
        folders = [worker.share.folder for worker in worker_pool.workers]
        endings = dict.fromkeys(worker.ended for worker in worker_pool.workers if worker.ended)
        records = merge(folders, np.concatenate([empty_requests(0), *lost]), ": ".join([_LOST, *endings]))
    if closed_by == "caller" and all(
        w.facts is not None and not w.facts.stopped for w in worker_pool.workers
    ):
        closed_by = "schedule"  # all had ended by themselves
    return LoadResult(
        t0_monotonic_ns=t0,
        t0_unix_ns=t0 + unix,
        records=records,
        client=client_stats(worker_pool.workers, transport, reason, records),
        closed_by=closed_by,
        timeouts=timeouts or _last_timeouts(worker_pool),
        unsent=len(job.bodies) - len(records.requests),
        models=_models(worker_pool),
    )


def _models(worker_pool: WorkerPool[Any]) -> dict[str, NDArray[np.int32]]:
    parts: dict[str, list[NDArray[np.int32]]] = {}
    for worker in worker_pool.workers:
        for name, seqs in (worker.facts.models if worker.facts is not None else {}).items():
            parts.setdefault(name, []).append(seqs)
    return {name: np.concatenate(lists) for name, lists in parts.items()}


def _follow(
    worker_pool: WorkerPool[Any], job: LoadJob, t0: int, progress: ProgressSink | None, stop: threading.Event
) -> tuple[ClosedBy, int]:
    """Follows the workers until none runs; what ended the window, and how many timeouts in a row, if they
    did.
    """
    closed_by: ClosedBy = "schedule"
    give_up, timeouts = math.inf, 0
    warm_s = 0.0  # until a measured request was sent
    while worker_pool.running():
        worker_pool.listen(_LISTEN_S)
        if progress is not None and time.monotonic_ns() > t0:
            now = _progress(worker_pool, job, t0)
            if now.sent <= job.warmup_requests:
                warm_s = now.elapsed_s
            progress(replace(now, measured_s=now.elapsed_s - warm_s))
        if closed_by == "schedule":
            timeouts = _only_timeouts(worker_pool)
            if timeouts or stop.is_set():
                closed_by = "silence" if timeouts else "caller"
                give_up = time.monotonic() + _STOP_GRACE_S
                worker_pool.stop()
        elif time.monotonic() > give_up:
            break
    return closed_by, timeouts


def _only_timeouts(worker_pool: WorkerPool[Any]) -> int:
    """The latest requests in a row that timed out without a token, if each slot had two of them; else 0.

    Always 0 in an open loop: its schedule ends it, whether answers come or not.
    """
    in_a_row = 0
    for worker in worker_pool.running():
        schedule = worker.share.job.schedule
        timeouts = worker.pulse.timeouts if worker.pulse is not None else 0
        if not isinstance(schedule, ClosedLoop) or timeouts < _ROUNDS * schedule.concurrency:
            return 0
        in_a_row += timeouts
    return in_a_row if in_a_row >= _LEAST_TIMEOUTS else 0


def _last_timeouts(worker_pool: WorkerPool[Any]) -> int:
    """Requests that timed out without a token after the last other end; 0 if a worker saw none.

    With one URL of several silent, other workers may still have had answers.
    """
    pulses = [worker.pulse for worker in worker_pool.workers if worker.pulse is not None]
    in_a_row = [pulse.timeouts for pulse in pulses]
    return sum(in_a_row) if all(in_a_row) else 0


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


def _missing(worker: Worker, t0: int) -> NDArray[Any]:
    """Rows for what a lost worker had sent, or had to send, and did not leave a record of."""
    seqs, schedule, lost_at = worker.share.seqs, worker.share.job.schedule, worker.lost_at_ns
    assert lost_at is not None
    rows = empty_requests(len(seqs))
    rows["seq"] = seqs
    rows["worker"] = worker.share.worker
    rows["phase"] = worker.share.job.phases(seqs)
    rows["outcome"] = Outcome.LOST
    rows["end_ns"] = lost_at - t0
    if isinstance(schedule, OpenLoop) and worker.share.job.sessions is None:
        rows["intended_ns"] = rows["start_ns"] = schedule.intended_ns
        return rows[schedule.intended_ns <= lost_at - t0]
    return rows[: worker.pulse.sent if worker.pulse is not None else 0]
