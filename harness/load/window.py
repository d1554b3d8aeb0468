"""The timed window of one worker: what leaves when, how each request ends, and what ends the load.

All of it is decided here, for every carrier alike.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from harness.load.balance import Balancer
from harness.load.bounds import Limits
from harness.load.carrier import Carrier
from harness.load.dispatcher import NEVER, Dispatcher
from harness.load.exchange import Exchange
from harness.load.failures import AT_CAP, DRAIN_OVER, NEVER_SENT, NO_CONNECTION, STOPPED
from harness.records.layout import UNKNOWN, Outcome

CHORE_NS = 50_000_000
_BACKLOG_BYTES = 64 << 20  # of finished answers kept for an idle moment


class Window:
    """Made ahead of its carrier, which reports sends and ends to it."""

    def __init__(self, seqs: Sequence[int], balancer: Balancer, limits: Limits) -> None:
        self.sent = 0
        self.finished: deque[Exchange] = deque()  # ended and not finalized
        self._seqs, self._balancer, self._limits = seqs, balancer, limits
        self._open: dict[int, Exchange] = {}  # in flight, by index
        self._finished_bytes = 0
        self._hang_ups = [NEVER]  # heap of the times when users do; most answers have come before
        self._last_begun = 0  # when a request was last taken or sent

    @property
    def in_flight(self) -> int:
        return len(self._open)

    def run(
        self,
        carrier: Carrier,
        dispatcher: Dispatcher,
        finalize: Callable[[Exchange], object],
        chore: Callable[[], bool],
    ) -> bool:
        """Returns once every request that became due is finalized; True if the chore ended the window.

        `chore` is called every CHORE_NS and ends the window by returning True.
        """
        self._carrier, self._dispatcher, self._finalize = carrier, dispatcher, finalize
        self._chore, self._stopped = chore, False
        self._last_begun = time.monotonic_ns()
        self._next_chore = self._last_begun + CHORE_NS
        carrier.run()
        self._end_all(time.monotonic_ns())
        return self._stopped

    def step(self, now: int) -> int | None:
        """Ends and sends what is due. Returns when the next step is due at the latest; None: the load is
        over."""
        if now >= self._next_chore:
            self._next_chore = now + CHORE_NS
            self._end_overdue(now)
            self._stopped = self._chore()
            if self._stopped:
                return None
        if self._hang_ups[0] <= now:
            self._end_overdue(now)
        self._send_due(now)
        if self._is_over(now):
            return None
        while self._finished_bytes > _BACKLOG_BYTES:
            self.finalize_one()
        return min(self._next_chore, self.next_due(now), self._hang_ups[0])

    def _is_over(self, now: int) -> bool:
        if self._dispatcher.has_more(now, len(self._open)):
            return False
        return not self._open or now > self._last_begun + self._limits.drain_timeout_ns

    # -- what the carrier asks and reports -----------------------------------------------------------

    def next_due(self, now: int) -> int:
        return self._dispatcher.next_due(now, len(self._open))

    def sent_at(self, exchange: Exchange, now: int) -> None:
        """Is called each time that a request leaves. Its time limit counts from the first."""
        exchange.attempts += 1
        if exchange.sent != UNKNOWN:
            return
        self.sent += 1
        exchange.sent = self._last_begun = now
        limit = self._limits.after_send_ns(exchange.index)
        exchange.deadline = now + limit
        if limit != self._limits.request_timeout_ns:
            heappush(self._hang_ups, exchange.deadline)

    def ended(self, exchange: Exchange, failure: Outcome | None, error: str, end: int) -> None:
        """Is called when nothing more comes. `failure`: what the carrier saw; None: the answer is whole."""
        answer = exchange.answer
        if answer is not None:
            answer.close()
            if answer.oversized:
                failure, error = Outcome.OVERSIZED, answer.problem
        if failure is None and end > exchange.deadline:
            failure, error = self._limits.late(exchange.index)
        exchange.failure, exchange.error, exchange.end = failure, error, end
        del self._open[exchange.index]
        self._balancer.ended(exchange.replica)
        if self._dispatcher.waits_for_answers:
            self._finalize(exchange)
            return
        self.finished.append(exchange)
        self._finished_bytes += _wire_bytes(exchange)
        self._dispatcher.freed(exchange.index, exchange.sent, end)

    def finalize_one(self) -> None:
        exchange = self.finished.popleft()
        self._finished_bytes -= _wire_bytes(exchange)
        self._finalize(exchange)

    # -- sends ---------------------------------------------------------------------------------------

    def _send_due(self, now: int) -> None:
        dispatcher = self._dispatcher
        for _ in range(self._carrier.sends_at_once):
            request = dispatcher.take(now, len(self._open))
            if request is None:
                break
            exchange = self._exchange(*request)
            exchange.replica = self._balancer.choose(exchange.index)
            exchange.deadline = now + self._limits.request_timeout_ns
            self._open[exchange.index] = exchange
            self._last_begun = now
            self._carrier.send(exchange)
            now = time.monotonic_ns()
        self._give_up(dispatcher.dropped, Outcome.DROPPED, AT_CAP)
        dispatcher.dropped.clear()

    def _exchange(self, intended: int, index: int) -> Exchange:
        return Exchange(self._seqs[index], intended, index)

    # -- ends ----------------------------------------------------------------------------------------

    def _end_overdue(self, now: int) -> None:
        while self._hang_ups[0] <= now:
            heappop(self._hang_ups)
        overdue = [exchange for exchange in self._open.values() if exchange.deadline <= now]
        if overdue:
            self._carrier.drop(overdue)
        for exchange in overdue:
            unsent = exchange.sent == UNKNOWN
            ended = (Outcome.TIMEOUT, NO_CONNECTION) if unsent else self._limits.late(exchange.index)
            self.ended(exchange, *ended, now)

    def _end_all(self, now: int) -> None:
        """Ends what is still open when the window closes; cancels it only if a person stops the run."""
        stopped = self._stopped
        open_end = (Outcome.CANCELLED, STOPPED) if stopped else (Outcome.TIMEOUT, DRAIN_OVER)
        left = list(self._open.values())
        self._carrier.drop(left)
        for exchange in left:
            self.ended(exchange, *open_end, now)
        unsent_end = (Outcome.CANCELLED, STOPPED) if stopped else (Outcome.DROPPED, NEVER_SENT)
        self._give_up(self._dispatcher.overdue(now), *unsent_end)
        while self.finished:
            self.finalize_one()

    def _give_up(self, requests: list[tuple[int, int]], outcome: Outcome, error: str) -> None:
        """Records requests that were never sent."""
        for request in requests:
            exchange = self._exchange(*request)
            exchange.end, exchange.failure, exchange.error = time.monotonic_ns(), outcome, error
            self._finalize(exchange)


def _wire_bytes(exchange: Exchange) -> int:
    return exchange.answer.wire_bytes if exchange.answer is not None else 0
