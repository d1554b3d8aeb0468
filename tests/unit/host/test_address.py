"""The address that a URL leads to."""

import pytest

from harness.host.address import port_of


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
