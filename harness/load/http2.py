"""Requests over HTTP/2: connections that requests share, to each replica as many as they fill."""

import asyncio
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.host.proxy import proxy_for
from harness.load.async_carrier import OPENING_S, RequestError, UnreadError
from harness.load.connection import open_socket, unopened
from harness.load.connection_pool import AT_ONCE
from harness.load.exchange import Exchange
from harness.load.failures import NO_CONNECTION
from harness.load.http2_connection import MOST_STREAMS, Headers, Http2Connection
from harness.load.job import LoadJob
from harness.load.route import Route, find_route, tunnel_opened
from harness.load.wire import build_request, in_session
from harness.model.numbers import counted
from harness.records.layout import UNKNOWN, Outcome

_HTTP1_ONLY = {b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"upgrade"}


@dataclass(slots=True)
class _Replica:
    headers: Headers
    route: Route | None  # None: there is none for HTTP/2
    connections: list[Http2Connection] = field(default_factory=list)
    openings: dict[asyncio.Task[Http2Connection], int] = field(default_factory=dict)  # who waits for each
    fits: int = MOST_STREAMS  # requests on a connection, as the last one that was opened allows

    def forget(self, connection: Http2Connection) -> None:
        if connection in self.connections:
            self.connections.remove(connection)

    def opened(self, opening: "asyncio.Task[Http2Connection]") -> None:
        del self.openings[opening]
        if not opening.cancelled() and opening.exception() is None:
            self.connections.append(opening.result())
            self.fits = max(1, opening.result().room())


class Http2Carrier:
    """Takes a connection out of use as soon as one request on it gets no answer, as with HTTP/1."""

    def __init__(self, job: LoadJob, opening_s: float) -> None:
        self.connect_ns: list[int] = []
        self._reuse, self._opening_s = job.promised.keeps_connection, opening_s
        self._job = job
        self._replicas = [_Replica(_headers(url, job), _route(url, job)) for url in job.urls]

    async def open_ahead(self, count: int) -> str:
        problem = await self.reach(count)
        opened = sum(len(replica.connections) for replica in self._replicas)
        ahead = f"{counted(opened, 'connection')} opened ahead"
        return problem and f"{ahead}, not enough for {counted(count, 'request')}: {problem}"

    async def reach(self, count: int) -> str:
        """Opens connections for `count` requests. Returns the reason that there are fewer, or ""."""
        wanted = -(-count // len(self._replicas))

        async def fill(replica: _Replica) -> None:
            for _ in range(wanted):
                missing = wanted - sum(connection.room() for connection in replica.connections)
                if missing <= 0:
                    return
                await asyncio.gather(*(self._opened(replica) for _ in range(min(missing, AT_ONCE))))

        fills = [asyncio.create_task(fill(replica)) for replica in self._replicas]
        await asyncio.wait(fills, timeout=OPENING_S)
        problem = ""
        for filling in fills:
            if not filling.done():
                filling.cancel()
                problem = "connecting took too long"
            elif (error := filling.exception()) is not None:
                problem = str(error)
        return problem

    async def carry(self, exchange: Exchange, body: bytes, on_send: Callable[[], object]) -> None:
        answer, replica = exchange.answer, self._replicas[exchange.replica]
        assert answer is not None
        answer.closes_itself = True
        connection, waited_ns = await self._take(replica)
        if exchange.sent == UNKNOWN:
            exchange.connect = waited_ns
        on_send()
        length = (b"content-length", b"%d" % len(body))
        headers = in_session(replica.headers, self._job, exchange)
        stream = connection.begin([*headers, length], body, answer)
        try:
            failure = await stream.ended
        finally:
            connection.abandon(stream)
        if failure is not None:
            kind = UnreadError if failure.unread else RequestError
            raise kind(failure.outcome, failure.error)

    async def close(self) -> None:
        for replica in self._replicas:
            for opening in replica.openings:
                opening.cancel()
            for connection in list(replica.connections):
                connection.close()

    async def _take(self, replica: _Replica) -> tuple[Http2Connection, int]:
        """A connection with room, and the time it was waited for, ns."""
        began, waited = time.monotonic_ns(), False
        while True:  # each time a connection opens, it takes at least one of those who wait, or all fail
            for connection in replica.connections:
                if connection.room():
                    return connection, (time.monotonic_ns() - began if waited else 0)
            waited = True
            if problem := (await self._opened(replica)).problem():
                raise RequestError(Outcome.CONNECT_FAILED, problem)

    async def _opened(self, replica: _Replica) -> Http2Connection:
        """Waits for one that is being opened and has room for one more; for a new one if none has."""
        openings = replica.openings
        opening = next((task for task, waiting in openings.items() if waiting < replica.fits), None)
        if opening is None:
            opening = asyncio.create_task(self._open(replica))
            opening.add_done_callback(replica.opened)
        openings[opening] = openings.get(opening, 0) + 1
        try:
            await asyncio.wait([opening])  # one who waits and gives up takes nothing from the others
        finally:
            if opening in openings:
                openings[opening] -= 1
        return opening.result()

    async def _open(self, replica: _Replica) -> Http2Connection:
        """A connection whose server takes requests. Raises RequestError."""
        began = time.monotonic_ns()
        connection = Http2Connection(replica.forget, reuse=self._reuse)
        try:
            async with asyncio.timeout(self._opening_s) as limit:
                await _connect(connection, replica.route)
                failure = await connection.settled
            if problem := failure.error if failure is not None else connection.problem():
                raise ConnectionError(problem)
        except Exception as error:  # of sockets, TLS or h2: there is no connection
            connection.close()
            if limit.expired():
                raise RequestError(Outcome.TIMEOUT, NO_CONNECTION) from error
            raise RequestError(unopened(error), str(error) or type(error).__name__) from error
        except BaseException:
            connection.close()
            raise
        self.connect_ns.append(time.monotonic_ns() - began)
        return connection


def unreachable(job: LoadJob) -> str:
    """The reason that a server of the job takes no requests over HTTP/2, or "". Sends none."""

    async def reach() -> str:
        carrier = Http2Carrier(job, OPENING_S)
        try:
            return await carrier.reach(len(job.urls))
        finally:
            await carrier.close()

    return asyncio.run(reach())


async def _connect(connection: Http2Connection, route: Route | None) -> None:
    if route is None:
        raise ConnectionError("HTTP/2 goes through a plain HTTP proxy (http://…) or none")
    loop = asyncio.get_running_loop()
    sock = open_socket(route.address.family)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await loop.sock_connect(sock, route.address.sockaddr)
        except OSError as error:  # its text names the call, not what is wrong
            raise OSError(error.errno, os.strerror(error.errno or 0)) from error
        if route.tunnel:
            await _open_tunnel(loop, sock, route.tunnel)
        transport, _ = await loop.create_connection(
            lambda: connection, sock=sock, ssl=route.tls, server_hostname=route.host if route.tls else None
        )
    except BaseException:
        sock.close()
        raise
    if route.tls is not None and transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
        raise ConnectionError("the server does not choose HTTP/2 in the TLS handshake")


async def _open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, tunnel: bytes) -> None:
    """Asks a proxy for a tunnel and waits until it is open."""
    await loop.sock_sendall(sock, tunnel)
    heard = b""
    while not tunnel_opened(heard):
        part = await loop.sock_recv(sock, 1)  # what follows is the server's greeting
        if not part:
            raise ConnectionResetError("closed by the other side when asked for a tunnel")
        heard += part


def _route(url: str, job: LoadJob) -> Route | None:
    proxy = proxy_for(url)
    if proxy is not None and not proxy.startswith("http://"):
        return None
    route = find_route(url, job.access.certificates, always_tunnel=True)
    if route.tls is not None:
        route.tls.set_alpn_protocols(["h2"])
    return route


def _headers(url: str, job: LoadJob) -> Headers:
    request = build_request(url, job.access, job.api, b"")
    sent_to = request.url
    target = {
        b":method": b"POST",
        b":authority": sent_to.netloc,
        b":scheme": sent_to.raw_scheme,
        b":path": sent_to.raw_path,
    }
    rest = [(name.lower(), value) for name, value in request.headers.raw]
    return [*target.items(), *(field for field in rest if field[0] not in _HTTP1_ONLY)]
