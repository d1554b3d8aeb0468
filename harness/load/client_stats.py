"""The load generator's own figures, as cell.json keeps them."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.load.job import ClosedLoop, OpenLoop
from harness.load.messages import Facts
from harness.load.transport import Transport
from harness.load.worker_pool import Worker
from harness.model import ClientStats, Quantiles, Stall
from harness.records.layout import UNKNOWN, Outcome, Records

_SOCKET_ERRORS = (Outcome.CONNECT_FAILED, Outcome.RESET, Outcome.TRUNCATED)


def client_stats(
    workers: Sequence[Worker], transport: Transport, reason: str, records: Records
) -> ClientStats:
    """`reason`: why this transport, where a reader of the figures should know; else ""."""
    facts = [worker.facts for worker in workers if worker.facts is not None]
    rows = records.requests
    left = rows["sent_ns"] != UNKNOWN
    held = _held_at_cap(workers, rows)
    descriptors = [fact.open_descriptors for fact in facts]
    text_events = sum(fact.text_events for fact in facts)
    shared = sum(fact.shared_events.events for fact in facts)
    late = sum(fact.shared_events.late for fact in facts)
    stamped = transport is Transport.KERNEL_STAMPS
    late_ns = rows["sent_ns"] - rows["intended_ns"] - rows["connect_ns"]
    return ClientStats(
        stamp_source="kernel" if stamped else "user",
        stamp_uncertainty_ms=max((fact.stamp_uncertainty_ns for fact in facts), default=0) / 1e6,
        tick_ms=max((fact.longest_tick_ns for fact in facts), default=0) / 1e6,
        workers=len(workers),
        lost_workers=sum(worker.facts is None for worker in workers),
        merged_share=shared / text_events if text_events else 0.0,
        late_share=late / max(text_events, 1) if stamped else None,
        held_at_cap=int(np.count_nonzero(held)),
        cpu_s=sum(fact.cpu_s for fact in facts),
        busy_share=max((fact.busy_share for fact in facts), default=0.0),
        wall_s=float(rows["end_ns"].max(initial=0)) / 1e9,
        send_lag_ms=Quantiles.of_ns(late_ns[left & ~held]),
        loop_lag_ms=_of_all([fact.loop_lag_ns for fact in facts]),
        connections=sum(len(fact.connect_ns) for fact in facts),
        connect_ms=_of_all([fact.connect_ns for fact in facts]),
        peak_rss_bytes=max((fact.peak_rss_bytes for fact in facts), default=0),
        gc_collections=sum(fact.gc_collections for fact in facts),
        busy_shares=[fact.busy_share for fact in facts],
        waits=sum(fact.waits for fact in facts),
        preemptions=sum(fact.preemptions for fact in facts),
        open_descriptors=None if None in descriptors else sum(filter(None, descriptors)),
        socket_errors=int(np.count_nonzero(np.isin(rows["outcome"], _SOCKET_ERRORS))),
        clock_step_ms=_largest_ms([fact.clock_step_ns for fact in facts]),
        clamped_stamps=sum(fact.clamped_stamps for fact in facts),
        start=_start(workers),
        spread_over_ms=_largest_ms([fact.spread_over_ns for fact in facts]),
        stalls=tuple(stall for worker in workers for stall in _stalls(worker)),
        suspended_ms=_largest_ms([fact.suspended_ns for fact in facts]),
        notes=list(dict.fromkeys(_notes(reason, facts, shared, text_events))),
    )


def _notes(reason: str, facts: Sequence[Facts], shared: int, text_events: int) -> Iterator[str]:
    if reason:
        yield reason
    for fact in facts:
        yield from fact.notes
    if unstamped := sum(fact.unstamped_reads for fact in facts):
        yield f"{unstamped} reads came without a kernel stamp and were stamped when read"
    if shared:
        yield f"{shared} of {text_events} text events arrived in one read with the event before"


def _stalls(worker: Worker) -> Iterator[Stall]:
    if worker.facts is not None:
        for at_ns, lasted_ns in worker.facts.stalls:
            yield Stall(worker=worker.share.worker, at_s=at_ns / 1e9, lasted_ms=lasted_ns / 1e6)


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


def _largest_ms(values_ns: list[int | None]) -> float | None:
    return max((value / 1e6 for value in values_ns if value is not None), default=None)


def _start(workers: Sequence[Worker]) -> Literal["together", "spread"] | None:
    schedule = workers[0].share.job.schedule if workers else None
    if not isinstance(schedule, ClosedLoop):
        return None
    return "spread" if schedule.spread else "together"


def _of_all(parts_ns: Sequence[NDArray[np.int64]]) -> Quantiles:
    return Quantiles.of_ns(np.concatenate([np.zeros(0, np.int64), *parts_ns]))
