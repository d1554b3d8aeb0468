"""A server of a few lines whose every byte the test decides."""

import json
import re
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from harness.load.job import LoadResult
from harness.records.layout import Outcome
from tests.factories.sockets import accepting

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def event(**document: object) -> bytes:
    data = f"data: {json.dumps(document, separators=(',', ':'))}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


def delta(**delta: object) -> bytes:
    return event(choices=[{"index": 0, "delta": delta}])


def text(content: str) -> bytes:
    return delta(content=content)


def outcomes(result: LoadResult) -> list[Outcome]:
    return [Outcome(outcome) for outcome in result.records.requests["outcome"]]


def assert_in_order(rows: np.ndarray) -> None:
    """Each request was due, sent and answered in this order."""
    stamps = ("intended_ns", "sent_ns", "first_text_ns", "last_text_ns", "end_ns")
    for before, after in pairwise(stamps):
        assert np.all(rows[before] <= rows[after])


@dataclass
class Peer:
    """One accepted connection; the script talks through it."""

    sock: socket.socket
    number: int  # of the connection
    served: int = 0  # requests read on it
    body: bytes = b""

    def say(self, *parts: bytes) -> None:
        self.sock.sendall(b"".join(parts))

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


@dataclass
class Server:
    url: str
    heads: list[bytes] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)  # their bodies
    peers: list[Peer] = field(default_factory=list)

    @property
    def connections(self) -> int:
        return len(self.peers)


@contextmanager
def serve(
    script: Callable[[Peer], None],
    greet: Callable[[Peer], None] | None = None,
    tls: ssl.SSLContext | None = None,
    tunnel: ssl.SSLContext | None = None,
) -> Iterator[Server]:
    """`script` answers each request; `greet` runs when a connection is accepted.

    Asked for a tunnel, it speaks TLS in it, as `tunnel` says, and is the far end itself.
    """
    server = Server("")

    def talk(sock: socket.socket, number: int) -> None:
        server.peers.append(peer := Peer(sock, number))
        try:
            if tls is not None:
                peer.sock = tls.wrap_socket(peer.sock, server_side=True)
            if greet is not None:
                greet(peer)
            while method := _next_request(peer, server.heads):
                if method == b"CONNECT" and tunnel is not None:
                    peer.say(b"HTTP/1.1 200 Go on\r\n\r\n")
                    peer.sock = tunnel.wrap_socket(peer.sock, server_side=True)
                    continue
                if method in (b"OPTIONS", b"HEAD"):  # as a client asks to have a connection open
                    peer.say(b"HTTP/1.1 405 No\r\ncontent-length: 2\r\n\r\nno")  # to HEAD too, as some do
                    continue
                server.requests.append(peer.body)
                peer.served += 1
                script(peer)
        except OSError:
            return  # the test closed the connection, or the client did

    with accepting(talk) as address:
        server.url = f"{'https' if tls else 'http'}://{address}/v1/chat/completions"
        try:
            yield server
        finally:
            for peer in server.peers:
                peer.sock.close()


def _next_request(peer: Peer, heads: list[bytes]) -> bytes:
    """Its method; empty at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.sock.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    match = _LENGTH.search(head)
    wanted = int(match[1]) if match else 0
    while len(body) < wanted:
        more = peer.sock.recv(1 << 20)
        if not more:
            return b""
        body += more
    peer.body = body
    heads.append(head)
    return head.partition(b" ")[0]
