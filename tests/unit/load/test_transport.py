"""What carries a job, by the proxy on its way, and what is known of a connection through it."""

import asyncio
import errno

import httpx
import pytest

from harness.errors import SetupError
from harness.host.access import Access
from harness.load.connection import unopened
from harness.load.httpx_carrier import _failure, _Watch
from harness.load.job import ClosedLoop, LoadJob
from harness.load.transport import Transport, choose_transport
from harness.records.layout import Outcome

JOB = LoadJob("http://engine.invalid/v1", Access(), [], ClosedLoop(1), stamps="user")


@pytest.mark.parametrize(
    ("proxy", "through_httpx"), [("proxy.corp:3128", False), ("https://proxy.corp", True)]
)
def test_only_plain_http_proxies_are_on_the_exact_way(monkeypatch, proxy, through_httpx):
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    transport, note = choose_transport(JOB)
    assert (transport is Transport.HTTPX) == through_httpx
    assert "proxy" in note


@pytest.mark.parametrize(
    ("proxy", "said"), [("socks://127.0.0.1:1080", "socks5://"), ("socks5://127.0.0.1:1080", "socksio")]
)
def test_a_proxy_that_cannot_be_used_is_an_error_before_anything_is_sent(monkeypatch, proxy, said):
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr("harness.host.proxy.find_spec", {}.get)
    with pytest.raises(SetupError, match=said):
        choose_transport(JOB)


@pytest.mark.parametrize("way", ["connection", "socks"])
def test_connecting_through_any_proxy_is_known_apart_from_the_send(monkeypatch, way):
    watch, stamps = _Watch(), iter([10, 20, 35])
    monkeypatch.setattr("harness.load.httpx_carrier.time.monotonic_ns", lambda: next(stamps))

    async def follow():
        for event in (f"{way}.connect_tcp.started", f"{way}.connect_tcp.complete"):
            await watch(event, {})
        await watch("http11.send_request_headers.started", {})

    asyncio.run(follow())
    assert watch.connect_ns == 25


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (errno.EMFILE, Outcome.NO_SOCKET),
        (errno.ENFILE, Outcome.NO_SOCKET),
        (errno.EADDRNOTAVAIL, Outcome.NO_SOCKET),  # every port is in use
        (errno.ECONNREFUSED, Outcome.CONNECT_FAILED),
        (errno.EHOSTUNREACH, Outcome.CONNECT_FAILED),
    ],
)
def test_a_socket_that_this_machine_has_not_is_no_refusal_of_the_server(code, outcome):
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = OSError("All connection attempts failed")  # of anyio, which has no number
    error.__cause__.__cause__ = OSError(code, "words of the system")
    assert unopened(OSError(code, "words of the system")) is outcome
    assert _failure(error)[0] is outcome
