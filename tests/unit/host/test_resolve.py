"""Which address of a name is taken: one that answers, in the order of the name server."""

import select
import socket

import pytest

from harness.host import resolve as room
from harness.host.resolve import Address, resolve
from tests.factories.sockets import hanging


@pytest.fixture
def named(monkeypatch):
    """Gives a name its addresses."""

    def give(*addresses, families=(socket.AF_INET,) * 3):
        pairs = zip(families, addresses, strict=False)
        found = [(family, socket.SOCK_STREAM, 6, "", address) for family, address in pairs]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    monkeypatch.setattr(room, "_HEAD_START_S", 0.01)
    return give


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()


@pytest.fixture
def nobody():
    with socket.socket() as bound:  # and does not listen
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()


def test_an_address_of_a_family_that_this_machine_lacks_is_passed_over(named, server):
    named(("::1", 9), server, families=(999, socket.AF_INET))
    assert resolve("localhost", 9).sockaddr == server


def test_an_address_that_refuses_is_passed_over(named, nobody, server):
    named(nobody, server)
    assert resolve("two.test", 9).sockaddr == server


def test_an_address_that_hangs_does_not_hold_up_the_others(named, server):
    with hanging() as silent:
        named(silent, silent, server)
        assert resolve("two.test", 9).sockaddr == server


def test_the_first_of_two_that_answer_is_taken(named, server):
    with socket.create_server(("127.0.0.1", 0)) as other:
        named(server, other.getsockname())
        assert resolve("two.test", 9).sockaddr == server


def test_where_none_answers_the_first_is_tried(named, nobody):
    named(nobody, nobody)
    assert resolve("two.test", 9).sockaddr == nobody


def test_an_address_without_a_choice_is_not_tried(named):
    """The server would count a connection that is not of the load."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        named(server.getsockname())
        assert resolve("one.test", 9).sockaddr == server.getsockname()
        assert select.select([server], [], [], 0)[0] == []


def test_one_that_hangs_is_given_up(named, nobody, monkeypatch):
    monkeypatch.setattr(room, "_GIVE_UP_S", 0.05)
    with hanging() as silent:
        named(nobody, silent)
        assert resolve("two.test", 9).sockaddr == nobody


def test_a_name_that_is_not_known_stays_for_the_connection_to_say_so(monkeypatch):
    def unknown(*_, **__):
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert resolve("nowhere.test", 9) == Address(socket.AF_INET, ("nowhere.test", 9))


@pytest.mark.parametrize(
    ("sockaddr", "host"),
    [(("10.0.0.1", 9), "10.0.0.1"), (("::1", 9, 0, 0), "::1"), (("fe80::1", 9, 0, 2), "fe80::1%2")],
)
def test_the_host_of_an_address_names_the_interface_of_a_link_local_one(sockaddr, host):
    assert Address(socket.AF_INET6, sockaddr).host == host
