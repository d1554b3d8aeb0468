import socket

import pytest

from harness.engines.start import ports
from harness.errors import SetupError

HOST = "127.0.0.1"


@pytest.fixture
def given(tmp_path, monkeypatch):
    """The file in which the system says which ports it gives."""
    file = tmp_path / "range"
    monkeypatch.setattr(ports, "_GIVEN", file)
    return file


def test_a_port_is_none_that_the_system_gives(given):
    given.write_text("25000\t60999\n")
    found = [ports.free_port(HOST) for _ in range(50)]
    assert all(20_000 <= port < 25_000 for port in found)
    assert len(set(found)) > 40


def test_a_port_that_is_taken_is_left_alone(given):
    """Two are no gift of the system; one of them is taken."""
    given.write_text("20002 60999")
    with socket.socket() as taken:
        taken.bind((HOST, 20_000))
        assert {ports.free_port(HOST) for _ in range(20)} == {20_001}


def test_where_the_system_gives_all_ports_it_gives_one(given):
    given.write_text("1024 65535")
    assert ports.free_port(HOST) > 1024


@pytest.mark.parametrize("text", [None, "", "many", "32768 60999"])
def test_the_ports_of_kubernetes_and_ray_are_left_to_them(given, text):
    if text is not None:
        given.write_text(text)
    assert 20_000 <= ports.free_port(HOST) < 30_000


def test_an_address_of_another_machine_is_one_error():
    with pytest.raises(SetupError, match="has no address 192"):
        ports.free_port("192.0.2.1")


def test_two_ports_of_one_engine_differ(given):
    given.write_text("20002 60999")
    assert {ports.free_port(HOST, other_than=20_000) for _ in range(20)} == {20_001}
