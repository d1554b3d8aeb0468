"""Whether a request on a connection that closed can have been read: on real sockets, in every order."""

import errno
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from unittest.mock import Mock

import pytest

from harness.host.resolve import Address
from harness.load.connection import Connection, connect, transmit, transmit_rest
from harness.load.route import Route
from harness.load.tcp_info import read_tcp_info
from harness.records.layout import Outcome

HEAD, BODY = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n", b"{}"


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way = Route(Address(socket.AF_INET, listener.getsockname()), "127.0.0.1", None)
        connection = connect(way, 0, 0, kernel=False)
        peer, _ = listener.accept()
        with connection.sock, peer:
            yield connection, peer


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def send(connection: Connection) -> None:
    with select.epoll() as poller:
        poller.register(connection.fd, select.POLLIN)
        connection.before = read_tcp_info(connection.sock)
        transmit(connection, poller, HEAD, BODY)
    time.sleep(0.05)  # whatever it provokes arrives


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            OSError(errno.EMFILE, "Too many open files"),
            r"^\[Errno \d+\] the load generator .* \(ulimit -n\)$",
        ),
        (OSError(errno.ENFILE, "Too many open files in system"), r"Too many open files in system$"),
    ],
    ids=["of this process", "of the machine"],
)
def test_descriptors_that_ran_out_here_are_not_taken_for_a_fault_of_the_server(
    error: OSError, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Route(Address(socket.AF_INET, ("127.0.0.1", 1)), "127.0.0.1", None)
    monkeypatch.setattr(socket, "socket", Mock(side_effect=error))
    with pytest.raises(OSError, match=shown):
        connect(way, 0, 0, kernel=False)


def test_an_idle_connection_is_open_until_a_close_reaches_it(pair: tuple[Connection, socket.socket]) -> None:
    connection, peer = pair
    assert connection.still_open()
    peer.close()
    assert not connection.still_open()


def test_bytes_that_nobody_asked_for_spoil_an_idle_connection(pair: tuple[Connection, socket.socket]) -> None:
    connection, peer = pair
    peer.send(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert not connection.still_open()


def test_a_close_ahead_of_the_send_is_proof(pair: tuple[Connection, socket.socket]) -> None:
    connection, peer = pair
    peer.close()
    send(connection)
    assert connection.surely_unread()


def test_a_reset_ahead_of_the_send_takes_no_byte(pair: tuple[Connection, socket.socket]) -> None:
    connection, peer = pair
    reset(peer)
    send(connection)
    assert connection.refused
    assert connection.surely_unread()


@pytest.mark.parametrize("wait_s", [0.0, 0.1])
def test_a_close_after_the_request_was_read_is_none(
    pair: tuple[Connection, socket.socket], wait_s: float
) -> None:
    connection, peer = pair
    send(connection)
    assert peer.recv(4096) == HEAD + BODY
    time.sleep(wait_s)
    peer.close()
    time.sleep(0.05)
    assert not connection.surely_unread()


@pytest.mark.parametrize("read", [True, False])
def test_a_reset_after_the_send_is_none(pair: tuple[Connection, socket.socket], read: bool) -> None:
    connection, peer = pair
    send(connection)
    if read:
        peer.recv(4096)
    reset(peer)
    time.sleep(0.05)
    assert not connection.surely_unread()


@pytest.mark.parametrize("closed_first", [False, True])
def test_a_reset_that_the_rest_of_a_request_met_is_recorded_as_one(
    pair: tuple[Connection, socket.socket], closed_first: bool
) -> None:
    connection, peer = pair
    with select.epoll() as poller:
        poller.register(connection.fd, select.POLLIN)
        transmit(connection, poller, HEAD, bytes(32 << 20))
        assert connection.rest is not None
        if closed_first:
            peer.shutdown(socket.SHUT_WR)
            time.sleep(0.05)
        reset(peer)
        time.sleep(0.05)
        transmit_rest(connection, poller)
    assert connection.rest is None
    assert connection.sock.recv(1) == b""
    assert connection.loss()[0] is (Outcome.TRUNCATED if closed_first else Outcome.RESET)


def test_an_open_connection_proves_nothing(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    send(connection)
    assert not connection.surely_unread()


class TalkativeTls:
    """TLS that takes every record for a message of its own, or has failed."""

    closed = False

    def open(self, data: bytes) -> bytes:
        return b""

    def seal(self, *parts: bytes) -> bytes:
        raise ssl.SSLError("the peer has sent an alert")


def test_an_idle_connection_whose_tls_does_not_stop_is_given_up(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, peer = pair
    connection.tls = TalkativeTls()  # type: ignore[assignment]
    peer.sendall(b"x" * 1000)
    assert connection.still_open()
    peer.sendall(b"x" * 200_000)
    assert not connection.still_open()
    assert connection.sock.recv(1) == b"x"  # it was not read to its end


def test_a_close_that_tls_announced_ends_a_connection_before_it_comes(
    pair: tuple[Connection, socket.socket],
) -> None:
    connection, _ = pair
    connection.tls = TalkativeTls()  # type: ignore[assignment]
    assert connection.still_open()
    connection.tls.closed = True
    assert not connection.still_open()


def test_a_send_that_tls_refuses_is_a_send_that_failed(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.tls = TalkativeTls()  # type: ignore[assignment]
    send(connection)
    assert connection.refused
