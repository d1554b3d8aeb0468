"""One connection and the exchange on it, and how both end."""

import errno
import os
import select
import socket
import ssl
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

from harness.host.tls import Secure
from harness.load.exchange import Exchange
from harness.load.failures import CLOSED_EARLY
from harness.load.http1 import Answer
from harness.load.poller import Poller
from harness.load.route import Route, tunnel_opened
from harness.load.stamps import SO_TIMESTAMPNS
from harness.load.tcp_info import TcpInfo, read_tcp_info
from harness.records.layout import Outcome

_CONNECTING = (0, errno.EINPROGRESS)
_OWN_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM)
_SHAKE_BYTES = 65536
_IDLE_BYTES = 4096
_IDLE_READS = 16


@dataclass(slots=True, eq=False)
class Connection:
    sock: socket.socket
    opened: int
    route: InitVar[Route]
    replica: int
    kernel: InitVar[bool]
    fd: int = field(init=False)
    tls: Secure | None = field(init=False)
    receive: Callable[..., Any] = field(init=False)
    exchange: Exchange | None = None  # set from the moment a request waits for this connection
    answer: Answer | None = None  # set while an answer is awaited
    rest: memoryview | None = None  # of the request, not yet taken by the kernel
    before: TcpInfo | None = None  # as it was when the last request on it was sent or answered
    refused: bool = False  # the kernel took no byte of the request: the connection was closed before
    failed: OSError | None = None  # what broke it while the rest of a request was sent
    answered: bool = False  # a whole answer came on it
    freed: int = 0  # when it was last put back
    warm: bool = False  # it was open and idle before the request on it
    _tunnel: bytes = field(init=False)
    _heard: bytes | None = None  # of the proxy, once it was asked

    def __post_init__(self, route: Route, kernel: bool) -> None:
        self.fd, self.tls, self._tunnel = self.sock.fileno(), route.secure(), route.tunnel
        self.receive = self.sock.recvmsg_into if kernel else self.sock.recv_into

    def raise_if_refused(self) -> None:
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(code, os.strerror(code))

    def greet(self) -> bool:
        """Takes one step through proxy and TLS handshake when the socket is ready; True at the last."""
        if self._tunnel and not self._open_tunnel():
            return False
        if self.tls is None:
            return True
        heard = self._receive("in the TLS handshake") if self.tls.begun else b""
        done, reply = self.tls.shake(heard)
        self.sock.sendall(reply)
        return done

    def _open_tunnel(self) -> bool:
        """Takes one step of asking a proxy for a tunnel."""
        if self._heard is None:
            self.sock.sendall(self._tunnel)
            self._heard = b""
            return False
        self._heard += self._receive("when asked for a tunnel")
        if not tunnel_opened(self._heard):
            return False
        self._tunnel = b""
        return True

    def _receive(self, when: str) -> bytes:
        heard = self.sock.recv(_SHAKE_BYTES)
        if not heard:
            raise ConnectionResetError(errno.ECONNRESET, f"closed by the other side {when}")
        return heard

    def still_open(self) -> bool:
        """Whether the peer left an idle connection open. Reads what came: TLS may send records, HTTP may only
        close.

        A server whose TLS never stops sending must not hold up the other connections.
        """
        if self.tls is not None and self.tls.closed:  # it said so with its answer, ahead of its FIN
            return False
        try:
            for _ in range(_IDLE_READS):
                heard = self.sock.recv(_IDLE_BYTES)
                if not heard or self.tls is None or self.tls.open(heard) or self.tls.closed:
                    return False
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def loss(self) -> tuple[Outcome, str]:
        """How a read of nothing is to be recorded: the kernel reports a reset once, perhaps to a send."""
        if self.failed is None:
            return Outcome.TRUNCATED, CLOSED_EARLY
        return failure_of(self.failed), str(self.failed)

    def surely_unread(self) -> bool:
        """Whether the peer cannot have read the request, after a close without an answer.

        Not to be asked after a read that failed: the kernel reports a reset once, and then a close.

        Proven where the kernel took none of it, or where the peer's FIN came and acknowledged none of it: a
        peer that had received a byte before it closed would have acknowledged that byte at the latest with
        its FIN. A reset acknowledges nothing and proves nothing.
        """
        if self.refused:
            return True
        now = read_tcp_info(self.sock)
        if self.before is None or now is None or now.bytes_acked != self.before.bytes_acked:
            return False
        try:
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return False

    def count_loss(self, exchange: Exchange) -> None:
        """Records what the kernel counted on this connection since the request was sent."""
        now = read_tcp_info(self.sock)
        if self.before is not None and now is not None:
            resent = now.retransmits - self.before.retransmits  # below 0: the peer said so after the answer
            exchange.retransmits = max(exchange.retransmits, 0) + max(resent, 0)
            exchange.out_of_order = (
                max(exchange.out_of_order, 0) + now.out_of_order - self.before.out_of_order
            )
        self.before = now


def open_socket(family: int) -> socket.socket:
    """Raises OSError."""
    try:
        return socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        if error.errno != errno.EMFILE:  # the limit of the whole machine has words of its own
            raise
        what = "the load generator has no more open files (ulimit -n)"
        raise OSError(error.errno, what) from error


def connect(route: Route, replica: int, now: int, *, kernel: bool) -> Connection:
    """Starts connecting; raises OSError where that fails at once."""
    sock = open_socket(route.address.family)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if kernel:
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        code = sock.connect_ex(route.address.sockaddr)
        if code not in _CONNECTING:
            raise OSError(code, os.strerror(code))
    except OSError:
        sock.close()
        raise
    return Connection(sock, now, route, replica, kernel=kernel)


def transmit(connection: Connection, poller: Poller, head: bytes, body: bytes) -> None:
    """Sends a request. A failure shows in the next read: the server may have answered before it closed."""
    connection.refused = False
    try:
        if connection.tls is not None:
            head, body = connection.tls.seal(head, body), b""
        taken = connection.sock.sendmsg((head, body))
    except BlockingIOError:
        taken = 0
    except OSError:
        connection.refused = True
        return
    if taken < len(head) + len(body):
        connection.rest = memoryview(head + body)[taken:]
        poller.modify(connection.fd, select.POLLIN | select.POLLOUT)


def transmit_rest(connection: Connection, poller: Poller) -> None:
    assert connection.rest is not None
    try:
        connection.rest = connection.rest[connection.sock.send(connection.rest) :]
    except BlockingIOError:
        return
    except OSError as error:
        connection.rest = connection.rest[:0]
        if not isinstance(error, BrokenPipeError):  # that is of a close, which the next read finds
            connection.failed = error
    if not connection.rest:
        connection.rest = None
        poller.modify(connection.fd, select.POLLIN)


def unopened(error: Exception) -> Outcome:
    """The outcome of a request whose connection could not be opened."""
    ours = isinstance(error, OSError) and error.errno in _OWN_LIMITS
    return Outcome.NO_SOCKET if ours else Outcome.CONNECT_FAILED


def failure_of(error: OSError) -> Outcome:
    if isinstance(error, ssl.SSLError):
        return Outcome.MALFORMED
    return Outcome.TIMEOUT if error.errno == errno.ETIMEDOUT else Outcome.RESET
