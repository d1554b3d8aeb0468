"""How long the slots of a closed loop stood idle: by so much the concurrency that was asked for is missed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.latency import Floats, measured
from harness.model import Load
from harness.records.layout import UNKNOWN


@dataclass(frozen=True, slots=True)
class SlotTime:
    """Of the measured requests of a closed loop."""

    idle_ms: Floats  # per request: from the slot's turn to the send, connecting left out
    share: float  # idle / (idle + busy)
    concurrency: float  # as asked for

    @property
    def effective_concurrency(self) -> float:
        return self.concurrency * (1 - self.share)


def slot_time(requests: NDArray[np.void], load: Load) -> SlotTime | None:
    """None for an open loop, and where nothing was sent. Think time is not idle: it is part of the load."""
    rows = requests[measured(requests) & (requests["sent_ns"] != UNKNOWN) & (requests["end_ns"] != UNKNOWN)]
    if load.slots is None or not len(rows):
        return None
    connecting = np.maximum(rows["connect_ns"], 0)  # UNKNOWN: no connection of its own
    idle_ns = np.maximum(rows["sent_ns"] - rows["intended_ns"] - connecting, 0)
    idle, busy = float(idle_ns.sum()), float((rows["end_ns"] - rows["sent_ns"]).sum())
    return SlotTime(idle_ns / 1e6, idle / max(idle + busy, 1.0), float(load.value))
