"""httpx on sockets that keep the account of an exchange: httpx itself limits the time of each read only."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ssl import SSLContext
from typing import Any

import httpcore
import httpx

from harness.client.limits import Account
from harness.host.proxy import proxy_for, require_socks
from harness.host.resolve import resolve
from harness.host.tls import Certificates

_PIECE_BYTES = 65536

_current: ContextVar[Account] = ContextVar("account")  # of the exchange that this thread has


@contextmanager
def accounted(account: Account) -> Iterator[None]:
    token = _current.set(account)
    try:
        yield
    finally:
        _current.reset(token)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        account = _current.get()
        data = self._inner.read(max_bytes, account.left_s(timeout))
        account.receive(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        account = _current.get()
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._inner.write(buffer[start : start + _PIECE_BYTES], account.left_s(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = _current.get().left_s(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        account, host = _current.get(), resolve(host, port).host
        account.connected = True
        left = account.left_s(timeout)
        return _Stream(self._inner.connect_tcp(host, port, left, local_address, socket_options))


class Transport(httpx.BaseTransport):
    """Takes the proxy that the load takes. Raises what httpcore raises, and SetupError for a proxy that
    cannot be used."""

    def __init__(self, certificates: Certificates, *, keep_alive: bool) -> None:
        self._settings: dict[str, Any] = {
            "ssl_context": certificates.shared(),
            "max_keepalive_connections": None if keep_alive else 0,
            "network_backend": _Backend(),
        }
        self._pools: dict[str | None, httpcore.ConnectionPool] = {}  # by their proxy

    def _pool(self, url: httpx.URL) -> httpcore.ConnectionPool:
        named = proxy_for(str(url))
        if named not in self._pools:
            require_socks(str(url))
            self._pools[named] = (
                self._through(httpx.URL(named)) if named else httpcore.ConnectionPool(**self._settings)
            )
        return self._pools[named]

    def _through(self, proxy: httpx.URL) -> httpcore.ConnectionPool:
        settings = {**self._settings, "proxy_url": str(proxy.copy_with(userinfo=b""))}
        if proxy.username:
            settings["proxy_auth"] = proxy.username, proxy.password
        if proxy.scheme.startswith("socks"):
            return httpcore.SOCKSProxy(**settings)
        if proxy.scheme == "https":
            settings["proxy_ssl_context"] = settings["ssl_context"]
        return httpcore.HTTPProxy(**settings)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        answer = self._pool(url).handle_request(
            httpcore.Request(
                method=request.method,
                url=target,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        assert isinstance(answer.stream, Iterable)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream))

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from self._stream

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()
