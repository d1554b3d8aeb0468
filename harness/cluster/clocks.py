"""A node's CLOCK_MONOTONIC against the coordinator's, from pings. Pure: no clock, no network.

An offset is always what the node's clock shows less what the coordinator's shows at the same moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ping(NamedTuple):
    """There and back, ns: `sent` and `heard` on the coordinator's clock, the others on the node's."""

    sent: int
    received: int
    answered: int
    heard: int

    @property
    def rtt(self) -> int:
        """Time on the way; what the node took to answer is not."""
        return (self.heard - self.sent) - (self.answered - self.received)

    @property
    def offset(self) -> int:
        """Wrong by half the RTT at most, where one way took all of it."""
        return ((self.received - self.sent) + (self.answered - self.heard)) // 2

    @property
    def at(self) -> int:
        return (self.sent + self.heard) // 2


@dataclass(frozen=True, slots=True)
class Line:
    """The node's offset as a function of the coordinator's time."""

    at: int
    offset: int  # at that time
    drift: float  # of the offset, ns per ns
    uncertainty_ns: int
    rtt_ns: int  # the lowest of all pings
    pings: int

    def offset_at(self, time_ns: int) -> int:
        return self.offset + round(self.drift * (time_ns - self.at))

    def on_node(self, time_ns: int) -> int:
        """The time on the node's clock when the coordinator's shows `time_ns`."""
        return time_ns + self.offset_at(time_ns)

    def shift(self, t0: int, t0_node: int, since_t0: NDArray[np.int64]) -> NDArray[np.int64]:
        """How much later than `since_t0` it is on the coordinator's clock since its own t0.

        `since_t0` counts from what the node took for t0.
        """
        late = t0_node - self.on_node(t0)
        return late - np.round(self.drift * since_t0).astype(np.int64)


def fit(bursts: Sequence[Sequence[Ping]]) -> Line:
    """Fits a line through the fastest ping of each burst, in the order of time; there is at least one.

    The line is known to half the RTT of the first or last burst's ping, whichever is longer, and to what it
    misses the others by beyond half of theirs.
    """
    best = [min(burst, key=lambda ping: ping.rtt) for burst in bursts if burst]
    first = best[0]
    times = np.array([ping.at - first.at for ping in best], np.float64)
    offsets = np.array([ping.offset - first.offset for ping in best], np.float64)  # 1e17 has no exact float
    halves = np.array([max(ping.rtt, 1) / 2 for ping in best], np.float64)
    weights = 1 / halves**2
    mean_time, mean_offset = np.average(times, weights=weights), np.average(offsets, weights=weights)
    spread = float(np.sum(weights * (times - mean_time) ** 2))
    drift = float(np.sum(weights * (times - mean_time) * (offsets - mean_offset)) / spread) if spread else 0.0
    missed = np.abs(offsets - mean_offset - drift * (times - mean_time)) - halves
    return Line(
        at=first.at + round(mean_time),
        offset=first.offset + round(mean_offset),
        drift=drift,
        uncertainty_ns=round(max(halves[0], halves[-1]) + max(float(missed.max()), 0.0)),
        rtt_ns=min(ping.rtt for ping in best),
        pings=sum(map(len, bursts)),
    )
