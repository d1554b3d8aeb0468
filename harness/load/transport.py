"""httpx transports that stamp what arrives, for where the epoll loop cannot go: proxies, HTTP/2, no epoll.

An Exchange in a request's extensions is filled as the answer arrives, so that a caller that gives up, or
sees an httpx error, still has the part that came. A transport returns when the answer has ended.

httpcore's pool searches all its connections for every request and wakes a task for every chunk: at a few
hundred streams that costs more than a server's token gap. Here a read is one callback.
"""

import asyncio
import ssl
import time
from typing import cast

import httpx

from harness.load.http1 import Answer
from harness.load.settle import Exchange
from harness.load.wire import render_head
from harness.record import UNKNOWN


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.ended = asyncio.Event()
        self.lost = False
        self.error: Exception | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's TLS transport does not inherit from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        stamp = time.monotonic_ns()
        if self.answer is None:  # nothing was asked
            self.close()
        elif self.answer.take(data, stamp):
            self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.error = True, exc
        self.ended.set()

    def send(self, *data: bytes) -> None:
        assert self._transport is not None
        self.answer = Answer()
        self.ended.clear()
        self._transport.writelines(data)

    def close(self) -> None:
        self.lost = True
        if self._transport is not None:
            self._transport.abort()


class StampedTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 to one origin."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.connect_ns: list[int] = []
        self._host, self._port, self._tls = host, port, tls
        self._idle: list[_Line] = []

    async def open_line(self) -> None:
        """Opens one connection ahead of its use."""
        self._idle.append(await self._connect())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange: Exchange = request.extensions["exchange"]
        wire = render_head(request), await request.aread()
        line = self._take_idle()
        if line is not None:
            exchange.connect = 0
            await self._ask(line, exchange, wire)
        if line is None or (line.lost and not exchange.answer_began()):
            waited_since = time.monotonic_ns() if exchange.sent == UNKNOWN else exchange.sent
            line = await self._connect()
            exchange.connect = time.monotonic_ns() - waited_since
            await self._ask(line, exchange, wire)
        answer = exchange.answer
        assert answer is not None
        if answer.problem and not answer.complete:
            line.close()
            raise httpx.RemoteProtocolError(answer.problem)
        if not answer.complete and (line.error is not None or answer.framed() or not answer.status):
            raise httpx.ReadError(str(line.error or "closed before the answer was complete")) from line.error
        if answer.reusable() and not line.lost:
            line.answer = None
            self._idle.append(line)
        else:
            line.close()
        return _response(answer)

    async def aclose(self) -> None:
        for line in self._idle:
            line.close()

    def _take_idle(self) -> _Line | None:
        while self._idle:
            line = self._idle.pop()
            if not line.lost:
                return line
        return None

    async def _connect(self) -> _Line:
        started = time.monotonic_ns()
        loop = asyncio.get_running_loop()
        server_name = self._host if self._tls is not None else None
        try:
            _, line = await loop.create_connection(
                _Line, self._host, self._port, ssl=self._tls, server_hostname=server_name
            )
        except OSError as error:  # TLS failures too
            raise httpx.ConnectError(str(error)) from error
        self.connect_ns.append(time.monotonic_ns() - started)
        return line

    async def _ask(self, line: _Line, exchange: Exchange, wire: tuple[bytes, bytes]) -> None:
        exchange.sent = time.monotonic_ns()
        line.send(*wire)
        exchange.answer = line.answer
        try:
            await line.ended.wait()
        except asyncio.CancelledError:
            line.close()
            raise


class HttpxTransport(httpx.AsyncBaseTransport):
    """httpx's own transport, for a way through a proxy and for HTTP/2: connecting looks like waiting there.

    HTTP/2 is spoken or nothing is: a server without it fails the requests.
    """

    def __init__(self, proxy: str | None, *, http2: bool) -> None:
        self.connect_ns: list[int] = []  # not known
        unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._inner = httpx.AsyncHTTPTransport(proxy=proxy, limits=unlimited, http1=not http2, http2=http2)

    async def open_line(self) -> None:
        """Nothing can be opened ahead."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange: Exchange = request.extensions["exchange"]
        exchange.answer = answer = Answer()
        exchange.sent = time.monotonic_ns()
        response = await self._inner.handle_async_request(request)
        answer.headers = [(name.lower(), value) for name, value in response.headers.raw]
        answer.status = response.status_code
        assert isinstance(response.stream, httpx.AsyncByteStream)
        try:
            async for part in response.stream:
                answer.take_part(part, time.monotonic_ns())
        finally:
            await response.aclose()
        answer.complete_parts()
        return _response(answer)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _response(answer: Answer) -> httpx.Response:
    body = httpx.ByteStream(b"".join(answer.parts))
    return httpx.Response(answer.status, headers=answer.headers, stream=body)
