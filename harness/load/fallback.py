"""The window on asyncio through httpx: HTTP/2, and proxies that are not plain HTTP. Stamps are user-space.

A stamp waits for the turn of its task, so a hundred streams make them late by milliseconds.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import httpx
import uvloop
from asyncio_throttle.throttler import Throttler

from harness.load.balance import balancer_of
from harness.load.connection import failure_of
from harness.load.dispatcher import Dispatcher
from harness.load.event_loop import CHORE_NS, Counters, Limits
from harness.load.failures import AT_CAP, DRAIN_OVER, LATE, NEVER_SENT, NO_CONNECTION, STOPPED
from harness.load.finalize import Exchange
from harness.load.http1 import Answer
from harness.load.job import LoadJob
from harness.load.route import proxy_for
from harness.load.wire import build_request
from harness.records.layout import UNKNOWN, Outcome

_SENDS = 4  # requests between two looks at the sockets
_OPENINGS_PER_S = 2_000  # a listen backlog overflows silently and costs a second per connection
_OPENING_S = 10.0


class FallbackLoop:
    """Same conduct as `loop.Window`, one task per request in flight."""

    def __init__(self, job: LoadJob, bodies: Sequence[bytes], seqs: list[int], limits: Limits) -> None:
        self.counters = Counters()
        self._bodies, self._seqs, self._limits = bodies, seqs, limits
        self._requests = [build_request(url, job.headers, b"") for url in job.urls]  # by replica
        self._balancer = balancer_of(job)
        self._http2 = job.http2
        kept = None if job.promised.keeps_connection else 0
        unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=kept)
        self._transports = [
            httpx.AsyncHTTPTransport(  # HTTP/2 is spoken or nothing is
                proxy=proxy_for(url), limits=unlimited, http1=not job.http2, http2=job.http2
            )
            for url in job.urls
        ]
        self.connect_ns: list[int] = []
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def open_ahead(self, count: int) -> str:
        return self._runner.run(self._open_ahead(count))

    def run(
        self, dispatcher: Dispatcher, finalize: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        return self._runner.run(self._drive(dispatcher, finalize, chore))

    def close(self) -> None:
        for transport in self._transports:
            self._runner.run(transport.aclose())
        self._runner.close()

    async def _open_ahead(self, count: int) -> str:
        """Asks HEAD on each: httpx opens no connection without a request."""
        throttler = Throttler(rate_limit=_OPENINGS_PER_S // 100, period=0.01, retry_interval=0.001)
        wanted = len(self._requests) if self._http2 else count

        async def open_one(replica: int) -> httpx.Response:
            watch, url, headers = _Watch(), self._requests[replica].url, self._requests[replica].headers
            request = httpx.Request("HEAD", url, headers=headers, extensions={"trace": watch})
            async with throttler, asyncio.timeout(_OPENING_S):
                response = await self._transports[replica].handle_async_request(request)
            self._connected(watch)
            return response

        opening = (open_one(number % len(self._requests)) for number in range(wanted))
        results = await asyncio.gather(*opening, return_exceptions=True)
        opened, problem = 0, ""
        for result in results:  # only now, so that none took the connection of another
            try:
                if isinstance(result, BaseException):
                    raise result
                async with asyncio.timeout(_OPENING_S):
                    await _read_nothing(result)
                opened += 1
            except (httpx.TransportError, TimeoutError) as error:
                problem = str(error) or "no answer in time"
        return problem and f"{opened} of {wanted} connections opened ahead: {problem}"

    async def _drive(
        self, dispatcher: Dispatcher, finalize: Callable[[Exchange], object], chore: Callable[[], bool]
    ) -> bool:
        counters, changed = self.counters, asyncio.Event()
        finished: deque[Exchange] = deque()
        now = last_send = time.monotonic_ns()
        next_chore = now + CHORE_NS

        async def carry(exchange: Exchange) -> None:
            await self._carry(exchange)
            counters.in_flight -= 1
            self._balancer.ended(exchange.replica)
            if dispatcher.waits_for_answers:
                finalize(exchange)
            else:
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
            if not dispatcher.left(now, counters.in_flight) and (
                not counters.in_flight or now > last_send + self._limits.drain_timeout_ns
            ):
                break
            wake = min(next_chore, dispatcher.next_due(counters.in_flight))
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
        """One request to its end, however it ends; only a bug raises."""
        limit_s = self._limits.request_timeout_ns / 1e9
        deadline = asyncio.timeout(limit_s)
        body = self._bodies[exchange.index]
        watch = _Watch(lambda: deadline.reschedule(asyncio.get_running_loop().time() + limit_s))
        given = self._requests[exchange.replica]
        request = httpx.Request(
            "POST",
            given.url,
            headers={**given.headers, "content-length": str(len(body))},
            content=body,
            extensions={"trace": watch},
        )
        exchange.answer = answer = Answer(self._limits.answer_bytes)
        try:
            async with deadline:
                await self._fetch(self._transports[exchange.replica], request, answer)
        except TimeoutError:
            exchange.failure = Outcome.TIMEOUT
            exchange.error = NO_CONNECTION if watch.sent == UNKNOWN else LATE
        except asyncio.CancelledError:
            ended = (Outcome.CANCELLED, STOPPED) if self._stopped else (Outcome.TIMEOUT, DRAIN_OVER)
            exchange.failure, exchange.error = ended
        except httpx.TransportError as error:
            exchange.failure, exchange.error = _failure(error), str(error)
        if answer.oversized:
            exchange.failure, exchange.error = Outcome.OVERSIZED, answer.problem
        exchange.end = time.monotonic_ns() if exchange.failure is not None else answer.stamps[-1]
        exchange.sent, exchange.connect = watch.sent, watch.connect_ns
        exchange.attempts = int(watch.sent != UNKNOWN)
        self._connected(watch)
        answer.close()

    def _connected(self, watch: "_Watch") -> None:
        if watch.connect_ns > 0:
            self.connect_ns.append(watch.connect_ns)

    async def _fetch(
        self, transport: httpx.AsyncHTTPTransport, request: httpx.Request, answer: Answer
    ) -> None:
        """What came is in `answer` even where this raises.

        Nothing is sent twice: the pool leaves out connections whose close has come, and of one that closes
        after the send nobody can tell here whether the request was read.
        """
        response = await transport.handle_async_request(request)
        try:
            for name, value in response.headers.raw:
                answer.on_header(name, value)
            answer.head_ended(response.status_code)
            answer.take_part(b"", time.monotonic_ns())  # the head
            assert isinstance(response.stream, httpx.AsyncByteStream)
            async for part in response.stream:
                answer.take_part(part, time.monotonic_ns())
                if answer.oversized:
                    return
        finally:
            await response.aclose()
        answer.complete_parts()


async def _read_nothing(response: httpx.Response) -> None:
    """httpx reuses a connection only when its answer was read; one to HEAD has no body."""
    try:
        async for _ in response.aiter_raw():
            raise httpx.RemoteProtocolError("an answer to HEAD has a body")
    finally:
        await response.aclose()


class _Watch:
    """What httpcore tells of a request on its way: when it left, and what connecting took."""

    def __init__(self, on_send: Callable[[], object] = lambda: None) -> None:
        self.sent = self.connect_ns = self._opened = UNKNOWN
        self._on_send = on_send

    async def __call__(self, event: str, info: Mapping[str, object]) -> None:
        now = time.monotonic_ns()
        if event == "connection.connect_tcp.started":
            self._opened = now
        elif event.endswith("send_request_headers.started"):  # of CONNECT too, and then of the request
            self.sent = now
            self.connect_ns = 0 if self._opened == UNKNOWN else now - self._opened
            self._on_send()


_CLOSED = ("disconnected", "peer closed")  # in the words of httpcore and h11


def _failure(error: httpx.TransportError) -> Outcome:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return Outcome.CONNECT_FAILED
    if isinstance(error, httpx.RemoteProtocolError):
        closed = any(words in str(error) for words in _CLOSED)
        return Outcome.TRUNCATED if closed else Outcome.MALFORMED
    cause = error.__cause__
    return failure_of(cause) if isinstance(cause, OSError) else Outcome.TRUNCATED
