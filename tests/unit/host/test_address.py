"""The address that a URL leads to."""

import pytest

from harness.host.address import address_of, is_loopback, origin_of, port_of


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
