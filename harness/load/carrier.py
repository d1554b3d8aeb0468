"""What a window needs of the way to a server: requests carried, and each send and each end reported to it."""

from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from harness.load.exchange import Exchange


@dataclass(slots=True)
class Counters:
    """A carrier's own figures."""

    connect_ns: list[int]  # one per connection that was made
    unstamped_reads: int = 0
    longest_tick_ns: int = 0
    loop_lag_ns: "array[int]" = field(default_factory=lambda: array("q"))


class Carrier(Protocol):
    """Decides nothing: it asks the window that it was made for, and reports to it."""

    counters: Counters
    sends_at_once: int  # in one step of the window: each holds up what is being read

    def open_ahead(self, count: int) -> str:
        """Opens connections for `count` requests at once; returns what prevented that, or ""."""
        ...

    def send(self, exchange: Exchange) -> None:
        """Begins to carry a request. Calls `window.sent_at` each time that its first byte leaves, and
        `window.ended` once, unless it is dropped before."""

    def run(self) -> None:
        """Calls `window.step` until the load is over. In between it carries what comes, until the time that
        the step returned or a request ended, and finalizes answers of the window where there is time.
        """

    def drop(self, exchanges: Collection[Exchange]) -> None:
        """Breaks requests off; their answers grow no more. Is called at the end of the window with what is
        left, even if that is nothing."""

    def close(self) -> None: ...
