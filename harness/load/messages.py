"""What a load worker and its parent send each other over a pipe.

A Share in, READY out, t0 in, Pulses out, at the end Facts out; anything in after t0 means stop.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.load.job import LoadJob
from harness.load.stamps import Shared
from harness.load.transport import Transport

READY = "ready"


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
    shared_events: Shared
    clock_step_ns: int | None
    clamped_stamps: int
    spread_over_ns: int | None  # from t0; None: the loop does not spread its start
    longest_stall_ns: int  # by which a chore came late: the loop, or the whole process, stood still
    stalls: tuple[tuple[int, int], ...]  # the longer ones: when from t0, how long, ns
    suspended_ns: int | None  # of the machine, inside the window; None: the system does not count it
    stopped: bool
    notes: tuple[str, ...]
    models: dict[str, NDArray[np.int32]]  # numbers in the cell of the requests whose answers name each
