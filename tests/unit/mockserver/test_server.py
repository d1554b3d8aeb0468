"""The server where it binds and accepts."""

import errno
import os
import socket

import pytest

from harness.errors import SetupError
from harness.mockserver import server as module
from harness.mockserver.habits import Habits
from harness.mockserver.options import Options
from harness.mockserver.script import Distribution
from harness.mockserver.server import Server


def server(host: str = "127.0.0.1", port: int = 0) -> Server:
    at_once = Distribution.parse("0")
    return Server(Options(Habits(), at_once, at_once, host=host, port=port))


def test_a_connection_that_finds_no_descriptor_free_is_accepted_when_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, accept, failures = server(), socket.socket.accept, [errno.EMFILE, errno.ENFILE]

    def accept_at_last(listener: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise OSError(code := failures.pop(0), os.strerror(code))
        return accept(listener)

    def accepted(sock: socket.socket, *_: object) -> None:
        sock.close()
        made.loop.stop()

    monkeypatch.setattr(socket.socket, "accept", accept_at_last)
    monkeypatch.setattr(module, "Connection", accepted)
    monkeypatch.setattr(module, "ACCEPT_AGAIN_NS", 0)
    with made._listener, socket.create_connection(made._listener.getsockname()):
        made.loop.run()
    assert failures == []


def test_a_port_that_is_taken_and_an_address_of_another_family_have_their_own_hints() -> None:
    with server()._listener as listener, pytest.raises(SetupError) as taken:
        server(port=listener.getsockname()[1])
    assert taken.value.hint == "choose another --port"
    with pytest.raises(SetupError) as other:
        server(host="::1")
    assert other.value.hint == "--host takes an IPv4 address of this machine"
