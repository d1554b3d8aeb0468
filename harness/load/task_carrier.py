"""A carrier on asyncio, with one task per request in flight: HTTP/2, and proxies that are not plain HTTP.

Stamps are user-space. Whatever a server does, and whatever a library makes of it, is the end of one request.
"""

import asyncio
import time
from collections import deque
from collections.abc import Collection, Sequence

import uvloop

from harness.load.async_carrier import AsyncCarrier, RequestError, UnreadError
from harness.load.carrier import Counters
from harness.load.connection import failure_of
from harness.load.exchange import Exchange
from harness.load.http1 import Answer
from harness.load.window import Window
from harness.records.layout import Outcome

_MOST_ATTEMPTS = 3  # of a request that the server says it did not read

_Ended = tuple[Exchange, Outcome | None, str, int]


class TaskCarrier:
    sends_at_once = 4

    def __init__(
        self, carrier: AsyncCarrier, bodies: Sequence[bytes], answer_bytes: int, window: Window
    ) -> None:
        self.counters = Counters(carrier.connect_ns)
        self._carrier, self._bodies, self._answer_bytes = carrier, bodies, answer_bytes
        self._window = window
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._loop = self._runner.get_loop()
        self._changed: asyncio.Future[None] = self._loop.create_future()
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by index of the exchange
        self._ended: deque[_Ended] = deque()  # and not reported: what that raises is not of a task

    def open_ahead(self, count: int) -> str:
        return self._runner.run(self._carrier.open_ahead(count))

    def close(self) -> None:
        self._runner.run(self._carrier.close())
        self._runner.close()

    def send(self, exchange: Exchange) -> None:
        task = self._loop.create_task(self._carry(exchange, self._bodies[exchange.index]))
        task.add_done_callback(self._wake)
        self._tasks[exchange.index] = task

    def run(self) -> None:
        self._runner.run(self._drive())
        self._report()  # the loop takes one step more after the last of the window

    def drop(self, exchanges: Collection[Exchange]) -> None:
        for exchange in exchanges:
            self._tasks.pop(exchange.index).cancel()

    async def _drive(self) -> None:
        window = self._window
        while (wake := window.step(now := time.monotonic_ns())) is not None:
            if window.finished or wake <= now:  # one step, then what arrived meanwhile is read
                if window.finished:
                    window.finalize_one()
                await asyncio.sleep(0)
            else:
                await self._until(wake)
            self._report()

    async def _until(self, wake: int) -> None:
        """Lets the tasks run until `wake`, or until one is done."""
        self._changed = self._loop.create_future()
        due = self._loop.call_later(max(0, wake - time.monotonic_ns()) / 1e9, self._wake)
        await self._changed
        due.cancel()
        late = time.monotonic_ns() - wake
        if late >= 0 and not self._ended:
            self.counters.loop_lag_ns.append(late)

    def _wake(self, _done: object = None) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    def _report(self) -> None:
        while self._ended:
            self._window.ended(*self._ended.popleft())

    async def _carry(self, exchange: Exchange, body: bytes) -> None:
        """Carries one request to its end, however it ends, unless it is dropped."""
        failure, error_text = None, ""
        try:
            await self._carry_until_read(exchange, body)
        except RequestError as error:
            failure, error_text = error.outcome, str(error)
        except Exception as error:  # it ends this answer, and no other
            failure, error_text = _unforeseen(error)
        if self._tasks.pop(exchange.index, None) is None:
            return
        assert exchange.answer is not None
        end = time.monotonic_ns() if failure is not None else exchange.answer.stamps[-1]
        self._ended.append((exchange, failure, error_text, end))

    async def _carry_until_read(self, exchange: Exchange, body: bytes) -> None:
        """Sends the request again where its server says that it did not read it."""

        def on_send() -> None:
            self._window.sent_at(exchange, time.monotonic_ns())
            self._wake()  # the user may hang up before the next step

        while True:
            exchange.answer = Answer(self._answer_bytes)
            try:
                return await self._carrier.carry(exchange, body, on_send)
            except UnreadError:
                if exchange.attempts >= _MOST_ATTEMPTS:
                    raise
                exchange.answer.close()


def _unforeseen(error: Exception) -> tuple[Outcome, str]:
    """Outcome and text for an exception that the library has no name for."""
    if isinstance(error, OSError):
        return failure_of(error), str(error)
    return Outcome.MALFORMED, f"{type(error).__name__}: {error}"
