"""A server of a few lines whose every byte the test decides."""

import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


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
    connections: int = 0


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
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    scheme = "https" if tls else "http"
    server = Server(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions")
    peers: list[Peer] = []

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.connections += 1
            peer = Peer(sock, server.connections)
            peers.append(peer)
            threading.Thread(target=talk, args=(peer,), daemon=True).start()

    def talk(peer: Peer) -> None:
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
                if method == b"HEAD":  # as a client asks to have a connection open
                    peer.say(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                    continue
                server.requests.append(peer.body)
                peer.served += 1
                script(peer)
        except OSError:
            return  # the test closed the connection, or the client did

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for peer in peers:
            peer.sock.close()
        thread.join(5)


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
