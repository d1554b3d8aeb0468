"""Requests over HTTP/1.1 through httpx: by way of proxies that are not plain HTTP."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import httpx
from asyncio_throttle.throttler import Throttler

from harness.host.proxy import proxy_for
from harness.host.tls import Certificates
from harness.load.async_carrier import OPENING_S, RequestError
from harness.load.bounds import HEAD_BYTES
from harness.load.connection import failure_of, unopened
from harness.load.exchange import Exchange
from harness.load.failures import CLOSED_EARLY, closed_after_send
from harness.load.http1 import Answer
from harness.load.job import LoadJob
from harness.load.wire import build_request, in_session
from harness.records.layout import UNKNOWN, Outcome

_OPENINGS_PER_S = 2_000  # a listen backlog overflows silently and costs a second per connection
_CLOSING_S = 5.0


class HttpxCarrier:
    """Sends nothing twice. The pool leaves out connections that were closed; if one closes after the send, it
    is not known whether the request was read."""

    def __init__(self, job: LoadJob) -> None:
        self.connect_ns: list[int] = []
        self._job = job
        self._requests = [build_request(url, job.access, job.api, b"") for url in job.urls]  # by replica
        kept = None if job.promised.keeps_connection else 0
        unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=kept)
        certificates = job.access.certificates
        self._transports = [
            httpx.AsyncHTTPTransport(
                verify=certificates.context(), proxy=_proxy(url, certificates), limits=unlimited
            )
            for url in job.urls
        ]

    async def open_ahead(self, count: int) -> str:
        """Sends OPTIONS on each: httpx opens no connection without a request.

        HEAD would be shorter, and servers that answer it with a body spoil the connection.
        """
        throttler = Throttler(rate_limit=_OPENINGS_PER_S // 100, period=0.01, retry_interval=0.001)

        async def open_one(replica: int) -> httpx.Response:
            watch, url, headers = _Watch(), self._requests[replica].url, self._requests[replica].headers
            request = httpx.Request("OPTIONS", url, headers=headers, extensions={"trace": watch})
            async with throttler, asyncio.timeout(OPENING_S):
                response = await self._transports[replica].handle_async_request(request)
            self._connected(watch)
            return response

        opening = (open_one(number % len(self._requests)) for number in range(count))
        results = await asyncio.gather(*opening, return_exceptions=True)
        opened, problem = 0, ""
        for result in results:  # only now, so that none took the connection of another
            try:
                if isinstance(result, BaseException):
                    raise result
                async with asyncio.timeout(OPENING_S):
                    await _read_out(result)
                opened += 1
            except Exception as error:  # a connection ahead of time is only a help
                problem = str(error) or "no answer in time"
        return problem and f"{opened} of {count} connections opened ahead: {problem}"

    async def carry(self, exchange: Exchange, body: bytes, on_send: Callable[[], object]) -> None:
        given, answer = self._requests[exchange.replica], exchange.answer
        assert answer is not None

        def leave() -> None:
            exchange.connect = watch.connect_ns
            on_send()

        watch = _Watch(leave)
        kept = [(name, value) for name, value in given.headers.raw if name.lower() != b"content-length"]
        headers = [*in_session(kept, self._job, exchange), (b"content-length", b"%d" % len(body))]
        request = httpx.Request("POST", given.url, headers=headers, content=body, extensions={"trace": watch})
        try:
            await _fetch(self._transports[exchange.replica], request, answer)
        except httpx.TransportError as error:
            outcome, text = _failure(error)
            closed = exchange.sent != UNKNOWN and outcome in (Outcome.TRUNCATED, Outcome.RESET)
            if closed and not answer.stamps:
                text = closed_after_send(outcome, text)
            raise RequestError(outcome, text) from error
        finally:
            self._connected(watch)

    async def close(self) -> None:
        for transport in self._transports:
            with suppress(Exception):
                async with asyncio.timeout(_CLOSING_S):
                    await transport.aclose()

    def _connected(self, watch: "_Watch") -> None:
        if watch.connect_ns > 0:
            self.connect_ns.append(watch.connect_ns)


def _proxy(url: str, certificates: Certificates) -> httpx.Proxy | None:
    """The proxy for a URL. It is trusted as the server is; httpx would read the authorities of its own again
    for each connection, inside the window. A client certificate is not for it.
    """
    if (named := proxy_for(url)) is None:
        return None
    trusted = Certificates(certificates.authorities).context() if named.startswith("https://") else None
    return httpx.Proxy(named, ssl_context=trusted)


async def _fetch(transport: httpx.AsyncHTTPTransport, request: httpx.Request, answer: Answer) -> None:
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
        answer.take_part(b"", time.monotonic_ns())  # the end, which may come later than the last part
    finally:
        await response.aclose()
    answer.complete_parts()


async def _read_out(response: httpx.Response) -> None:
    """Lets httpx reuse a connection, which it does only once the body was read: a refusal, so a short one."""
    size = 0
    try:
        async for part in response.aiter_raw():
            size += len(part)
            if size > HEAD_BYTES:
                raise httpx.RemoteProtocolError(f"an answer to OPTIONS has more than {HEAD_BYTES} bytes")
    finally:
        await response.aclose()


class _Watch:
    """Follows httpcore's trace of one request: when it left, and what connecting took."""

    def __init__(self, on_send: Callable[[], object] = lambda: None) -> None:
        self.connect_ns = self._opened = UNKNOWN
        self._on_send = on_send

    async def __call__(self, event: str, info: Mapping[str, object]) -> None:
        now = time.monotonic_ns()
        if event.endswith("connect_tcp.started"):  # "socks." or "connection." before it
            self._opened = now
        elif event.endswith("send_request_headers.started") and _method(info) != b"CONNECT":
            self.connect_ns = 0 if self._opened == UNKNOWN else now - self._opened
            self._on_send()


def _method(info: Mapping[str, object]) -> object:
    return getattr(info.get("request"), "method", None)


_CLOSED = ("disconnected", "peer closed")  # in the words of httpcore and h11


def _failure(error: httpx.TransportError) -> tuple[Outcome, str]:
    """Outcome and text. httpx has no words for a connection that broke, and keeps the system's as a cause."""
    broken = _system_error(error)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        return unopened(broken or error), str(broken or error)
    if isinstance(error, httpx.RemoteProtocolError):
        closed = any(words in str(error) for words in _CLOSED)
        return (Outcome.TRUNCATED, CLOSED_EARLY) if closed else (Outcome.MALFORMED, str(error))
    text = str(error) or str(broken or CLOSED_EARLY)
    return (Outcome.TRUNCATED if broken is None else failure_of(broken)), text


def _system_error(error: BaseException) -> OSError | None:
    """The first of its causes with a number of the system; anyio puts one without it in front."""
    found: OSError | None = None
    cause: BaseException | None = error
    while cause is not None and (found is None or found.errno is None):
        if isinstance(cause, OSError):
            found = cause
        cause = cause.__cause__ or cause.__context__  # httpcore cuts the chain of causes
    return found
