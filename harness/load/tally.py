"""Ended exchanges to their records, and the counts of them."""

from array import array
from collections import deque

from harness.load.exchange import Exchange
from harness.load.finalize import Finalized, Finalizer
from harness.load.messages import Pulse
from harness.load.spill import Spill
from harness.load.stamps import NONE_SHARED, Shared
from harness.load.turns import TurnBodies
from harness.records.layout import UNKNOWN, Outcome

_MOST_MODELS = 4096  # names that are kept: a server may write anything


class Tally:
    """Settles exchanges into the spill and keeps the counts of the pulses."""

    def __init__(self, finalizer: Finalizer, spill: Spill, turns: TurnBodies | None = None) -> None:
        """`turns`: of chats, whose later turns carry the answers."""
        self.done = self.failed = self.text_events = self.clamped = self.items = 0
        self.shared_events = NONE_SHARED
        self.timeouts = 0  # in a row, without a token
        self.models: dict[str, array[int]] = {}  # places in the share, by each model that the answer names
        self._finalizer, self._spill, self._turns = finalizer, spill, turns
        self._ttfts: deque[int] = deque(maxlen=256)
        self._events_sent = self._items_sent = 0

    def finalize(self, exchange: Exchange) -> Finalized:
        finalized = self._read(exchange)
        self._spill.add(finalized)
        self.done += finalized.outcome in (Outcome.OK, Outcome.ABANDONED)
        self.failed += finalized.outcome not in (Outcome.OK, Outcome.ABANDONED, Outcome.CANCELLED)
        if finalized.ttft_ns != UNKNOWN or finalized.outcome not in (Outcome.TIMEOUT, Outcome.ABANDONED):
            self.timeouts = 0
        elif finalized.outcome is Outcome.TIMEOUT:  # who hangs up says nothing of whether a token would come
            self.timeouts += 1
        self.clamped += finalized.clamped
        self.items += finalized.items
        self.text_events += len(finalized.generated_ns)
        before, more = self.shared_events, finalized.shared_events
        self.shared_events = Shared(before.events + more.events, before.late + more.late)
        if finalized.ttft_ns != UNKNOWN:
            self._ttfts.append(finalized.ttft_ns)
        for model in finalized.models:
            if model in self.models or len(self.models) < _MOST_MODELS:
                self.models.setdefault(model, array("i")).append(exchange.index)
        return finalized

    def _read(self, exchange: Exchange) -> Finalized:
        try:
            return self._finalize(exchange)
        except Exception as error:  # one answer that nobody foresaw takes no other record with it
            exchange.answer, exchange.failure = None, Outcome.MALFORMED
            exchange.error = f"the answer cannot be read: {type(error).__name__}: {error}"
            return self._finalize(exchange)

    def _finalize(self, exchange: Exchange) -> Finalized:
        finalized = self._finalizer.finalize(exchange)
        if self._turns is not None:
            self._turns.keep(exchange.index, finalized)
        return finalized

    def pulse(self, sent: int, in_flight: int) -> Pulse:
        events, self._events_sent = self.text_events - self._events_sent, self.text_events
        items, self._items_sent = self.items - self._items_sent, self.items
        ttfts = tuple(self._ttfts)
        self._ttfts.clear()
        return Pulse(sent, self.done, self.failed, in_flight, ttfts, events, items, self.timeouts)
