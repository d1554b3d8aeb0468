"""Idle time of the slots of a closed loop: the part of the concurrency that was asked for and missed."""

from dataclasses import dataclass

import numpy as np

from harness.metrics import in_flight
from harness.metrics.distribution import latency_stats
from harness.metrics.lockstep import synchrony
from harness.metrics.reason import OfTimes
from harness.metrics.view import CellView, Figures, Floats, RequestView
from harness.model import Load


def compute(cell: CellView) -> Figures:
    """All None for an open loop."""
    load = cell.facts.load
    slots = slot_time(cell.timed, load)
    together, why = synchrony(cell.timed, load)
    idle, reasons = latency_stats(slots.idle_ms) if slots else (None, {})
    nulls = {f"slot_idle_ms.{key}": reason for key, reason in reasons.items()}
    if slots is None:
        no_slots = "an open loop has no slots" if load.slots is None else OfTimes("no request was sent")
        nulls |= dict.fromkeys(("slot_idle_ms", "slot_idle_share"), no_slots)
    if together is None:
        nulls["synchrony"] = why
    return Figures(
        slot_idle_ms=idle,
        slot_idle_share=slots.share if slots else None,
        synchrony=together,
        nulls=nulls,
    )


@dataclass(frozen=True, slots=True)
class SlotTime:
    idle_ms: Floats  # per request: from the slot's turn to the send, connecting left out
    share: float  # idle / (idle + busy)
    slots: int  # as asked for

    @property
    def used(self) -> float:
        """Mean number of slots in use while they had something to send. `effective_concurrency` is the mean
        in flight over the window.
        """
        return self.slots * (1 - self.share)


def slot_time(view: RequestView, load: Load) -> SlotTime | None:
    """None for an open loop, and where nothing was sent. Think time is not idle: it is part of the load."""
    rows = view.measured_requests[in_flight.held(view.measured_requests)]
    if load.slots is None or not len(rows):
        return None
    connecting = np.maximum(rows["connect_ns"], 0)  # UNKNOWN: no connection of its own
    idle_ns = np.maximum(rows["sent_ns"] - rows["intended_ns"] - connecting, 0)
    idle, busy = float(idle_ns.sum()), float((rows["end_ns"] - rows["sent_ns"]).sum())
    return SlotTime(idle_ns / 1e6, idle / max(idle + busy, 1.0), load.slots)
