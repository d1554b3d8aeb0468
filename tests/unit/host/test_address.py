"""The address that a URL leads to."""

import pytest

from harness.host import address
from harness.host.address import address_of, is_loopback, is_own, origin_of, port_of


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://a", 80),
        ("https://a/v1", 443),
        ("https://a:80", 80),
        ("http://[::1]", 80),
        ("http://[::1]:8000/x?y=1", 8000),
        ("HTTPS://A", 443),
    ],
)
def test_a_url_without_a_port_has_that_of_its_scheme(url, port):
    assert port_of(url) == port


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://A:443/metrics", True),
        ("HTTPS://a", True),
        ("http://a", False),
        ("https://a:8443", False),
        ("https://b", False),
    ],
)
def test_two_spellings_of_one_server_have_one_origin(other, same):
    assert (origin_of(other) == origin_of("https://a/v1")) is same


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("http://127.0.0.1:8000/a", True),
        ("http://[::1]:8000/a", True),
        ("HTTP://LocalHost:8000/a", True),
        ("http://localhost:8000/b", False),
        ("http://localhost:8001/a", False),
        ("https://localhost:8000/a", False),
        ("http://127.0.0.2:8000/a", False),  # a server of its own may listen there
    ],
)
def test_the_names_of_this_machine_have_one_address(other, same):
    assert (address_of(other) == address_of("http://localhost:8000/a")) is same


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"]
)
def test_an_address_of_this_machine_to_itself_is_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "10.0.0.1", "localhost.example", "128.0.0.1", "::ffff:10.0.0.1", "fe80::1"]
)
def test_every_other_host_is_not(host):
    assert not is_loopback(host)


class Socket:
    """Binds what a machine with the address 10.1.2.3 can bind."""

    def __init__(self, *_):
        pass

    def bind(self, place):
        if place[0] not in ("10.1.2.3", "fd00::2"):
            raise OSError(99, "Cannot assign requested address")

    def close(self):
        pass


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("10.1.2.3", True),
        ("fd00::2", True),
        ("my-box", True),
        ("10.1.2.4", False),
        ("fd00::3", False),
        ("gpu-box", False),
        ("", False),
    ],
)
def test_an_address_of_this_machine_is_its_own(monkeypatch, host, own):
    """A CPU box that named its server by its address on the network got prompts for a GPU."""
    monkeypatch.setattr(address.socket, "socket", Socket)
    monkeypatch.setattr(address.socket, "gethostname", lambda: "my-box")
    assert is_own(host) is own
