"""The window on asyncio through httpx: proxies, HTTP/2, systems without epoll. Stamps are user-space."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence

import httpx
import uvloop
from asyncio_throttle.throttler import Throttler

from harness.load.carrier import proxy_for
from harness.load.flow import failure_of
from harness.load.job import LoadJob
from harness.load.loop import CHORE_NS, Counters, Limits
from harness.load.settle import Exchange
from harness.load.transport import HttpxTransport, StampedTransport
from harness.load.wire import build_request
from harness.load.work import Work
from harness.record import UNKNOWN, Outcome

_SENDS = 4  # requests between two looks at the sockets
_OPENINGS_PER_S = 2_000  # a listen backlog overflows silently and costs a second per connection


class AsyncWindow:
    """Same conduct as `loop.Window`, one task per request in flight."""

    def __init__(self, job: LoadJob, bodies: Sequence[bytes], seqs: list[int], limits: Limits) -> None:
        self.counters = Counters()
        self._bodies, self._seqs, self._limits = bodies, seqs, limits
        self._request = build_request(job.url, job.headers, b"")
        url, proxy = self._request.url, proxy_for(job.url)
        if proxy is not None or job.http2:
            self._transport: HttpxTransport | StampedTransport = HttpxTransport(proxy, http2=job.http2)
        else:
            tls = httpx.create_ssl_context() if url.scheme == "https" else None
            port = url.port or (443 if tls else 80)
            self._transport = StampedTransport(url.host, port, tls)
        self.connect_ns = self._transport.connect_ns
        self._client = httpx.AsyncClient(transport=self._transport, timeout=None, trust_env=False)
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._tasks: set[asyncio.Task[None]] = set()

    def open_ahead(self, count: int) -> str:
        return self._runner.run(self._open_ahead(count))

    def run(self, work: Work, settle: Callable[[Exchange], object], chore: Callable[[], bool]) -> bool:
        return self._runner.run(self._drive(work, settle, chore))

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    async def _open_ahead(self, count: int) -> str:
        throttler = Throttler(rate_limit=_OPENINGS_PER_S // 100, period=0.01, retry_interval=0.001)

        async def open_one() -> None:
            async with throttler:
                await self._transport.open_line()

        results = await asyncio.gather(*(open_one() for _ in range(count)), return_exceptions=True)
        failed = [result for result in results if isinstance(result, httpx.TransportError)]
        opened = count - len(failed)
        return f"{opened} of {count} connections opened ahead: {failed[0]}" if failed else ""

    async def _drive(
        self, work: Work, settle: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        counters, changed = self.counters, asyncio.Event()
        finished: deque[Exchange] = deque()
        now = last_send = time.monotonic_ns()
        next_chore = now + CHORE_NS
        stopped = False

        async def carry(exchange: Exchange) -> None:
            await self._carry(exchange)
            counters.in_flight -= 1
            if work.waits_for_answers:
                settle(exchange)
            else:
                work.freed(exchange.end)
                finished.append(exchange)
            changed.set()

        while True:
            now = time.monotonic_ns()
            if now >= next_chore:
                next_chore = now + CHORE_NS
                if stopped := chore():
                    break  # before a task is made: one cancelled ahead of its first step runs nothing
            for _ in range(_SENDS):
                request = work.take(now, counters.in_flight)
                if request is None:
                    break
                counters.in_flight += 1
                counters.sent += 1
                last_send = now
                task = asyncio.create_task(carry(Exchange(self._seqs[request[1]], *request)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._give_up(work.dropped, Outcome.DROPPED, "", settle)
            work.dropped.clear()
            if not work.left(now, counters.in_flight) and (
                not counters.in_flight or now > last_send + self._limits.drain_timeout_ns
            ):
                break
            wake = min(next_chore, work.next_due(counters.in_flight))
            changed.clear()
            if finished or wake <= now:  # one step, then what arrived meanwhile is read
                if finished:
                    settle(finished.popleft())
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
            settle(exchange)
        self._give_up(work.overdue(time.monotonic_ns()), Outcome.CANCELLED, "the window closed", settle)
        return stopped

    def _give_up(
        self,
        requests: list[tuple[int, int]],
        outcome: Outcome,
        error: str,
        settle: Callable[[Exchange], object],
    ) -> None:
        for intended, index in requests:
            exchange = Exchange(self._seqs[index], intended, index, end=time.monotonic_ns())
            exchange.failure, exchange.error = outcome, error
            settle(exchange)

    async def _carry(self, exchange: Exchange) -> None:
        """One request to its end, however it ends; only a bug raises."""
        body = self._bodies[exchange.index]
        request = httpx.Request(
            "POST",
            self._request.url,
            headers={**self._request.headers, "content-length": str(len(body))},
            content=body,
            extensions={"exchange": exchange},
        )
        try:
            async with asyncio.timeout(self._limits.request_timeout_ns / 1e9):
                response = await self._client.send(request, stream=True)  # decoding is not for the window
                await response.aclose()
        except TimeoutError:
            connected = exchange.sent != UNKNOWN
            exchange.failure = Outcome.TIMEOUT if connected else Outcome.CONNECT_FAILED
            exchange.error = "the answer did not end in time" if connected else "no connection in time"
        except asyncio.CancelledError:
            exchange.failure, exchange.error = Outcome.CANCELLED, "the window closed"
        except httpx.TransportError as error:
            exchange.failure, exchange.error = _failure(error), str(error)
        exchange.end = time.monotonic_ns()
        if exchange.answer is not None:
            if exchange.failure is None:
                exchange.end = exchange.answer.stamps[-1]
            exchange.answer.close()


def _failure(error: httpx.TransportError) -> Outcome:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return Outcome.CONNECT_FAILED
    if isinstance(error, httpx.RemoteProtocolError):
        return Outcome.MALFORMED
    cause = error.__cause__
    return failure_of(cause) if isinstance(cause, OSError) else Outcome.TRUNCATED
