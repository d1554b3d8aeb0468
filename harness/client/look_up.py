"""GETs of the same few pages during a measurement, at a tenth of the CPU that httpx takes."""

import http.client
import io
import select
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from harness.client.answer import Answer
from harness.client.body import read_body
from harness.client.limits import Account, LimitError, Limits
from harness.errors import SetupError, reason
from harness.host.access import Access
from harness.host.resolve import resolve
from harness.untrusted import Secrets, one_line

if TYPE_CHECKING:
    from harness.client.client import Client

_PIECE_BYTES = 65536


class LookUp:
    """Keeps its connections open. For one thread."""

    def __init__(self, access: Access, limits: Limits) -> None:
        self._access, self._limits, self._secrets = access, limits, Secrets(access.credentials)
        self._headers = access.headers_outside()
        self._connections: dict[tuple[str, str], _Connection] = {}
        self._clients: dict[str, Client | None] = {}  # by URL; None: no proxy

    def ask(self, url: str) -> Answer:
        """Raises SetupError if no answer comes, or one beyond the limits."""
        if (client := self._through_proxy(url)) is not None:
            return client.ask("GET", url, limits=self._limits)
        parts = urlsplit(self._access.asked(url))
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        try:
            return self._exchange(url, self._connection(parts.scheme, parts.netloc), path)
        except (OSError, http.client.HTTPException, LimitError, ValueError) as error:  # of a negative chunk
            self._connections.pop((parts.scheme, parts.netloc)).close()
            words = one_line(self._secrets.hidden(reason(error)), 200)
            raise SetupError(words or type(error).__name__, where=url) from None

    def _through_proxy(self, url: str) -> "Client | None":
        if url not in self._clients:
            self._clients[url] = None
            if urllib.request.getproxies():  # httpx takes long to import
                from harness.client.client import Client
                from harness.host.proxy import proxy_for

                if proxy_for(url):
                    self._clients[url] = Client("", self._access)
        return self._clients[url]

    def _exchange(self, url: str, connection: "_Connection", path: str) -> Answer:
        connection.account = account = Account(self._limits)
        connection.timeout = account.left_s(None)
        connection.close_if_spoilt()
        connection.request("GET", path, headers=self._headers)
        with connection.getresponse() as answer:
            account.head_over = True
            coding = answer.headers.get("content-encoding", "")
            body, pieces = read_body(_parts(answer, account), coding, account)
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(url, answer.status, headers, body, pieces, self._secrets)

    def _connection(self, scheme: str, host: str) -> "_Connection":
        if (scheme, host) not in self._connections:
            connection = _Connection(host)
            if scheme == "https":
                connection = _SecureConnection(host)
                connection.trust = self._access.certificates.context()
            self._connections[scheme, host] = connection
        return self._connections[scheme, host]

    def close(self) -> None:
        for opened in (*self._connections.values(), *self._clients.values()):
            if opened is not None:
                opened.close()
        self._connections.clear()
        self._clients.clear()


def _parts(answer: http.client.HTTPResponse, account: Account) -> Iterator[bytes]:
    """The body in pieces: http.client makes room at once for as much as the server announces."""
    if answer.length is None and not answer.chunked and "content-length" in answer.headers:
        raise http.client.HTTPException("the answer announces an impossible length")
    if (answer.length or 0) > account.limits.body_bytes:
        raise LimitError(account.long_body)
    while piece := answer.read(_PIECE_BYTES):
        yield piece
    if answer.length:
        raise http.client.HTTPException(f"the answer ended {answer.length} bytes early")


class _Connection(http.client.HTTPConnection):
    """Reads answers on account."""

    account: Account
    address: str | None = None  # which answered: to find it, each address is connected to

    def connect(self) -> None:
        self.address = self.address or resolve(self.host, self.port).host
        self.sock = socket.create_connection((self.address, self.port), self.timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close_if_spoilt(self) -> None:
        """Closes one that its server closed after the last answer, or sent what nobody asked for; the next
        request opens it again.
        """
        if self.sock is None:
            return
        poller = select.poll()  # `select` takes no descriptor above 1023
        poller.register(self.sock, select.POLLIN)
        if poller.poll(0):
            self.close()

    def response_class(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:  # type: ignore[override]  # called as the class would be
        return http.client.HTTPResponse(_Socket(sock, self.account), *args, **options)  # type: ignore[arg-type]  # makes a file, and no more is asked of it


class _SecureConnection(_Connection):
    default_port = http.client.HTTPS_PORT
    trust: ssl.SSLContext

    def connect(self) -> None:
        super().connect()
        assert self.sock is not None
        self.sock = self.trust.wrap_socket(self.sock, server_hostname=self.host)


class _Socket:
    def __init__(self, sock: socket.socket, account: Account) -> None:
        self._sock, self._account = sock, account

    def makefile(self, _mode: str) -> io.BufferedReader:
        raw = self._sock.makefile("rb", buffering=0)  # keeps the socket open beyond its close by http.client
        return io.BufferedReader(_Received(self._sock, raw, self._account), _PIECE_BYTES)


class _Received(io.RawIOBase):
    def __init__(self, sock: socket.socket, raw: Any, account: Account) -> None:
        self._sock, self._raw, self._account = sock, raw, account

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._account.left_s(None)
        if self._sock.fileno() >= 0:
            self._sock.settimeout(left)
        try:
            count: int = self._raw.readinto(buffer)
        except TimeoutError:
            raise LimitError(self._account.late) from None
        self._account.receive(count)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
