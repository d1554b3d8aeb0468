"""Which proxy the environment names, in the forms that other programs take."""

import pytest

from harness.errors import SetupError
from harness.host.proxy import proxy_for, require_socks

SERVER = "http://engine.invalid/v1"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("named", ["proxy.corp:3128", "http://proxy.corp:3128", "HTTP://proxy.corp:3128"])
def test_a_proxy_without_a_scheme_is_plain_http(monkeypatch, named):
    monkeypatch.setenv("http_proxy", named)
    assert proxy_for(SERVER) == "http://proxy.corp:3128"


def test_credentials_of_a_proxy_stay_as_they_are(monkeypatch):
    monkeypatch.setenv("http_proxy", "me:w0rd@proxy.corp:3128")
    assert proxy_for(SERVER) == "http://me:w0rd@proxy.corp:3128"


@pytest.mark.parametrize("variable", ["all_proxy", "ALL_PROXY"])
def test_a_socks_proxy_needs_its_package(monkeypatch, variable):
    monkeypatch.setenv(variable, "socks5://127.0.0.1:1080")
    assert proxy_for(SERVER) == "socks5://127.0.0.1:1080"
    monkeypatch.setattr("harness.host.proxy.find_spec", {"socksio": "is there"}.get)
    require_socks(SERVER)
    monkeypatch.setattr("harness.host.proxy.find_spec", {}.get)
    with pytest.raises(SetupError, match="SOCKS") as raised:
        require_socks(SERVER)
    assert raised.value.where == variable
    assert raised.value.hint is not None
    assert "httpx[socks]" in raised.value.hint
    assert "NO_PROXY=engine.invalid" in raised.value.hint


@pytest.mark.parametrize(
    "named", ["socks://10.0.0.1:1080", "socks4://10.0.0.1:1080", "http://", "http://me:w0rd", "http://[::1"]
)
def test_a_proxy_that_cannot_be_used_is_one_error_without_its_password(monkeypatch, named):
    monkeypatch.setenv("http_proxy", named)
    with pytest.raises(SetupError, match="socks5://") as raised:
        proxy_for(SERVER)
    assert raised.value.where == "http_proxy"
    assert raised.value.hint == "set NO_PROXY=engine.invalid to send straight to the server"
    assert "w0rd" not in str(raised.value)


def test_a_server_that_takes_no_proxy_has_no_error(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks://10.0.0.1:1080")
    monkeypatch.setenv("no_proxy", "engine.invalid")
    assert proxy_for(SERVER) is None
    assert proxy_for("http://127.0.0.1:8000/v1") is None
    assert proxy_for("http://127.0.0.2:8000/v1") is None


@pytest.mark.parametrize(
    ("excepted", "host", "taken"),
    [
        ("10.0.0.0/8", "10.1.2.3", False),
        ("elsewhere.invalid, 10.1.2.3/8", "10.200.0.1", False),
        ("10.0.0.0/8", "11.0.0.1", True),
        ("10.0.0.0/8", "engine.invalid", True),
        ("fd00::/8", "[fd00::7]", False),
        ("fd00::/8", "10.1.2.3", True),
        ("10.0.0.0/99", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3", False),
    ],
)
def test_a_network_that_takes_no_proxy_is_read_as_curl_does(monkeypatch, excepted, host, taken):
    """Its requests went through the proxy, and the run was SUSPECT for it."""
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", excepted)
    assert (proxy_for(f"http://{host}:8000/v1/models") is not None) == taken
