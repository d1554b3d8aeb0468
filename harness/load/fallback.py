"""The window on asyncio: HTTP/2, and proxies that are not plain HTTP. Stamps are user-space.

Whatever a server does, and whatever a library makes of it, is the outcome of a request, which frees its slot.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

import uvloop

from harness.load.balance import balancer_of
from harness.load.bounds import Limits
from harness.load.carrier import Carrier, RequestError, UnreadError
from harness.load.connection import failure_of
from harness.load.dispatcher import Dispatcher
from harness.load.event_loop import CHORE_NS, Counters
from harness.load.failures import AT_CAP, DRAIN_OVER, NEVER_SENT, NO_CONNECTION, STOPPED
from harness.load.finalize import Exchange
from harness.load.http1 import Answer
from harness.load.job import LoadJob
from harness.records.layout import UNKNOWN, Outcome

_SENDS = 4  # requests between two looks at the sockets
_MOST_ATTEMPTS = 3  # of a request that the server says it did not read


def _make_carrier(job: LoadJob, limits: Limits) -> Carrier:
    if job.http2:
        from harness.load.http2 import Http2Carrier  # h2 comes with an extra

        return Http2Carrier(job, limits.request_timeout_ns / 1e9)
    from harness.load.httpx_carrier import HttpxCarrier

    return HttpxCarrier(job)


class FallbackLoop:
    """Behaves as `event_loop.EventLoop`, with one task per request in flight."""

    def __init__(self, job: LoadJob, bodies: Sequence[bytes], seqs: list[int], limits: Limits) -> None:
        self.counters = Counters()
        self._bodies, self._seqs, self._limits = bodies, seqs, limits
        self._balancer = balancer_of(job)
        self._carrier = _make_carrier(job, limits)
        self.connect_ns = self._carrier.connect_ns
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def open_ahead(self, count: int) -> str:
        return self._runner.run(self._carrier.open_ahead(count))

    def run(
        self, dispatcher: Dispatcher, finalize: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        return self._runner.run(self._drive(dispatcher, finalize, chore))

    def close(self) -> None:
        self._runner.run(self._carrier.close())
        self._runner.close()

    async def _drive(
        self, dispatcher: Dispatcher, finalize: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        counters, changed = self.counters, asyncio.Event()
        finished: deque[Exchange] = deque()
        now = last_send = time.monotonic_ns()
        next_chore = now + CHORE_NS

        async def carry(exchange: Exchange) -> None:
            try:
                await self._carry(exchange)
            finally:
                counters.in_flight -= 1
                self._balancer.ended(exchange.replica)
                if not dispatcher.waits_for_answers:
                    dispatcher.freed(exchange.index, exchange.sent, exchange.end)
                finished.append(exchange)
                changed.set()

        while True:
            now = time.monotonic_ns()
            if now >= next_chore:
                next_chore = now + CHORE_NS
                if chore():
                    self._stopped = True
                    break  # before a task is made: one cancelled ahead of its first step runs nothing
            while finished and dispatcher.waits_for_answers:
                finalize(finished.popleft())
            for _ in range(_SENDS):
                request = dispatcher.take(now, counters.in_flight)
                if request is None:
                    break
                counters.in_flight += 1
                counters.sent += 1
                last_send = now
                exchange = Exchange(self._seqs[request[1]], *request)
                exchange.replica = self._balancer.choose(exchange.index)
                task = asyncio.create_task(carry(exchange))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._give_up(dispatcher.dropped, Outcome.DROPPED, AT_CAP, finalize)
            dispatcher.dropped.clear()
            if not dispatcher.has_more(now, counters.in_flight) and (
                not counters.in_flight or now > last_send + self._limits.drain_timeout_ns
            ):
                break
            wake = min(next_chore, dispatcher.next_due(now, counters.in_flight))
            changed.clear()
            if finished or wake <= now:  # one step, then what arrived meanwhile is read
                if finished:
                    finalize(finished.popleft())
                await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(max(0, wake - time.monotonic_ns()) / 1e9):
                    await changed.wait()
            except TimeoutError:
                counters.loop_lag_ns.append(max(0, time.monotonic_ns() - wake))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)
        for exchange in finished:
            finalize(exchange)
        unsent = (Outcome.CANCELLED, STOPPED) if self._stopped else (Outcome.DROPPED, NEVER_SENT)
        self._give_up(dispatcher.overdue(time.monotonic_ns()), *unsent, finalize)
        return self._stopped

    def _give_up(
        self,
        requests: list[tuple[int, int]],
        outcome: Outcome,
        error: str,
        finalize: Callable[[Exchange], object],
    ) -> None:
        for intended, index in requests:
            exchange = Exchange(self._seqs[index], intended, index, end=time.monotonic_ns())
            exchange.failure, exchange.error = outcome, error
            finalize(exchange)

    async def _carry(self, exchange: Exchange) -> None:
        """Carries one request to its end, however it ends. One deadline covers head, body, trailer and
        close.
        """
        limit_ns, late = self._limits.after_send(exchange.index)
        deadline = asyncio.timeout(self._limits.request_timeout_ns / 1e9)

        def on_send() -> None:
            exchange.attempts += 1
            if exchange.sent == UNKNOWN:
                exchange.sent = time.monotonic_ns()
                deadline.reschedule(asyncio.get_running_loop().time() + limit_ns / 1e9)

        try:
            async with deadline:
                await self._carry_until_read(exchange, on_send)
        except asyncio.CancelledError:
            ended = (Outcome.CANCELLED, STOPPED) if self._stopped else (Outcome.TIMEOUT, DRAIN_OVER)
            exchange.failure, exchange.error = ended
        except RequestError as error:
            exchange.failure, exchange.error = error.outcome, str(error)
        except Exception as error:  # it ends this answer, and no other
            exchange.failure, exchange.error = _unforeseen(error)
            if deadline.expired():
                ended = (Outcome.TIMEOUT, NO_CONNECTION) if exchange.sent == UNKNOWN else late
                exchange.failure, exchange.error = ended
        answer = exchange.answer
        assert answer is not None
        if answer.oversized:
            exchange.failure, exchange.error = Outcome.OVERSIZED, answer.problem
        exchange.end = time.monotonic_ns() if exchange.failure is not None else answer.stamps[-1]
        answer.close()

    async def _carry_until_read(self, exchange: Exchange, on_send: Callable[[], None]) -> None:
        """Sends the request again where its server says that it did not read it."""
        while True:
            exchange.answer = Answer(self._limits.answer_bytes)
            try:
                return await self._carrier.carry(exchange, self._bodies[exchange.index], on_send)
            except UnreadError:
                if exchange.attempts >= _MOST_ATTEMPTS:
                    raise
                exchange.answer.close()


def _unforeseen(error: Exception) -> tuple[Outcome, str]:
    """Outcome and text for an exception that the library has no name for."""
    if isinstance(error, OSError):
        return failure_of(error), str(error)
    return Outcome.MALFORMED, f"{type(error).__name__}: {error}"
