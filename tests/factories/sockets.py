"""Servers on sockets of 127.0.0.1: every connection in a thread of its own, TLS by one certificate."""

import itertools
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

PEM = Path(__file__).parents[1] / "integration" / "load_tls.pem"  # self-signed for 127.0.0.1, for tests only


def server_tls(alpn: Sequence[str] = ()) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PEM)
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


@contextmanager
def hanging() -> Iterator[tuple[str, int]]:
    """An address where every connection waits: its backlog is full, and nobody takes it up."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as opened:
        for _ in range(2):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()


@contextmanager
def accepting(talk: Callable[[socket.socket, int], object]) -> Iterator[str]:
    """Its host and port. `talk` gets each connection and its number, from 1 on, and closes it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept() -> None:
        for number in itertools.count(1):
            try:
                sock, _ = listener.accept()
            except OSError:
                return  # closed: the test is over
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=talk, args=(sock, number), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield "{}:{}".format(*listener.getsockname())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
