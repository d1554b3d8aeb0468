"""How fast a server is, from a few answers; and requests in flight together."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.client.answer import NoAnswer
from harness.errors import SetupError
from harness.host.access import Access
from harness.probe import first_look
from harness.probe.exchange import Seen
from harness.probe.together import side_by_side
from tests.unit.probe.answering import answered, read


def took(ttft_s, answer_s):
    """Of eleven tokens: ten gaps."""
    return replace(answered("x" * 11), text_s=(ttft_s, answer_s))


def test_the_slower_of_a_pair_counts():
    found = first_look._judged([took(0.1, 1.1), took(0.2, 0.7)], [took(0.1, 2.2)] * 4)
    assert (found.ttft_s, found.tpot_s) == (0.2, pytest.approx(0.1))
    assert found.slowdown == pytest.approx(2)


def test_what_was_not_seen_is_a_server_that_does_one_thing_at_a_time():
    alone = [took(0.1, 1.1)]
    assert first_look._judged(alone, []).slowdown == first_look.SIDE_BY_SIDE
    one_lost = [took(0.1, 1.1)] * 3 + [Seen(503, error="busy")]
    assert first_look._judged(alone, one_lost).slowdown == first_look.SIDE_BY_SIDE
    assert first_look._judged(alone, [took(0.1, 0.5)] * 4).slowdown == 1, "never faster than alone"


def test_what_was_not_seen_is_not_shown_as_seen():
    alone = [took(0.1, 1.1)]
    assert first_look._judged(alone, [took(0.1, 2.2)] * 4).together == (
        "with three others an answer takes 2.0 times as long"
    )
    refused = first_look._judged(alone, [took(0.1, 1.1)] * 2 + [Seen(429, error="slow down")] * 2)
    assert refused.together == (
        "2 of 4 requests at once got 429: slow down, so it is taken to do one thing at a time"
    )
    empty = first_look._judged(alone, [took(0.1, 1.1)] * 3 + [Seen(200)])
    assert empty.together.startswith("1 of 4 requests at once got 200: no text, so")


@pytest.mark.parametrize(("concurrency", "seconds"), [(1, 1.1), (4, 2.2), (7, 3.3)])
def test_each_request_in_flight_adds_what_each_of_three_others_did(concurrency, seconds):
    look = first_look.Look(ttft_s=0.1, tpot_s=0.1, slowdown=2.0)
    assert look.answer_s(11, concurrency) == pytest.approx(seconds)


def looked(monkeypatch, answers, limit_s=60.0):
    asked = []

    def ask(asker):
        asked.append(asker)
        return answers(len(asked))

    line = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(first_look, "line_to", lambda *_: line)
    monkeypatch.setattr(first_look, "_ask", ask)
    server = SimpleNamespace(
        base_url="http://x",
        api_url="http://x/v1",
        served_name="m",
        access=Access(),
        refusal_of=lambda name: f"no {name}",
    )
    return first_look.look(server, limit_s), len(asked)


def test_the_first_answer_is_not_counted_where_there_is_time_for_another(monkeypatch):
    found, asked = looked(monkeypatch, lambda number: took(9.0, 19.0) if number == 1 else took(0.1, 1.1))
    assert (found.ttft_s, asked) == (0.1, 1 + 2 + 4)


def test_a_first_answer_that_took_a_sixth_of_the_time_is_the_only_one(monkeypatch):
    found, asked = looked(monkeypatch, lambda _: took(9.0, 19.0), limit_s=0.0)
    assert (found.ttft_s, found.slowdown, asked) == (9.0, 4, 1)
    assert found.together == "no others were asked for after 19 s, so it is taken to do one thing at a time"


@pytest.mark.parametrize(
    ("answer", "what", "hint"),
    [
        (Seen(0, error="no complete answer"), "no complete answer", "--minutes gives it more time"),
        (
            Seen(0, none_came=NoAnswer.LOST, error="no answer to POST /v1: reset"),
            "reset",
            "closed the connection",
        ),
        (Seen(0, none_came=NoAnswer.UNREADABLE, error="what came is not HTTP"), "HTTP", "changes its"),
        (Seen(0, none_came=NoAnswer.LATE, error="the answer did not end within 9 s"), "9 s", "--minutes"),
        (read(b"<html>hello</html>", "text/html"), "got 200: neither", "is an OpenAI-compatible server"),
        (
            Seen(404, error="no such model"),
            "got 404: no such model",
            "asked for as 'm'; http://x/v1/models has",
        ),
        (Seen(401, error="who?"), "got 401: who?", "API_KEY"),
        (Seen(200), "got 200: no text", "its model was asked for as 'm'"),
        (Seen(200, error="out of memory"), "got 200: out of memory", "look into its log"),
        (Seen(429, error="slow down"), "got 429: slow down", "its rate limit"),
        (Seen(503, error="loading"), "got 503: loading", "still load its model"),
    ],
)
def test_no_whole_first_answer_is_one_error(monkeypatch, answer, what, hint):
    with pytest.raises(SetupError) as caught:
        looked(monkeypatch, lambda _: answer)
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_results_are_in_order_and_four_run_at_once():
    """None of the first four ends before all have begun."""
    together = threading.Barrier(4)

    def task(number):
        def run():
            if number < 4:
                together.wait(timeout=20)
            return number

        return run

    assert side_by_side([task(number) for number in range(9)]) == list(range(9))
    assert side_by_side([]) == []


def test_the_first_error_is_raised_and_no_more_is_begun():
    begun = []

    def fails():
        begun.append(1)
        raise SetupError("broken")

    with pytest.raises(SetupError, match="broken"):
        side_by_side([fails] * 40)
    assert len(begun) <= 4
