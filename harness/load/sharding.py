"""One job to several workers: the schedule is split, never drawn again."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.host.cpus import usable_cpus
from harness.load.bodies import BodyFile, GrowingBodies
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Sessions

_STREAMS_PER_WORKER = 2048  # about 40,000 tokens/s at a usual 50 ms gap: a third of a core
_ARRIVALS_PER_WORKER = 4000.0  # per second


def choose_workers(job: LoadJob) -> int:
    """Estimates by constants how many the load needs."""
    schedule = job.schedule
    if isinstance(schedule, ClosedLoop):
        needed = schedule.concurrency / _STREAMS_PER_WORKER
    else:
        span_s = float(np.ptp(schedule.intended_ns)) / 1e9 if len(schedule.intended_ns) > 1 else 0.0
        needed = len(job.bodies) / max(span_s, 1.0) / _ARRIVALS_PER_WORKER
    return workers_for(needed)


def workers_for(needed: float) -> int:
    """Rounds up, to at most every second core: the server may run here as well."""
    return max(1, min(math.ceil(needed), usable_cpus() // 2))


def split(job: LoadJob, workers: int) -> list[tuple[LoadJob, NDArray[np.int32]]]:
    """The parts, each with the positions of its requests in the job. Parts without requests are left out.

    A closed loop deals requests to slots and slots to workers; an open loop deals arrivals in turn. A
    session is dealt whole, as one request would be. With several URLs whole rounds are dealt: turn by turn a
    worker of two would get all requests of one URL. Caps and slots that do not divide evenly go to the first
    workers.
    """
    seqs = np.arange(len(job.bodies), dtype=np.int32)
    rounds = units_of(len(job.bodies), job.sessions) // len(job.urls)
    schedule = job.schedule
    slots = schedule.concurrency if isinstance(schedule, ClosedLoop) else schedule.max_in_flight
    workers = min(workers, slots)
    measured_ns = _measured_ns(job, schedule) if isinstance(schedule, OpenLoop) else None
    parts = []
    for worker in range(workers):
        share = len(range(worker, slots, workers))
        if isinstance(schedule, ClosedLoop):
            mine = seqs[rounds % schedule.concurrency % workers == worker]
            think = None if schedule.think_ns is None else schedule.think_ns[mine]
            own = range(worker, slots, workers)
            part: ClosedLoop | OpenLoop = replace(schedule, concurrency=share, think_ns=think, slots=own)
        else:
            mine = seqs[rounds % workers == worker]
            starts = np.arange(len(schedule.intended_ns)) // len(job.urls) % workers == worker
            part = replace(
                schedule,
                intended_ns=schedule.intended_ns[starts],
                max_in_flight=share,
                measured_ns=measured_ns,
            )
        if len(mine):
            parts.append((replace(_only(job, mine), schedule=part), mine))
    return parts


def _measured_ns(job: LoadJob, schedule: OpenLoop) -> int | None:
    """When the first measured request is due, from t0; of sessions, the first that is all measured."""
    if not job.warmup_requests:
        return 0
    first = job.warmup_requests
    if job.sessions is not None:
        first = int(np.searchsorted(job.sessions.starts(), first))
    return int(schedule.intended_ns[first]) if first < len(schedule.intended_ns) else None


def units_of(count: int, sessions: Sessions | None) -> NDArray[np.int32]:
    """The number of the unit that each request is dealt with: itself, or its session."""
    if sessions is None:
        return np.arange(count, dtype=np.int32)
    starts = np.zeros(count, np.int32)
    starts[sessions.starts()] = 1
    return np.cumsum(starts, dtype=np.int32) - 1


def _only(job: LoadJob, mine: NDArray[np.int32]) -> LoadJob:
    bodies, sessions = job.bodies, job.sessions
    return replace(
        job,
        bodies=bodies.only(mine)
        if isinstance(bodies, BodyFile | GrowingBodies)
        else [bodies[i] for i in mine.tolist()],
        sessions=sessions and sessions.only(mine),
        replicas=None if job.replicas is None else job.replicas[mine],
        items=None if job.items is None else job.items[mine],
        patience_ns=None if job.patience_ns is None else job.patience_ns[mine],
    )
