"""One connection and the exchange on it, and how both end."""

import errno
import os
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.load.http1 import Answer
from harness.load.poller import Poller
from harness.load.settle import Exchange
from harness.load.stamps import SO_TIMESTAMPNS
from harness.record import Outcome
from harness.tls import Secure

_CONNECTING = (0, errno.EINPROGRESS)
_SHAKE_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect, as `socket.getaddrinfo` says it."""

    family: int
    sockaddr: Any


def resolve(host: str, port: int) -> Address:
    """The first address that answers, so that `localhost` finds an IPv4-only server; else the first.

    A name that is not known stays as it is: each connection will fail and say so.
    """
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return Address(socket.AF_INET, (host, port))
    found = [Address(family, sockaddr) for family, _, _, _, sockaddr in known]
    for address in found[:8] if len(found) > 1 else ():
        with socket.socket(address.family) as probe:
            probe.settimeout(2.0)
            if probe.connect_ex(address.sockaddr) == 0:
                return address
    return found[0]


class Flow:
    __slots__ = ("answer", "deadline", "exchange", "fd", "opened", "receive", "rest", "sock", "tls", "warm")

    def __init__(self, sock: socket.socket, opened: int, tls: Secure | None, *, kernel: bool) -> None:
        self.sock = sock
        self.tls = tls
        self.fd = sock.fileno()
        self.opened = opened
        self.receive: Callable[..., Any] = sock.recvmsg_into if kernel else sock.recv_into
        self.exchange: Exchange | None = None  # set from the moment a request waits for this connection
        self.answer: Answer | None = None  # set while an answer is awaited
        self.rest: memoryview | None = None  # of the request, not yet taken by the kernel
        self.deadline = 0
        self.warm = False  # it was open and idle before the request on it

    def raise_if_refused(self) -> None:
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, os.strerror(code))

    def shake(self) -> bool:
        """One step of the TLS handshake, when the socket has something for it; True once it is done."""
        assert self.tls is not None
        heard = self.sock.recv(_SHAKE_BYTES) if self.tls.begun else b""
        if self.tls.begun and not heard:
            raise ConnectionResetError(errno.ECONNRESET, "closed by the server in the TLS handshake")
        done, said = self.tls.shake(heard)
        self.sock.sendall(said)
        return done

    def still_open(self) -> bool:
        """After a sign of life on an idle connection: TLS may speak for itself there, HTTP may only close."""
        if self.tls is None:
            return False
        try:
            heard = self.sock.recv(_SHAKE_BYTES)
            return bool(heard) and not self.tls.open(heard) and not self.tls.closed
        except OSError:
            return False


def connect(address: Address, now: int, tls: Secure | None, *, kernel: bool) -> Flow:
    """Starts connecting; raises OSError where that fails at once."""
    sock = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kernel:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        code = sock.connect_ex(address.sockaddr)
        if code not in _CONNECTING:
            raise OSError(code, os.strerror(code))
    except OSError:
        sock.close()
        raise
    return Flow(sock, now, tls, kernel=kernel)


def transmit(flow: Flow, poller: Poller, head: bytes, body: bytes) -> None:
    """A send that fails is told by the next read: the server may have answered before it closed."""
    if flow.tls is not None:
        head, body = flow.tls.seal(head, body), b""
    try:
        taken = flow.sock.sendmsg((head, body))
    except BlockingIOError:
        taken = 0
    except OSError:
        return
    if taken < len(head) + len(body):
        flow.rest = memoryview(head + body)[taken:]
        poller.modify(flow.fd, select.POLLIN | select.POLLOUT)


def transmit_rest(flow: Flow, poller: Poller) -> None:
    assert flow.rest is not None
    try:
        flow.rest = flow.rest[flow.sock.send(flow.rest) :]
    except BlockingIOError:
        return
    except OSError:
        flow.rest = flow.rest[:0]
    if not flow.rest:
        flow.rest = None
        poller.modify(flow.fd, select.POLLIN)


def failure_of(error: OSError) -> Outcome:
    return Outcome.TIMEOUT if error.errno == errno.ETIMEDOUT else Outcome.RESET
