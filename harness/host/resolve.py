"""The address of a host name, of those that its name server gives, that answers."""

import errno
import select
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

_MOST = 8
_HEAD_START_S = 0.25  # of each address before the next one is tried (RFC 8305)
_GIVE_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """Family and address, as `socket.getaddrinfo` returns them."""

    family: int
    sockaddr: Any

    @property
    def host(self) -> str:
        """The host as a number, with the interface of a link-local one."""
        host, _, *scope = self.sockaddr
        return f"{host}%{scope[1]}" if scope and scope[1] else str(host)


def resolve(host: str, port: int) -> Address:
    """The address that answers, so that `localhost` finds an IPv4-only server and one that hangs holds
    nothing up; else the first.

    A name that is not known stays as it is: each connection will fail and say so.
    """
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return Address(socket.AF_INET, (host, port))
    addresses = [Address(family, sockaddr) for family, _, _, _, sockaddr in known]
    return (_answering(addresses[:_MOST]) if len(addresses) > 1 else None) or addresses[0]


def _answering(addresses: list[Address]) -> Address | None:
    trying: dict[int, tuple[socket.socket, Address]] = {}
    untried, poller, give_up = addresses[::-1], select.poll(), time.monotonic() + _GIVE_UP_S
    with ExitStack() as opened:
        while (untried or trying) and time.monotonic() < give_up:
            if untried:
                address = untried.pop()
                try:  # a machine without IPv6 may know the address and not the family
                    sock = opened.enter_context(socket.socket(address.family, socket.SOCK_STREAM))
                    sock.setblocking(False)
                    code = sock.connect_ex(address.sockaddr)
                except OSError:
                    continue
                if code not in (0, errno.EINPROGRESS):
                    continue
                trying[sock.fileno()] = sock, address
                poller.register(sock, select.POLLOUT)
            wait_s = _HEAD_START_S if untried else max(0.0, give_up - time.monotonic())
            for descriptor, _ in poller.poll(wait_s * 1e3):
                sock, address = trying.pop(descriptor)
                poller.unregister(descriptor)
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    return address
    return None
