"""The way to a server: straight or through an HTTP proxy, with TLS or without."""

import base64
import errno
import ssl
from dataclasses import dataclass

import httpx

from harness.host.address import port_of
from harness.host.proxy import proxy_for
from harness.host.resolve import Address, resolve
from harness.host.tls import Certificates, Secure

_PROXY_HEAD_BYTES = 65_536  # a proxy that says more has said something else


@dataclass(frozen=True, slots=True)
class Route:
    address: Address
    host: str  # the name that a TLS certificate must be for
    tls: ssl.SSLContext | None
    tunnel: bytes = b""  # the CONNECT request to a proxy

    def secure(self) -> Secure | None:
        return Secure(self.tls, self.host) if self.tls is not None else None


def find_route(url: str, certificates: Certificates, *, always_tunnel: bool = False) -> Route:
    """`always_tunnel`: through a proxy without TLS too, for a protocol that the proxy could not pass on."""
    target, named = httpx.URL(url), proxy_for(url)
    proxy = httpx.URL(named) if named is not None else None
    first = proxy or target
    address = resolve(first.host, port_of(str(first)))
    secure = target.scheme == "https"
    tunnel = _connect(target, proxy) if proxy and (secure or always_tunnel) else b""
    return Route(address, target.host, certificates.context() if secure else None, tunnel)


def tunnel_opened(heard: bytes) -> bool:
    """Whether a proxy has answered CONNECT to the end of its head. Raises ConnectionRefusedError."""
    head, ended, _ = heard.partition(b"\r\n\r\n")
    if not ended and len(head) < _PROXY_HEAD_BYTES:
        return False
    status = head.partition(b"\r\n")[0].decode("latin-1")
    if status.split(" ")[1:2] != ["200"]:
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"the proxy answered: {status[:200]}")
    return True


def proxy_authorization(proxy: httpx.URL) -> dict[str, str]:
    if not proxy.userinfo:
        return {}
    credentials = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    return {"proxy-authorization": f"Basic {credentials}"}


def _connect(target: httpx.URL, proxy: httpx.URL) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    authority = f"{host}:{port_of(str(target))}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"host: {authority}"]
    lines += [f"{name}: {value}" for name, value in proxy_authorization(proxy).items()]
    return "\r\n".join([*lines, "", ""]).encode()
