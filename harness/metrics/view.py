"""One cell as every metric sees it: which requests count, the window, and what was computed of it so far.

Each selection of requests is made once. A family of metrics asks for another one's figures with `of`, which
computes them the first time only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from harness.metrics.window import Window, duration_begin_ns, measured_window, session_ends_ns, work_shares
from harness.model import CellFacts
from harness.records.layout import Outcome, Phase, Records
from harness.records.request_table import RequestTable
from harness.records.series import Telemetry

T = TypeVar("T")
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.void]  # REQUEST_DTYPE


@dataclass(frozen=True, eq=False)
class RequestView:
    """The requests of a cell, or some of them. Times in ns from the cell's t0.

    Requests of Phase.MEASURE count, except those that bench cancelled, which say nothing about the server.
    """

    records: Records
    _computed: dict[Callable[..., object], object] = field(default_factory=dict, init=False, repr=False)

    @property
    def requests(self) -> Rows:
        """All rows, warm-up included."""
        return self.records.requests

    @cached_property
    def measured(self) -> Mask:
        """Mask over `requests`: those that statistics are made of."""
        mask: Mask = (self.requests["phase"] == Phase.MEASURE) & (
            self.requests["outcome"] != Outcome.CANCELLED
        )
        return mask

    @cached_property
    def answered(self) -> Mask:
        """Mask over `requests`: measured, and ended well."""
        mask: Mask = self.measured & (self.requests["outcome"] == Outcome.OK)
        return mask

    @cached_property
    def measured_requests(self) -> Rows:
        """Rows of `measured`, however they ended."""
        return self.requests[self.measured]

    @cached_property
    def answers(self) -> Rows:
        """Rows of `answered`."""
        return self.requests[self.answered]

    def part(self, mask: Mask) -> "RequestView":
        """Some of the requests with their events, without texts. Takes time for these events alone, so that
        all classes of a cell together take as long as one of all requests."""
        rows, (seqs, starts, counts) = self.requests[mask], self._event_groups
        chosen = np.isin(seqs, rows["seq"])
        starts, counts = starts[chosen], counts[chosen]
        skipped = starts - (np.cumsum(counts) - counts)  # events before each group that are not taken
        taken = np.repeat(skipped, counts)
        taken += np.arange(len(taken))
        return RequestView(Records(rows, self.records.events[taken], (), (), ()))

    @cached_property
    def _event_groups(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """The `seq`, the first event and the number of events of each stretch of events of one request."""
        seqs = self.records.events["seq"]
        starts = np.flatnonzero(np.diff(seqs, prepend=-1))
        return seqs[starts], starts, np.diff(starts, append=len(seqs))

    def without_events(self, mask: Mask) -> "RequestView":
        """Some of the requests, for figures that need no events: copying those costs most."""
        return RequestView(Records(self.requests[mask], self.records.events[:0], (), (), ()))

    def of(self, compute: Callable[[Self], T]) -> T:
        """The result of `compute(self)`, computed once."""
        if compute not in self._computed:
            self._computed[compute] = compute(self)
        return cast(T, self._computed[compute])


@dataclass(frozen=True, eq=False)
class CellView(RequestView):
    """A cell with what cell.json says of it, what each request asked for, and what was sampled meanwhile.

    `records` have the first tokens of whole arrivals (`latency.by_arrival`). `requested` is None where a run
    did not keep it.
    """

    facts: CellFacts
    requested: RequestTable | None = None
    telemetry: Telemetry = field(default_factory=Telemetry)

    @property
    def slots(self) -> int | None:
        """None for an open loop."""
        return self.facts.load.slots

    @property
    def timed(self) -> RequestView:
        """The view itself; without requests for an imported file that has no send times.

        Not kept: with itself inside, a view and its events would stay in memory until the collector runs.
        """
        file = self.facts.imported
        return self if file is None or "times" in file.facts else self._untimed

    @cached_property
    def _untimed(self) -> RequestView:
        return RequestView(replace(self.records, requests=self.requests[:0], events=self.records.events[:0]))

    @cached_property
    def close_ns(self) -> int | None:
        """When a cell with a duration stops to send; None where something else ends it."""
        minimum = self.facts.minimum
        if minimum is None or self.facts.interrupted or minimum.duration_s is None:
            return None
        begin = duration_begin_ns(self.requests, minimum)
        return None if begin is None else begin + round(minimum.duration_s * 1e9)

    @cached_property
    def thinking_until_ns(self) -> int:
        """The time until which users who think keep their slots, in a cell with a duration; 0 in any other.

        A window that ends where the first of them thinks past the end has too few long thoughts.
        """
        thinks = self.facts.load.think_time_s and self.requested and not self.requested.has_sessions()
        return (self.close_ns or 0) if thinks and self.facts.unsent else 0

    @cached_property
    def window(self) -> Window | None:
        """The stretch where the load is at its height; None if nothing measured was answered."""
        sessions = kept_ns = None
        if self.requested is not None:
            planned = self.requested.sessions()
            sessions = planned[self.requests["seq"]]
            kept_ns = session_ends_ns(self.requests, planned, self.close_ns)
            kept_ns = np.maximum(kept_ns, self.thinking_until_ns)
        spread_over_ns = self.facts.client.spread_over_ns
        return measured_window(self.timed.requests, self.slots, spread_over_ns, sessions, kept_ns)

    @cached_property
    def shares(self) -> Floats:
        """Shares of each request's work inside the window, 0 to 1, in every phase."""
        if self.window is None:
            return np.zeros(len(self.requests))
        return work_shares(
            self.requests, self.records.events, self.window, closed_loop=self.slots is not None
        )


class Figures(SimpleNamespace):
    """The figures of one family by key of `CellResult`; `nulls`: why one is null, by its dotted path."""

    def __init__(self, nulls: Mapping[str, str] | None = None, **by_key: Any) -> None:
        super().__init__(**by_key)
        self.nulls, self.by_key = dict(nulls or {}), by_key
