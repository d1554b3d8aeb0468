"""TLS on the socket loop and on httpx with asyncio; proxies, which only the latter can go through."""

import os
import ssl
import threading
import time

import numpy as np
import pytest

from harness.host.access import Access
from harness.host.proxy import proxy_for
from harness.host.tls import Certificates
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, LoadResult, OpenLoop
from harness.load.transport import Transport, choose_transport
from harness.records.layout import Outcome
from tests.factories.sockets import PEM, server_tls
from tests.integration.load_server import END, HEAD, Peer, Server, assert_in_order, outcomes, serve, text

_EVENT = text("a")


@pytest.fixture(
    params=[way for way in Transport if way is not Transport.HTTP2], ids=lambda transport: transport.name
)
def tls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setattr("harness.load.run.choose_transport", lambda job: (request.param, ""))
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    return server_tls()


def answer(peer: Peer) -> None:
    for part in (HEAD, _EVENT, _EVENT, END):
        peer.say(part)


def run(server: Server, count: int, schedule: ClosedLoop | OpenLoop, **limits: float) -> LoadResult:
    limits = {"request_timeout_s": 5.0, "drain_timeout_s": 5.0, **limits}
    bodies = [b'{"n":%d}' % i for i in range(count)]
    return run_load(LoadJob(server.url, Access(), bodies, schedule, workers=1, **limits))


def test_tls_streams_are_recorded(tls: ssl.SSLContext) -> None:
    with serve(answer, tls=tls) as server:
        result = run(server, 12, ClosedLoop(3))
    rows = result.records.requests
    assert outcomes(result) == [Outcome.OK] * 12
    assert list(result.records.texts) == ["aa"] * 12
    assert np.all(rows["connect_ns"] == 0)
    assert (server.connections, result.client.connections) == (3, 3)
    assert_in_order(rows)


def test_an_untrusted_certificate_is_a_failed_connection(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with serve(answer, tls=tls) as server:
        result = run(server, 1, ClosedLoop(1))
    assert outcomes(result) == [Outcome.CONNECT_FAILED]
    assert "certificate" in result.records.errors[0].lower()


def test_tls_is_stamped_by_the_kernel_where_it_can() -> None:
    transport, reason = choose_transport(LoadJob("https://127.0.0.1:9/v1", Access(), [], ClosedLoop(1)))
    assert (transport, reason) == (Transport.KERNEL_STAMPS, "")


def test_open_loop_with_drops(tls: ssl.SSLContext) -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.2)
        answer(peer)

    intended = (np.arange(4) * 10e6).astype(np.int64)
    with serve(slow, tls=tls) as server:
        result = run(server, 4, OpenLoop(intended, max_in_flight=2, over_cap="drop"))
    assert outcomes(result) == [Outcome.OK] * 2 + [Outcome.DROPPED] * 2
    assert result.records.requests["intended_ns"].tolist() == intended.tolist()


def test_failures_keep_their_kind_and_what_came(tls: ssl.SSLContext) -> None:
    def script(peer: Peer) -> None:
        match int(peer.body[5:-1]):
            case 1:
                peer.say(b'HTTP/1.1 429 Slow\r\ncontent-length: 17\r\n\r\n{"error":"slower"}'[:-1])
            case 2:
                peer.say(b"junk junk\r\n\r\n")
            case 3:
                peer.say(HEAD, _EVENT)
                peer.close()
            case 4:
                peer.say(HEAD, _EVENT)
                time.sleep(2)
            case 5:
                peer.say(HEAD)
                time.sleep(2)
            case _:
                answer(peer)

    with serve(script, tls=tls) as server:
        result = run(server, 7, ClosedLoop(1), request_timeout_s=0.3)
    assert outcomes(result) == [
        Outcome.OK,
        Outcome.HTTP_ERROR,
        Outcome.MALFORMED,
        Outcome.TRUNCATED,
        Outcome.TIMEOUT,
        Outcome.TIMEOUT,
        Outcome.OK,
    ]
    assert list(result.records.texts)[3:6] == ["a", "a", ""]
    assert result.records.requests["connect_ns"][3] > 0


def test_a_warm_connection_that_the_server_closed_is_replaced(tls: ssl.SSLContext) -> None:
    def once(peer: Peer) -> None:
        answer(peer)
        peer.close()

    with serve(once, tls=tls) as server:
        result = run(server, 3, ClosedLoop(1, np.full(3, 50_000_000)))
    assert outcomes(result) == [Outcome.OK] * 3
    assert result.records.requests["attempts"].tolist() == [1] * 3


def test_a_request_that_was_read_is_never_sent_again(tls: ssl.SSLContext) -> None:
    def once(peer: Peer) -> None:
        if peer.served == 1:
            answer(peer)
        else:
            peer.close()

    with serve(once, tls=tls) as server:
        result = run(server, 3, ClosedLoop(1))
    assert outcomes(result) == [Outcome.OK, Outcome.TRUNCATED, Outcome.OK]
    assert result.records.requests["attempts"].tolist() == [1] * 3


def test_stop_cancels_what_is_open(tls: ssl.SSLContext) -> None:
    def stuck(peer: Peer) -> None:
        peer.say(HEAD, _EVENT)
        stop.set()
        time.sleep(3)

    stop = threading.Event()
    with serve(stuck, tls=tls) as server:
        job = LoadJob(server.url, Access(), [b"{}"] * 50, ClosedLoop(2), workers=1)
        result = run_load(job, stop=stop)
    assert result.interrupted
    assert set(outcomes(result)) == {Outcome.CANCELLED}
    assert result.unsent == 48


@pytest.mark.parametrize("begun", [False, True])
def test_tls_that_cannot_be_read_is_no_reset(tls: ssl.SSLContext, begun: bool) -> None:
    def script(peer: Peer) -> None:
        if begun:
            peer.say(HEAD + _EVENT)
        os.write(peer.sock.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))  # a record that nobody sealed
        time.sleep(0.05)

    with serve(script, tls=tls) as server:
        result = run(server, 2, ClosedLoop(1))
    assert outcomes(result) == [Outcome.MALFORMED] * 2
    assert all("bad record mac" in error for error in result.records.errors)


_NOTHING_SHOWN = Access()


def through(
    monkeypatch: pytest.MonkeyPatch, proxy: Server, scheme: str, access: Access = _NOTHING_SHOWN
) -> LoadResult:
    """Three requests to engine.invalid, by way of `proxy`."""
    kind, _, place = proxy.url.removesuffix("/v1/chat/completions").partition("://")
    monkeypatch.setenv(f"{scheme}_proxy", f"{kind}://user:word@{place}")
    monkeypatch.delenv("no_proxy", raising=False)
    return run_load(LoadJob(f"{scheme}://engine.invalid/v1", access, [b"{}"] * 3, ClosedLoop(1), workers=1))


def test_a_proxy_is_asked_for_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answer) as proxy:
        result = through(monkeypatch, proxy, "http")
    assert outcomes(result) == [Outcome.OK] * 3
    assert list(result.records.texts) == ["aa"] * 3
    assert np.all(result.records.requests["connect_ns"] == 0)
    assert proxy.connections == 1
    assert proxy.heads[0].startswith(b"POST http://engine.invalid/v1 HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic dXNlcjp3b3Jk" in proxy.heads[0]
    assert "through a proxy" in result.client.notes


def test_a_proxy_is_asked_for_a_tunnel_to_a_server_with_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    with serve(answer, tunnel=server_tls()) as proxy:
        result = through(monkeypatch, proxy, "https")
    assert outcomes(result) == [Outcome.OK] * 3
    assert np.all(result.records.requests["connect_ns"] == 0)
    asked, *requests = proxy.heads
    assert asked.startswith(b"CONNECT engine.invalid:443 HTTP/1.1\r\n")
    assert b"proxy-authorization" in asked
    assert len(requests) == 3
    assert not any(b"proxy-authorization" in head for head in requests)


def test_a_proxy_over_tls_is_trusted_as_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answer, tls=server_tls()) as proxy:
        result = through(monkeypatch, proxy, "http", Access(certificates=Certificates(str(PEM))))
    assert list(result.records.errors) == [""] * 3
    assert proxy.heads[-1].startswith(b"POST http://engine.invalid/v1 HTTP/1.1\r\n")


def test_a_proxy_that_refuses_a_tunnel_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(peer: Peer) -> None:
        peer.say(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n")

    with serve(refuse) as proxy:
        result = through(monkeypatch, proxy, "https")
    assert outcomes(result) == [Outcome.CONNECT_FAILED] * 3
    assert "HTTP/1.1 407 Who are you" in result.records.errors[0]


def test_a_proxy_that_hangs_up_is_a_failed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Peer.close) as proxy:
        result = through(monkeypatch, proxy, "https")
    assert outcomes(result) == [Outcome.CONNECT_FAILED] * 3


def test_loopback_takes_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert proxy_for("http://127.0.0.1:8000/v1") is None
    assert proxy_for("http://engine.invalid/v1") == "http://127.0.0.1:9"


def test_without_epoll_sockets_are_looked_at_with_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("select.epoll")
    transport, reason = choose_transport(LoadJob("http://127.0.0.1:9/v1", Access(), [], ClosedLoop(1)))
    assert transport is Transport.POLL
    assert "epoll" in reason
