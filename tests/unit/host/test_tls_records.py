"""TLS records arrive in any pieces; what comes out is the plaintext, no more and no less."""

import contextlib
import functools
import itertools
import ssl
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.host.tls import Secure

_PEM = Path(__file__).parents[2] / "integration" / "load_tls.pem"
_PARTS = (b"data: one\n\n", b"x" * 20_000, b"data: [DONE]\n\n")


@functools.cache
def _of_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_PEM)
    return context


@functools.cache
def _of_client(trusted: bool) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=_PEM if trusted else None)


class _Server:
    def __init__(self) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = _of_server().wrap_bio(self.incoming, self.outgoing, server_side=True)

    def shake(self, data: bytes) -> bytes:
        self.incoming.write(data)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()


def _connected(trusted: bool = True) -> tuple[Secure, _Server]:
    server = _Server()
    client = Secure(_of_client(trusted), "127.0.0.1")
    heard, done = b"", False
    for _ in range(4):
        done, said = client.shake(heard)
        heard = server.shake(said)
        if done:
            break
    assert done
    assert client.open(heard) == b""  # session tickets
    return client, server


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 20_000), max_size=12))
def test_cut_anywhere(cuts: list[int]) -> None:
    client, server = _connected()
    for part in _PARTS:
        server.tls.write(part)
    with pytest.raises(ssl.SSLWantReadError):
        server.tls.unwrap()  # close_notify
    wire = server.outgoing.read()
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    assert b"".join(client.open(wire[a:b]) for a, b in itertools.pairwise(edges)) == b"".join(_PARTS)
    assert client.closed


def test_a_request_is_sealed_whole() -> None:
    client, server = _connected()
    server.incoming.write(client.seal(b"POST / HTTP/1.1\r\n\r\n", b"{}"))
    assert server.tls.read(100) + server.tls.read(100) == b"POST / HTTP/1.1\r\n\r\n{}"


def test_a_record_that_was_altered_is_an_error() -> None:
    client, server = _connected()
    server.tls.write(b"data")
    wire = bytearray(server.outgoing.read())
    wire[-1] ^= 1
    with pytest.raises(ssl.SSLError):
        client.open(bytes(wire))


def test_an_untrusted_certificate_is_an_error() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _connected(trusted=False)
