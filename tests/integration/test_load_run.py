"""Whole windows against scripted sockets: outcomes, connections, caps, workers and early ends."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from itertools import pairwise
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from harness.host import helper_process
from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Progress, Promised, StampSource
from harness.load.transport import Transport
from harness.mockserver import running
from harness.records.layout import UNKNOWN, Outcome, Phase
from tests.integration import helpers
from tests.integration.load_server import (
    END,
    HEAD,
    Peer,
    Server,
    assert_in_order,
    delta,
    outcomes,
    serve,
    text,
)
from tests.waiting import alive, command_line, until


def answer(peer: Peer) -> None:
    peer.say(HEAD, text("a"), text("b"), END)


def job(
    server: Server | str, count: int, schedule: ClosedLoop | OpenLoop | None = None, **settings: object
) -> LoadJob:
    url = server if isinstance(server, str) else server.url
    bodies = [b'{"n":%d}' % i for i in range(count)]
    options = {"request_timeout_s": 5.0, "drain_timeout_s": 5.0, "workers": 1, **settings}
    return LoadJob(url, Access(), bodies, schedule or ClosedLoop(2), **options)  # type: ignore[arg-type]  # options are LoadJob's own fields


def every(milliseconds: float, count: int) -> np.ndarray:
    return (np.arange(count) * milliseconds * 1e6).astype(np.int64)


@pytest.mark.parametrize("stamps", ["kernel", "user"])
def test_closed_loop_records_every_request_and_event(stamps: StampSource) -> None:
    with serve(answer) as server:
        result = run_load(job(server, 20, ClosedLoop(3), stamps=stamps, warmup_requests=4))
    rows, events = result.records.requests, result.records.events
    assert outcomes(result) == [Outcome.OK] * 20
    assert rows["seq"].tolist() == list(range(20))
    assert rows["phase"].tolist() == [Phase.WARMUP] * 4 + [Phase.MEASURE] * 16
    assert list(result.records.texts) == ["ab"] * 20
    assert sorted(server.requests) == sorted(b'{"n":%d}' % i for i in range(20))
    assert events["seq"].tolist() == [seq for seq in range(20) for _ in range(3)]
    assert_in_order(rows)
    assert np.all(rows["sent_ns"] >= 0)
    assert np.all(rows["connect_ns"] == 0)
    assert (server.connections, result.client.connections) == (3, 3)
    assert result.client.stamp_source == stamps
    assert len(rows) == 20
    assert (result.unsent, result.interrupted, result.client.lost_workers) == (0, False, 0)


def test_times_are_the_servers_own() -> None:
    """The peer is on the same clock, so what it saw bounds what the client may say."""
    seen: list[tuple[int, int, int]] = []

    def slow(peer: Peer) -> None:
        received = time.monotonic_ns()
        peer.say(HEAD)
        time.sleep(0.02)
        before = time.monotonic_ns()
        peer.say(text("a"))
        time.sleep(0.01)
        seen.append((received, before, time.monotonic_ns()))
        peer.say(END)

    with serve(slow) as server:
        result = run_load(job(server, 3, ClosedLoop(1)))
    rows = result.records.requests
    for row, (received, before, last) in zip(rows, seen, strict=True):
        slack = result.client.stamp_uncertainty_ms * 1e6
        assert row["sent_ns"] + result.t0_monotonic_ns <= received
        assert row["first_text_ns"] + result.t0_monotonic_ns >= before - slack
        assert row["end_ns"] + result.t0_monotonic_ns >= last - slack


def test_open_loop_leaves_at_its_times_whatever_the_server_does() -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.15)
        answer(peer)

    intended = every(10, 12)
    with serve(slow) as server:
        result = run_load(job(server, 12, OpenLoop(intended)))
    rows = result.records.requests
    assert outcomes(result) == [Outcome.OK] * 12
    assert rows["intended_ns"].tolist() == intended.tolist()
    assert rows["sent_ns"][-1] < rows["end_ns"][0]  # the last left before the first was answered
    assert np.all(rows["sent_ns"] - rows["intended_ns"] - rows["connect_ns"] >= 0)
    assert result.client.send_lag_ms.samples == 12


@pytest.mark.parametrize("over_cap", ["wait", "drop"])
def test_over_the_cap_a_request_waits_or_is_dropped(over_cap: str) -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.1)
        answer(peer)

    with serve(slow) as server:
        result = run_load(job(server, 4, OpenLoop(every(25, 4), max_in_flight=1, over_cap=over_cap)))  # type: ignore[arg-type]  # both literals
    rows = result.records.requests
    if over_cap == "wait":
        assert outcomes(result) == [Outcome.OK] * 4
        assert rows["intended_ns"].tolist() == every(25, 4).tolist()
        assert np.all(rows["sent_ns"][1:] >= rows["end_ns"][:-1])
        assert result.client.held_at_cap == 3
        assert result.client.send_lag_ms.samples == 1  # the wait is the server's, not the client's
    else:
        assert result.client.held_at_cap == 0
        assert outcomes(result) == [Outcome.OK] + [Outcome.DROPPED] * 3
        assert rows["sent_ns"].tolist()[1:] == [UNKNOWN] * 3
        assert all("cap" in error for error in result.records.errors[1:])


def test_what_the_cap_held_back_until_the_window_closed_is_dropped() -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.3)
        answer(peer)

    schedule = OpenLoop(every(20, 4), max_in_flight=1)
    with serve(slow) as server:
        result = run_load(job(server, 4, schedule, duration_s=0.2))
    assert outcomes(result) == [Outcome.OK] + [Outcome.DROPPED] * 3
    assert "window closed" in result.records.errors[1]


def test_a_warm_connection_that_the_server_closed_is_replaced() -> None:
    def once(peer: Peer) -> None:
        answer(peer)
        peer.close()  # keep-alive promised, not kept

    with serve(once) as server:
        result = run_load(job(server, 4, ClosedLoop(1, every(30, 4))))
    assert outcomes(result) == [Outcome.OK] * 4
    assert np.all(result.records.requests["connect_ns"][1:] > 0)
    assert result.records.requests["attempts"].tolist() == [1] * 4  # it was found closed before the send
    assert server.connections == 4


@pytest.mark.parametrize("stamps", ["kernel", "user"])
@pytest.mark.parametrize(("rude", "outcome"), [("close", Outcome.TRUNCATED), ("reset", Outcome.RESET)])
def test_a_request_that_was_read_is_never_sent_again(
    rude: str, outcome: Outcome, stamps: StampSource
) -> None:
    def script(peer: Peer) -> None:
        if peer.served == 1:
            answer(peer)
            return
        time.sleep(0.1)  # the work that a second sending would hide
        (peer.close if rude == "close" else peer.reset)()

    with serve(script) as server:
        result = run_load(job(server, 4, ClosedLoop(1), stamps=stamps))
    rows = result.records.requests
    assert outcomes(result) == [Outcome.OK, outcome] * 2
    assert "closed after the request was sent" in result.records.errors[1]
    assert rows["attempts"].tolist() == [1] * 4
    assert rows["end_ns"][1] - rows["sent_ns"][1] >= 90_000_000
    assert len(server.requests) == 4


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="acknowledgements are delayed on demand")
@pytest.mark.parametrize("stamps", ["kernel", "user"])
def test_a_request_whose_reset_came_before_its_acknowledgement_is_not_sent_again(stamps: StampSource) -> None:
    def script(peer: Peer) -> None:
        if peer.served == 2:
            peer.reset()
            return
        answer(peer)
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)

    with serve(script) as server:
        result = run_load(job(server, 2, ClosedLoop(1), stamps=stamps))
    assert outcomes(result) == [Outcome.OK, Outcome.RESET]
    assert result.records.requests["attempts"].tolist() == [1, 1]
    assert len(server.requests) == 2


@pytest.mark.parametrize("begun", [False, True])
def test_a_reset_is_recorded_as_one_by_way_of_httpx_too(begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(peer: Peer) -> None:
        if begun:
            peer.say(HEAD, text("a"))
            time.sleep(0.02)
        peer.reset()

    monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (Transport.HTTPX, ""))
    with serve(script) as server:
        result = run_load(job(server, 2, ClosedLoop(1)))
    assert outcomes(result) == [Outcome.RESET] * 2
    assert all("reset by peer" in error for error in result.records.errors)
    assert list(result.records.texts) == ["a" if begun else ""] * 2


@pytest.mark.parametrize("begun", [False, True])
def test_a_close_has_the_same_error_text_by_way_of_httpx(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(peer: Peer) -> None:
        if begun:
            peer.say(HEAD, text("a"))
            time.sleep(0.02)
        peer.close()

    with serve(script) as server:
        exact = run_load(job(server, 2, ClosedLoop(1)))
        monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (Transport.HTTPX, ""))
        through_httpx = run_load(job(server, 2, ClosedLoop(1)))
    assert outcomes(through_httpx) == outcomes(exact) == [Outcome.TRUNCATED] * 2
    assert list(through_httpx.records.errors) == list(exact.records.errors)


def test_connections_that_httpx_opened_ahead_carry_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was opened with a request that is not a POST, and that the server refuses with a body."""
    monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (Transport.HTTPX, ""))
    with serve(answer) as server:
        result = run_load(job(server, 8, ClosedLoop(4)))
    assert outcomes(result) == [Outcome.OK] * 8
    assert server.connections == 4


def test_an_answer_ends_with_its_framing_by_way_of_httpx_too(monkeypatch: pytest.MonkeyPatch) -> None:
    over: list[int] = []

    def script(peer: Peer) -> None:
        peer.say(HEAD, text("a"), END.removesuffix(b"0\r\n\r\n"))
        time.sleep(0.02)
        over.append(time.monotonic_ns())
        peer.say(b"0\r\n\r\n")

    monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (Transport.HTTPX, ""))
    with serve(script) as server:
        result = run_load(job(server, 1, ClosedLoop(1)))
    (row,) = result.records.requests
    assert outcomes(result) == [Outcome.OK]
    assert row["last_text_ns"] + result.t0_monotonic_ns < over[0] <= row["end_ns"] + result.t0_monotonic_ns


def test_nothing_is_sent_again_once_an_answer_began() -> None:
    def script(peer: Peer) -> None:
        if peer.served == 1:
            answer(peer)
        else:
            peer.say(HEAD, text("a"))
            time.sleep(0.02)
            peer.reset()

    with serve(script) as server:
        result = run_load(job(server, 2, ClosedLoop(1)))
    assert outcomes(result) == [Outcome.OK, Outcome.RESET]
    assert list(result.records.texts) == ["ab", "a"]
    assert len(server.requests) == 2


def test_a_new_connection_that_fails_is_not_tried_for_ever() -> None:
    with serve(lambda peer: peer.reset()) as server:
        result = run_load(job(server, 2, ClosedLoop(1)))
    assert set(outcomes(result)) == {Outcome.RESET}
    assert len(server.requests) == 2


def test_connection_close_reconnects_and_keeps_the_cost_apart() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

    def script(peer: Peer) -> None:
        peer.say(head, b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n')
        peer.close()

    with serve(script) as server:
        result = run_load(job(server, 3, ClosedLoop(1)))
    rows = result.records.requests
    assert outcomes(result) == [Outcome.OK] * 3
    assert np.all(rows["connect_ns"][1:] > 0)
    assert np.all(rows["sent_ns"][1:] >= rows["intended_ns"][1:] + rows["connect_ns"][1:])


@pytest.mark.parametrize("transport", [Transport.KERNEL_STAMPS, Transport.HTTPX, Transport.HTTP2])
def test_nobody_listens(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (transport, ""))
    seen: list[Progress] = []
    result = run_load(job("http://127.0.0.1:9/v1", 3, OpenLoop(every(20, 3))), progress=seen.append)
    assert outcomes(result) == [Outcome.CONNECT_FAILED] * 3
    assert {progress.sent for progress in seen} == {0}
    assert set(result.records.errors) == {f"[Errno {errno.ECONNREFUSED}] {os.strerror(errno.ECONNREFUSED)}"}
    assert result.records.requests["end_ns"][2] >= 40_000_000  # one failure did not stop the window
    assert any("opened ahead" in note for note in result.client.notes)


def test_a_name_that_nobody_knows() -> None:
    result = run_load(job("http://engine.invalid:8000/v1", 2))
    assert outcomes(result) == [Outcome.CONNECT_FAILED] * 2
    assert all(result.records.errors)


def test_failures_do_not_stop_the_window() -> None:
    def script(peer: Peer) -> None:
        match int(peer.body[5:-1]):
            case 1:
                body = b'{"error":{"message":"no room"}}'
                peer.say(b"HTTP/1.1 503 Busy\r\ncontent-length: %d\r\n\r\n" % len(body), body)
            case 2:
                peer.say(b"junk junk\r\n\r\n")
            case 3:
                peer.say(HEAD, text("a"))
                peer.close()
            case 4:
                peer.say(b"HTTP/1.1 307 Moved\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n")
            case 5:
                time.sleep(2.0)
            case _:
                answer(peer)

    with serve(script) as server:
        result = run_load(job(server, 8, ClosedLoop(1), request_timeout_s=0.2))
    assert outcomes(result) == [
        Outcome.OK,
        Outcome.HTTP_ERROR,
        Outcome.MALFORMED,
        Outcome.TRUNCATED,
        Outcome.HTTP_ERROR,
        Outcome.TIMEOUT,
        Outcome.OK,
        Outcome.OK,
    ]
    assert result.records.errors[1] == "no room"
    assert result.records.requests["http_status"].tolist()[1:5] == [503, UNKNOWN, 200, 307]
    assert np.all(result.records.requests["end_ns"] > 0)


@pytest.mark.parametrize(("users", "workers", "hung"), [(1, 1, 3), (4, 1, 8), (4, 2, 8)])
def test_a_closed_loop_that_only_times_out_ends_after_two_rounds(users: int, workers: int, hung: int) -> None:
    def script(peer: Peer) -> None:
        if int(peer.body[5:-1]) >= 10:
            peer.say(HEAD)  # as an engine whose scheduler hangs behind its HTTP server
            time.sleep(9.0)
        answer(peer)

    with serve(script) as server:
        result = run_load(job(server, 90, ClosedLoop(users), request_timeout_s=0.3, workers=workers))
    ends = [Outcome(outcome) for outcome in outcomes(result)]
    assert ends[:10] == [Outcome.OK] * 10
    assert ends.count(Outcome.TIMEOUT) in range(hung, hung + users + 1)
    assert ends.count(Outcome.CANCELLED) <= users
    assert hung <= result.timeouts <= ends.count(Outcome.TIMEOUT)
    assert result.closed_by == "silence"
    assert result.unsent == 90 - len(ends) > 0


def test_an_open_loop_goes_on_when_its_requests_time_out() -> None:
    with serve(lambda peer: time.sleep(9.0)) as server:
        result = run_load(job(server, 20, OpenLoop(every(50, 20)), request_timeout_s=0.2))
    assert outcomes(result) == [Outcome.TIMEOUT] * 20
    assert set(result.records.errors) == {"the answer did not end within 0.2 s of its send"}
    assert (result.closed_by, result.timeouts, result.unsent) == ("schedule", 20, 0)


@pytest.mark.parametrize(("silent", "last"), [(range(3), 0), (range(17, 20), 3)])
def test_timeouts_at_the_end_of_an_open_loop_are_counted(silent: range, last: int) -> None:
    """The first three time out while others are still sent; a busy machine may answer those 2 s late."""

    def script(peer: Peer) -> None:
        if int(peer.body[5:-1]) in silent:
            time.sleep(9.0)
        answer(peer)

    with serve(script) as server:
        result = run_load(job(server, 20, OpenLoop(every(200, 20)), request_timeout_s=3.0))
    assert outcomes(result).count(Outcome.TIMEOUT) == 3
    assert (result.closed_by, result.timeouts) == ("schedule", last)


def test_an_early_error_answer_to_a_large_upload_is_read() -> None:
    def script(peer: Peer) -> None:
        answer(peer)

    def greet(peer: Peer) -> None:
        peer.sock.recv(1000)  # the upload never fits
        peer.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        time.sleep(0.05)
        peer.close()

    with serve(script, greet) as server:
        one = LoadJob(
            server.url, Access(), [b"x" * (16 << 20)], ClosedLoop(1), workers=1, request_timeout_s=5.0
        )
        result = run_load(one)
    assert outcomes(result) == [Outcome.HTTP_ERROR]


def test_a_large_request_leaves_whole() -> None:
    body = os.urandom(8 << 20)
    with serve(answer) as server:
        result = run_load(LoadJob(server.url, Access(), [body, body], ClosedLoop(1), workers=1))
    assert outcomes(result) == [Outcome.OK] * 2
    assert server.requests == [body, body]


def test_the_window_closes_after_its_duration() -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.03)
        answer(peer)

    with serve(slow) as server:
        result = run_load(job(server, 1000, ClosedLoop(2), duration_s=0.3))
    assert set(outcomes(result)) == {Outcome.OK}
    assert result.unsent == 1000 - len(result.records.requests)
    assert 0 < len(result.records.requests) <= 20, "at most ten answers of 30 ms in each slot"


@pytest.mark.parametrize("transport", [Transport.KERNEL_STAMPS, Transport.HTTPX])
def test_what_is_still_open_after_the_drain_is_a_timeout(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(peer: Peer) -> None:
        peer.say(HEAD, text("a"))
        time.sleep(3)

    with serve(stuck) as server:
        monkeypatch.setattr("harness.load.run.choose_transport", lambda _job: (transport, ""))
        result = run_load(job(server, 2, ClosedLoop(2), drain_timeout_s=0.2))
    assert outcomes(result) == [Outcome.TIMEOUT] * 2
    assert result.records.requests["connect_ns"].tolist() == [0, 0]
    assert list(result.records.texts) == ["a", "a"]


def test_the_drain_counts_from_the_last_send_where_each_request_has_a_connection_of_its_own() -> None:
    """As mlx-lm answers. Counted from the start of this long window the last request would be cut off."""

    def slow(peer: Peer) -> None:
        time.sleep(0.3)
        peer.say(HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"), text("a"), END)
        peer.close()

    with serve(slow) as server:
        result = run_load(job(server, 4, ClosedLoop(1), drain_timeout_s=0.5))
    assert outcomes(result) == [Outcome.OK] * 4


@pytest.mark.parametrize("drain_s", [0.5, 5.0])
@pytest.mark.parametrize("stamps", ["kernel", "user"])
def test_a_stream_that_trickles_past_its_deadline_is_a_timeout(drain_s: float, stamps: StampSource) -> None:
    def trickle(peer: Peer) -> None:
        if int(peer.body[5:-1]) % 2:
            answer(peer)
            return
        peer.say(HEAD)
        for _ in range(300):
            peer.say(text("a"))
            time.sleep(0.01)

    with serve(trickle) as server:
        limits = {"request_timeout_s": 0.5, "drain_timeout_s": drain_s}
        result = run_load(job(server, 4, ClosedLoop(4), stamps=stamps, **limits))
    assert outcomes(result) == [Outcome.TIMEOUT, Outcome.OK] * 2
    requests = result.records.requests[::2]
    assert np.all(requests["end_ns"] - requests["sent_ns"] >= 490_000_000)
    assert np.all(requests["text_events"] < 150)  # at least 10 ms apart: cut off in the first half


_NEXT = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"%b"}]}\n\n'


@pytest.mark.parametrize(
    ("tail", "outcome", "error"),
    [
        (_NEXT % b"stop", Outcome.OK, ""),
        (b"data: [DONE]\n\n", Outcome.OK, ""),
        (b"", Outcome.UNFINISHED, "without a finish reason"),
        (_NEXT % b"abort" + b"data: [DONE]\n\n", Outcome.ABORTED, '"abort"'),
        (_NEXT % b"Error" + b"data: [DONE]\n\n", Outcome.ABORTED, '"Error"'),
    ],
)
def test_how_a_stream_ends_decides_whether_it_is_an_answer(tail: bytes, outcome: Outcome, error: str) -> None:
    def script(peer: Peer) -> None:
        chunk = b"%x\r\n%b\r\n" % (len(tail), tail) if tail else b""
        peer.say(HEAD, text("a"), chunk, b"0\r\n\r\n")

    with serve(script) as server:
        result = run_load(job(server, 1))
        careless = run_load(job(server, 1, promised=Promised(done=False)))
    assert outcomes(result) == [outcome]
    assert error in result.records.errors[0]
    assert outcomes(careless) == [Outcome.OK if outcome is Outcome.UNFINISHED else outcome]


def test_an_answer_begins_with_the_name_of_its_tool_call() -> None:
    def call(**function: str) -> bytes:
        calls = [{"index": 0, "id": "c", "function": function}]
        return delta(tool_calls=calls)

    def script(peer: Peer) -> None:
        peer.say(HEAD, call(name="look_up", arguments=""))
        time.sleep(0.1)
        peer.say(call(arguments="{}"), END)

    with serve(script) as server:
        result = run_load(job(server, 2, ClosedLoop(1)))
    rows = result.records.requests
    assert list(result.records.texts) == ["look_up{}"] * 2
    assert np.all(rows["last_text_ns"] - rows["first_text_ns"] >= 90_000_000)
    assert rows["text_events"].tolist() == [2, 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_spread_start_takes_the_slots_out_of_lockstep(workers: int) -> None:
    def steady(peer: Peer) -> None:
        time.sleep(0.6)
        answer(peer)

    for spread, order in ((False, "together"), (True, "spread")):
        with serve(steady) as server:
            result = run_load(job(server, 12, ClosedLoop(4, spread=spread), workers=workers))
        rows, client = result.records.requests, result.client
        assert outcomes(result) == [Outcome.OK] * 12
        second = np.sort(rows["intended_ns"])[4:8]
        assert client.start == order
        if spread:
            assert np.all(np.diff(second) > second[0] / 10)  # a quarter of an answer, on a busy machine less
            assert client.spread_over_ns == second[-1]
            assert np.all(rows["sent_ns"] >= rows["intended_ns"])
        else:
            assert second[-1] - second[0] < second[0] / 4
            assert client.spread_over_ms is None


def test_loss_and_the_clock_are_told() -> None:
    with serve(answer) as server:
        result = run_load(job(server, 4))
    rows = result.records.requests
    assert np.all(rows["retransmits"] >= 0)
    assert np.all(rows["out_of_order"] >= 0)
    assert result.client.clock_step_ms == 0


def test_stop_returns_quickly_with_everything_so_far() -> None:
    def script(peer: Peer) -> None:
        if peer.body == b'{"n":0}':
            answer(peer)
        else:
            peer.say(HEAD, text("a"))
            stop.set()
            time.sleep(3)

    stop = threading.Event()
    with serve(script) as server:
        result = run_load(job(server, 100, ClosedLoop(1)), stop=stop)
    assert result.interrupted
    assert outcomes(result) == [Outcome.OK, Outcome.CANCELLED]
    assert result.unsent == 98


def test_two_workers_share_one_schedule() -> None:
    intended = every(5, 31)
    with serve(answer) as server:
        result = run_load(job(server, 31, OpenLoop(intended), workers=2))
    rows = result.records.requests
    assert outcomes(result) == [Outcome.OK] * 31
    assert rows["intended_ns"].tolist() == intended.tolist()
    assert rows["worker"].tolist() == [seq % 2 for seq in range(31)]
    assert result.records.events["seq"].tolist() == [seq for seq in range(31) for _ in range(3)]
    assert result.client.workers == 2


@pytest.mark.usefixtures("fresh_helpers")
def test_a_dead_worker_is_told_and_the_rest_is_kept() -> None:
    killed = threading.Event()

    def script(peer: Peer) -> None:
        if int(peer.body[5:-1]) < 10:
            answer(peer)
            return
        if not killed.is_set() and int(peer.body[5:-1]) > 100:  # some records were flushed by then
            killed.set()
            os.kill(_children()[0], signal.SIGKILL)
        time.sleep(0.02)
        answer(peer)

    with serve(script) as server:
        result = run_load(job(server, 200, OpenLoop(every(12, 200)), workers=2))
    rows = result.records.requests
    assert result.client.lost_workers == 1
    lost = rows["worker"] == rows["worker"][rows["outcome"] == Outcome.LOST][0]
    assert np.all(rows["outcome"][~lost] == Outcome.OK)
    assert Outcome.OK in rows["outcome"][lost]
    gone = np.flatnonzero(rows["outcome"] == Outcome.LOST)
    assert "died" in result.records.errors[gone[0]]
    assert np.all(rows["intended_ns"][gone] == every(12, 200)[rows["seq"][gone]])
    assert len(rows) + result.unsent == 200


def _children() -> list[int]:
    """Load workers only: other tests of this process may have left children that are not reaped yet."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    pids = [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]
    return [int(pid) for pid in pids if b"harness.load" in command_line(pid)]


def test_ctrl_c_is_left_to_the_parent_and_a_dead_parent_ends_its_workers() -> None:
    """The window runs in a child of ours, which is killed; its worker must not outlive it."""
    code = (
        "from harness.load import run_load; from harness.load.job import *; import sys;"
        "run_load(LoadJob(sys.argv[1], Access(), [b'{}'], ClosedLoop(1), workers=1))"
    )
    asked = threading.Event()

    def hold(peer: Peer) -> None:
        asked.set()
        time.sleep(10)

    with serve(hold) as server:
        parent = subprocess.Popen([sys.executable, "-c", code, server.url], cwd=Path(__file__).parents[2])
        try:
            assert asked.wait(20)
            (worker,) = map(int, Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split())
            os.kill(worker, signal.SIGINT)
            time.sleep(0.1)
            assert Path(f"/proc/{worker}").exists()
        finally:
            parent.kill()
            parent.wait()
        until(lambda: not alive(worker), "the worker is gone", seconds=5)


@pytest.mark.time
def test_progress_is_told() -> None:
    def slow(peer: Peer) -> None:
        time.sleep(0.05)
        answer(peer)

    told: list[Progress] = []
    with serve(slow) as server:
        run_load(job(server, 30, ClosedLoop(1)), progress=told.append)
    assert told
    assert all(a.done <= b.done for a, b in pairwise(told))
    assert told[-1].recent_ttft_ms is not None
    assert 40 < told[-1].recent_ttft_ms < 1000


def test_a_parent_that_does_not_read_does_not_hold_up_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal may hold its output back, or a person stop `bench` for a while, longer than a pipe holds
    pulses."""
    count, all_came = 30, threading.Event()

    def small() -> tuple[Connection, Connection]:
        here, there = Pipe()
        with socket.socket(fileno=os.dup(there.fileno())) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        return here, there

    def counted(peer: Peer) -> None:
        answer(peer)
        if len(server.requests) == count:
            all_came.set()

    for module in (helper_process, helpers):
        monkeypatch.setattr(module, "Pipe", small)
    read: list[bool] = []
    with serve(counted) as server:
        asked = job(server, count, OpenLoop(every(100, count)))
        run_load(asked, progress=lambda _: read or read.append(all_came.wait(20)))
    assert read == [True]


def test_a_job_without_requests() -> None:
    result = run_load(job("http://127.0.0.1:9/", 0))
    assert (len(result.records.requests), result.unsent, result.client.workers) == (0, 0, 0)


@pytest.mark.parametrize("known", [True, False])
def test_a_server_that_hangs_up_after_each_answer_loses_no_request_once_that_is_known(known):
    """As llama.cpp does: its head says Keep-Alive, and the next request meets the close.

    Where the answer of the closed socket to that request is read ahead of the close, it is a reset.
    """
    with running(ttft_ms=1, gap_ms=0, hang_up=True) as server:
        body = b'{"messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":2}'
        url = f"{server.url}/v1/chat/completions"
        promised = Promised(keeps_connection=not known)
        result = run_load(LoadJob(url, Access(), [body] * 40, ClosedLoop(1), workers=1, promised=promised))
    lost = [outcome for outcome in outcomes(result) if outcome is not Outcome.OK]
    assert lost in ([], *([] if known else ([Outcome.TRUNCATED], [Outcome.RESET])))
    assert result.client.connect_ms.samples >= 39
