"""Sessions against scripted sockets: each turn carries the answers that came, after its think time."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from harness.apis import ANSWER, TOOL
from harness.host.access import Access
from harness.load import run_load
from harness.load.job import ClosedLoop, LoadJob, OpenLoop, Sessions
from harness.load.transport import Transport
from harness.records.layout import Outcome, Phase
from tests.integration.load_server import END, HEAD, Peer, delta, serve

MS = 1_000_000


def say(peer: Peer, *deltas: dict) -> None:
    peer.say(HEAD)
    for sent in deltas:
        peer.say(delta(**sent))
    peer.say(END)


def body(session: int, turn: int) -> bytes:
    """Asks `S.T`; earlier questions and marks for their answers go before it."""
    asked = [b'{"role":"user","content":"%d.%d"}' % (session, t) for t in range(turn + 1)]
    return b'{"messages":[%b]}' % (b"," + ANSWER + b",").join(asked)


def job(url, turns, schedule, think_ms=0, **settings):
    named = [s for s, count in enumerate(turns) for _ in range(count)]
    bodies = [body(s, t) for s, count in enumerate(turns) for t in range(count)]
    think = np.full(len(named), think_ms * MS, np.int64)
    sessions = Sessions(np.array(named, np.int32), think)
    options = {"request_timeout_s": 5.0, "drain_timeout_s": 5.0, "workers": 1, **settings}
    return LoadJob(url, Access(), bodies, schedule, sessions=sessions, **options)


def echo(peer: Peer) -> None:
    """Answers a question with itself and the number of messages: no two answers alike."""
    messages = json.loads(peer.body)["messages"]
    say(peer, {"content": f"re {messages[-1]['content']} "}, {"content": f'"{len(messages)}"\nü'})


def messages(server):
    return [json.loads(request)["messages"] for request in server.requests]


@pytest.mark.parametrize("settings", [{}, {"stamps": "user"}, {"workers": 2}])
@pytest.mark.parametrize(
    "schedule", [ClosedLoop(2), OpenLoop(np.arange(5, dtype=np.int64) * 5 * MS)], ids=["closed", "open"]
)
def test_each_turn_carries_the_answers_that_came(schedule, settings):
    turns = (3, 1, 4, 2, 3)
    with serve(echo) as server:
        result = run_load(job(server.url, turns, schedule, **settings))
    assert [Outcome(outcome) for outcome in result.records.requests["outcome"]] == [Outcome.OK] * sum(turns)
    assert result.unsent == 0
    for sent in messages(server):
        session, turn = map(int, sent[-1]["content"].split("."))
        expected = []
        for earlier in range(turn):
            expected += [
                {"role": "user", "content": f"{session}.{earlier}"},
                {"role": "assistant", "content": f're {session}.{earlier} "{2 * earlier + 1}"\nü'},
            ]
        assert sent[:-1] == expected
    assert len(set(server.requests)) == sum(turns)


def test_turns_wait_for_the_answer_and_the_think_time():
    with serve(echo) as server:
        result = run_load(job(server.url, (4, 4), ClosedLoop(2), think_ms=30))
    rows = result.records.requests
    for first in (0, 4):
        for turn in range(first + 1, first + 4):
            assert rows["intended_ns"][turn] == rows["end_ns"][turn - 1] + 30 * MS
    assert np.all(rows["sent_ns"] >= rows["intended_ns"])


@pytest.mark.time
def test_turns_are_sent_when_they_are_due():
    with serve(echo) as server:
        rows = run_load(job(server.url, (4, 4), ClosedLoop(2), think_ms=30)).records.requests
    assert np.all(rows["sent_ns"] - rows["intended_ns"] < 20 * MS)


def test_a_closed_loop_keeps_so_many_sessions_going():
    with serve(echo) as server:
        run_load(job(server.url, (2,) * 6, ClosedLoop(3)))
    order = [sent[-1]["content"] for sent in messages(server)]
    for session in range(3, 6):
        begun = order.index(f"{session}.0")
        assert sum(done.endswith(".1") for done in order[:begun]) >= session - 2


def test_a_turn_that_fails_is_its_sessions_last_and_the_rest_counts_as_unsent():
    def fail_once(peer: Peer) -> None:
        if peer.body == body(1, 0):
            peer.say(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno")
        else:
            echo(peer)

    with serve(fail_once) as server:
        result = run_load(job(server.url, (2, 3, 2), ClosedLoop(1)))
    rows = result.records.requests
    assert rows["seq"].tolist() == [0, 1, 2, 5, 6]
    assert rows["outcome"].tolist() == [Outcome.OK] * 2 + [Outcome.HTTP_ERROR] + [Outcome.OK] * 2
    assert (result.unsent, len(rows)) == (2, 5)


def test_what_the_cap_drops_ends_its_session():
    schedule = OpenLoop(np.zeros(3, np.int64), max_in_flight=1, over_cap="drop")
    with serve(echo) as server:
        result = run_load(job(server.url, (2, 2, 2), schedule))
    outcomes = result.records.requests["outcome"].tolist()
    assert outcomes.count(Outcome.DROPPED) == 2
    assert outcomes.count(Outcome.OK) == 2
    assert result.unsent == 2


def test_no_turn_begins_after_the_duration():
    with serve(echo) as server:
        result = run_load(job(server.url, (50,), ClosedLoop(1), think_ms=20, duration_s=0.8))
    assert 5 <= len(result.records.requests) <= 40
    assert result.unsent == 50 - len(result.records.requests)


def test_a_duration_begins_with_the_first_measured_turn():
    """Eight turns of warm-up take half a second: a duration of less than that begins after them."""

    def slow(peer: Peer) -> None:
        time.sleep(0.06)
        echo(peer)

    with serve(slow) as server:
        asked = job(server.url, (2,) * 40, ClosedLoop(1), duration_s=0.3, warmup_requests=8)
        rows = run_load(asked).records.requests
    measured = rows["sent_ns"][rows["phase"] == Phase.MEASURE]
    assert len(rows) - len(measured) == 8
    assert 1 < len(measured) <= 6


def test_the_first_tool_call_is_carried_on_with_its_result():
    calls = [
        {"index": 0, "id": "c7", "function": {"name": "look", "arguments": ""}},
        {"index": 1, "id": "c8", "function": {"name": "other", "arguments": "{}"}},
    ]

    def call_tool(peer: Peer) -> None:
        if len(json.loads(peer.body)["messages"]) > 1:
            echo(peer)
            return
        more = {"tool_calls": [{"index": 0, "function": {"arguments": '{"q":"ä"}'}}]}
        say(peer, {"reasoning_content": "hm"}, {"content": "So: "}, {"tool_calls": calls}, more)

    def bodies():
        ask = b'{"role":"user","content":"0.0"}'
        yield b'{"messages":[%b]}' % ask
        yield b'{"messages":[%b,%b,%b"content":"found"}]}' % (ask, ANSWER, TOOL)

    with serve(call_tool) as server:
        result = run_load(replace(job(server.url, (2,), ClosedLoop(1)), bodies=list(bodies())))
    _, answer, tool = messages(server)[1]
    assert answer == {
        "role": "assistant",
        "content": "So: ",
        "tool_calls": [
            {"id": "c7", "type": "function", "function": {"name": "look", "arguments": '{"q":"ä"}'}}
        ],
    }
    assert tool == {"role": "tool", "tool_call_id": "c7", "content": "found"}
    assert [call["name"] for call in json.loads(result.records.tool_calls[0])] == ["look", "other"]
    assert result.records.tool_calls[1] == ""


def test_a_result_that_no_call_asked_for_is_the_users_message():
    with serve(echo) as server:
        made = job(server.url, (2,), ClosedLoop(1))
        made.bodies[1] = b'{"messages":[%b,%b"content":"found"}]}' % (ANSWER, TOOL)
        run_load(made)
    assert messages(server)[1][1] == {"role": "user", "content": "found"}


def test_turns_on_httpx(monkeypatch):
    monkeypatch.setattr("harness.load.run.choose_transport", lambda job: (Transport.HTTPX, ""))
    with serve(echo) as server:
        result = run_load(job(server.url, (3, 2, 1), ClosedLoop(2), think_ms=5))
    assert result.client.stamp_source == "user"
    assert result.records.requests["outcome"].tolist() == [Outcome.OK] * 6
    assert messages(server)[-1][-1]["role"] == "user"
    longest = max(messages(server), key=len)
    assert [m["content"] for m in longest if m["role"] == "assistant"] == ['re 0.0 "1"\nü', 're 0.1 "3"\nü']
