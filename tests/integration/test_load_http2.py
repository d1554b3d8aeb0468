"""HTTP/2, where it is asked for: on shared connections, and nothing else is spoken instead."""

import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from harness.errors import SetupError
from harness.host.access import Access
from harness.host.tls import Certificates
from harness.load import run_load
from harness.load.http2 import unreachable
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Promised
from harness.mockserver import running
from harness.records.layout import UNKNOWN, Outcome
from harness.run.setup import prepare
from harness.run.setup.options import RunOptions
from tests.factories.sockets import PEM, server_tls
from tests.integration.h2_frames import Script, goaway, good, serving, settings
from tests.integration.h2_gateway import gateway
from tests.integration.h2_server import TOKENS, running_h2
from tests.integration.scripted import MEASURED, SMALL, bench, bench_in, only_cell, run_folder

MAX_CONCURRENT_STREAMS = 3  # the number of this setting
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":4,"stream":true}'


def job(url):
    return LoadJob(
        url=f"{url}/v1/chat/completions",
        access=Access(),
        bodies=[BODY] * 12,
        schedule=ClosedLoop(4),
        request_timeout_s=10,
        drain_timeout_s=10,
        workers=1,
        http2=True,
    )


def test_answers_are_read_and_the_way_is_recorded():
    with running_h2() as server:
        result = run_load(job(server.url))
    rows = result.records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert (rows["output_tokens"] == TOKENS).all()
    assert (rows["text_events"] == TOKENS).all()
    assert result.client.stamp_source == "user"
    assert any(note.startswith("HTTP/2") for note in result.client.notes)


@pytest.mark.parametrize("dealt", [True, False])
def test_requests_go_to_the_url_that_their_record_names(dealt):
    """One URL answers, at the other nobody listens."""
    with running_h2() as server:
        two = replace(job(server.url), other_urls=("http://127.0.0.1:9/v1/chat/completions",))
        rows = run_load(replace(two, replicas=np.arange(12) % 2) if dealt else two).records.requests
    assert (rows["outcome"][rows["replica"] == 0] == Outcome.OK).all()
    assert (rows["outcome"][rows["replica"] == 1] == Outcome.CONNECT_FAILED).all()
    assert set(rows["replica"]) == {0, 1}
    if dealt:
        assert (rows["replica"] == rows["seq"] % 2).all()


def test_a_server_without_it_fails_the_requests_and_is_not_asked_in_another_way():
    with running(ttft_ms=1, gap_ms=0) as server:
        result = run_load(job(server.url))
        assert server.truth()["records"] == []
    assert not (result.records.requests["outcome"] == Outcome.OK).any()


@pytest.mark.parametrize(
    ("flags", "reason"), [({}, "answers in HTTP/1"), ({"tls_pem": str(PEM)}, "TLS handshake")]
)
def test_a_run_ends_with_an_error_before_anything_is_measured_at_a_server_without_it(tmp_path, flags, reason):
    with running(**flags) as server:
        done = bench_in(
            *(tmp_path, "run", "--scenario", "fixed-length", "--backends", f"openai={server.url}"),
            *("--http2", "--ca-cert", str(PEM)),
            *SMALL,
            code=3,
        )
    assert reason in done.stderr
    assert "hint: leave out --http2" in done.stderr
    assert not list(run_folder(tmp_path).glob("cells/*"))


@pytest.mark.time
def test_a_whole_run_measures_what_its_server_does(here):
    """Readiness and the probe come over HTTP/1.1, to the same port; the load over HTTP/2."""
    with running(ttft_ms=300, gap_ms=20) as server, gateway(server.url) as front:
        bench(
            *("run", "--scenario", "fixed-length", "--backends", f"openai={front.url}", "--http2"),
            *("--ca-cert", str(PEM), "--concurrency", "8", "--requests", "32", "--output-tokens", "16"),
            *("--repeats", "1", "--no-report", "--set", "verdict.cool_down_s=0"),
            code=MEASURED,
        )
    cell = only_cell()
    assert front.posts >= 32
    assert front.connections["http/1.1"]
    assert cell["requests"]["outcomes"] == {"ok": 32}
    assert cell["client"]["connections"] == 1
    assert any(note.startswith("HTTP/2") for note in cell["client"]["notes"])
    assert cell["ttft_ms"]["p50"] == pytest.approx(310, abs=10)  # the gateway adds to 300
    assert cell["tpot_ms"]["p50"] == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize("alpn", [(), ["h2"]])
def test_a_server_with_it_is_reached(alpn):
    with running_h2(tls=server_tls(alpn) if alpn else None) as server:
        asked = replace(job(server.url), access=Access(certificates=Certificates(str(PEM))))
        assert unreachable(asked) == ""


def all_ok(result):
    assert list(result.records.errors) == [""] * len(result.records.requests)
    return bool((result.records.requests["outcome"] == Outcome.OK).all())


def test_a_server_that_allows_few_requests_on_a_connection_gets_more_connections():
    with running_h2(most_streams=2) as server:
        result = run_load(replace(job(server.url), schedule=ClosedLoop(8), bodies=[BODY] * 40))
    assert all_ok(result)
    assert server.connections == result.client.connections == 4
    assert (result.records.requests["connect_ns"] == 0).all()  # all were opened ahead


@pytest.mark.parametrize(
    ("schedule", "times"), [(ClosedLoop(4), 0), (OpenLoop(np.array([0, 1_100, 2_200, 3_300]) * 1_000_000), 1)]
)
def test_connections_that_a_load_waits_for_are_opened_together(schedule, times):
    """The first one says that each carries one request. The others get their settings once all three are
    there, ahead of the closed loop; in the open loop the first one is busy until then.
    """
    connections, there = itertools.count(1), threading.Event()
    three = threading.Barrier(3, there.set, timeout=15)

    def greet(peer):
        if next(connections) > 1:
            three.wait()
        peer.say(settings((MAX_CONCURRENT_STREAMS, 1)))

    def answer(peer, stream):
        there.wait(15)
        peer.say(good(stream))

    with serving(Script(greet, greeted=4, answer=answer if times else None, times=times)) as (url,):
        assert all_ok(run_load(replace(job(url), bodies=[BODY] * 4, schedule=schedule)))


@pytest.mark.parametrize(
    ("times", "code", "attempts"), [(0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 0, 3), (1, 2, 1)]
)
def test_a_request_that_a_closing_server_did_not_take_is_sent_again(times, code, attempts):
    """A server that closes after so many requests names the last that it took. An error is a failure."""

    def leave(peer, _stream):
        peer.say(goaway(0, code))
        while True:  # until the client closes, so that this connection waits for no other request
            peer.hear()

    with serving(Script(answer=leave if times else None, times=times)) as (url,):
        rows = run_load(replace(job(url), bodies=[BODY], schedule=ClosedLoop(1))).records.requests
    taken = not code and times < 3
    assert Outcome(rows["outcome"][0]) is (Outcome.OK if taken else Outcome.RESET)
    assert rows["attempts"][0] == attempts


def test_many_requests_share_one_connection():
    with running_h2() as server:
        assert all_ok(run_load(replace(job(server.url), schedule=ClosedLoop(12))))
    assert server.connections == 1


def test_a_server_that_keeps_no_connection_gets_one_for_each_request():
    with running_h2() as server:
        assert all_ok(run_load(replace(job(server.url), promised=Promised(keeps_connection=False))))
    assert server.connections == 12


def test_the_drain_counts_from_the_last_send():
    """Each request has a connection of its own, whose settings take half of a drain limit, as answers do."""

    def greet(peer):
        time.sleep(0.8)
        peer.say(settings())

    def answer(peer, stream):
        time.sleep(0.8)
        peer.say(good(stream))

    with serving(Script(greet, greeted=4, answer=answer, times=4)) as (url,):
        two = replace(job(url), bodies=[BODY] * 2, schedule=ClosedLoop(1), drain_timeout_s=1.45)
        result = run_load(replace(two, promised=Promised(keeps_connection=False)))
    assert all_ok(result)


def test_a_body_of_many_windows_arrives():
    with running_h2() as server:
        bodies = [b'{"filler":"' + b"x" * 3_000_000 + b'"}'] * 4
        assert all_ok(run_load(replace(job(server.url), bodies=bodies)))


@pytest.mark.parametrize(
    ("limit", "ended"),
    [
        ({"request_timeout_s": 3.0}, Outcome.TIMEOUT),
        ({"patience_ns": np.array([3_000_000_000, UNKNOWN])}, Outcome.ABANDONED),
    ],
)
def test_a_request_that_is_given_up_takes_no_other_with_it(limit, ended):
    """The first of two on one connection is never answered; the second is, after the first was given up."""
    reset = threading.Event()

    def answer(peer, stream):
        second = peer.request()
        while stream not in peer.resets:
            peer.hear()
        reset.set()
        peer.say(good(second))

    with serving(Script(answer=answer)) as (url,):
        apart = OpenLoop(np.array([0, 1_000_000_000]))
        two = replace(job(url), bodies=[BODY] * 2, schedule=apart, **limit)
        rows = run_load(two).records.requests
    assert reset.is_set()
    assert rows["outcome"].tolist() == [ended, Outcome.OK]
    assert rows["connect_ns"].tolist() == [0, 0]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_asked_for_a_tunnel(monkeypatch, scheme):
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))
    with running_h2(tls=server_tls(["h2"]) if scheme == "https" else None, tunnel=True) as server:
        place = server.url.rpartition("/")[2]
        monkeypatch.setenv(f"{scheme}_proxy", f"http://user:word@{place}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert all_ok(run_load(job(f"{scheme}://engine.invalid")))
    (head,) = server.heads
    assert head.startswith(b"CONNECT engine.invalid:%d HTTP/1.1" % (443 if scheme == "https" else 80))
    assert b"proxy-authorization: Basic dXNlcjp3b3Jk" in head


def test_other_proxies_are_not_for_http2(monkeypatch):
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    result = run_load(job("http://engine.invalid"))
    assert (result.records.requests["outcome"] == Outcome.CONNECT_FAILED).all()
    assert "plain HTTP proxy" in result.records.errors[0]


def test_without_its_package_it_is_refused_before_anything_is_started(monkeypatch):
    monkeypatch.setattr(prepare, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="h2") as error:
        prepare.prepare(RunOptions("fixed-length", "truth", http2=True))
    assert "'./llm-servebench[http2]'" in error.value.hint
