"""Whether a request on a connection that closed can have been read: on real sockets, in every order."""

import select
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from harness.load.flow import Flow, connect, transmit
from harness.load.tcp_info import read_tcp_info
from harness.load.way import Address, Way

HEAD, BODY = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n", b"{}"


@pytest.fixture
def pair() -> Iterator[tuple[Flow, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        way = Way(Address(socket.AF_INET, listener.getsockname()), "127.0.0.1", None)
        flow = connect(way, 0, kernel=False)
        peer, _ = listener.accept()
        with flow.sock, peer:
            yield flow, peer


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def send(flow: Flow) -> None:
    with select.epoll() as poller:
        poller.register(flow.fd, select.POLLIN)
        flow.before = read_tcp_info(flow.sock)
        transmit(flow, poller, HEAD, BODY)
    time.sleep(0.05)  # whatever it provokes arrives


def test_an_idle_connection_is_open_until_a_close_reaches_it(pair: tuple[Flow, socket.socket]) -> None:
    flow, peer = pair
    assert flow.still_open()
    peer.close()
    assert not flow.still_open()


def test_bytes_that_nobody_asked_for_spoil_an_idle_connection(pair: tuple[Flow, socket.socket]) -> None:
    flow, peer = pair
    peer.send(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert not flow.still_open()


def test_a_close_ahead_of_the_send_is_proof(pair: tuple[Flow, socket.socket]) -> None:
    flow, peer = pair
    peer.close()
    send(flow)
    assert flow.surely_unread()


def test_a_reset_ahead_of_the_send_takes_no_byte(pair: tuple[Flow, socket.socket]) -> None:
    flow, peer = pair
    reset(peer)
    send(flow)
    assert flow.refused
    assert flow.surely_unread()


@pytest.mark.parametrize("wait_s", [0.0, 0.1])
def test_a_close_after_the_request_was_read_is_none(pair: tuple[Flow, socket.socket], wait_s: float) -> None:
    flow, peer = pair
    send(flow)
    assert peer.recv(4096) == HEAD + BODY
    time.sleep(wait_s)
    peer.close()
    time.sleep(0.05)
    assert not flow.surely_unread()


@pytest.mark.parametrize("read", [True, False])
def test_a_reset_after_the_send_is_none(pair: tuple[Flow, socket.socket], read: bool) -> None:
    flow, peer = pair
    send(flow)
    if read:
        peer.recv(4096)
    reset(peer)
    time.sleep(0.05)
    assert not flow.surely_unread()


def test_an_open_connection_proves_nothing(pair: tuple[Flow, socket.socket]) -> None:
    flow, _ = pair
    send(flow)
    assert not flow.surely_unread()
