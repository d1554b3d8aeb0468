"""One job to several workers: the schedule is split, never drawn again."""

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.load.job import ClosedLoop, LoadJob, OpenLoop

_STREAMS_PER_WORKER = 2048  # about 40,000 tokens/s at a usual 50 ms gap: a third of a core
_ARRIVALS_PER_WORKER = 4000.0  # per second


def choose_workers(job: LoadJob) -> int:
    """As many as the load needs; at most every second core, since the server may live here as well."""
    schedule = job.schedule
    if isinstance(schedule, ClosedLoop):
        needed = schedule.concurrency / _STREAMS_PER_WORKER
    else:
        span_s = float(np.ptp(schedule.intended_ns)) / 1e9 if len(schedule.intended_ns) > 1 else 0.0
        needed = len(job.bodies) / max(span_s, 1.0) / _ARRIVALS_PER_WORKER
    return max(1, min(int(np.ceil(needed)), cores() // 2))


def cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def split(job: LoadJob, workers: int) -> list[tuple[LoadJob, NDArray[np.int32]]]:
    """Each part with the place of its requests in the job; parts without requests are left out.

    A closed loop deals requests to slots and slots to workers; an open loop deals arrivals in turn.
    Caps and slots that do not divide evenly go to the first workers.
    """
    seqs = np.arange(len(job.bodies), dtype=np.int32)
    schedule = job.schedule
    slots = schedule.concurrency if isinstance(schedule, ClosedLoop) else schedule.max_in_flight
    workers = min(workers, slots)
    parts = []
    for worker in range(workers):
        if isinstance(schedule, ClosedLoop):
            mine = seqs[seqs % schedule.concurrency % workers == worker]
            think = None if schedule.think_ns is None else schedule.think_ns[mine]
            part: ClosedLoop | OpenLoop = ClosedLoop(len(range(worker, slots, workers)), think)
        else:
            mine = seqs[worker::workers]
            part = replace(
                schedule,
                intended_ns=schedule.intended_ns[mine],
                max_in_flight=len(range(worker, slots, workers)),
            )
        if len(mine):
            parts.append((replace(job, bodies=[job.bodies[i] for i in mine.tolist()], schedule=part), mine))
    return parts
