"""A duration that a cell did not last is named, with the number of requests that would do."""

import pytest

from harness.records.layout import Phase
from harness.run.measure.duration import not_reached
from tests.factories import recorded

GIVEN = {"load.duration_s": 20.0}
TWO_S = [{"intended": 100 * i, "sent": 100 * i, "texts": [100 * i + 50, 100 * i + 100]} for i in range(20)]


def warning(given=GIVEN, duration_s=20.0, requests=20, **changes):
    least = {"seconds": 0.0, "answers": 1, "duration_s": duration_s, "requests": requests}
    facts = recorded.facts(minimum=least, **({"planned": 20, "unsent": 0} | changes))
    return not_reached(given, recorded.records(*TWO_S), facts)


def test_a_closed_loop_that_ran_out_of_requests_says_how_many_would_do():
    found = warning()
    assert found.code == "duration-not-reached"
    assert found.text == "x, 1 in flight: all 20 requests were sent before the 20 s of --duration were over"
    assert found.hint == "more requests: --requests 300 --duration 20"


def test_a_duration_is_not_reached_by_its_warm_up():
    """Two seconds of sends, one of them warm-up: a duration of 1.5 s began with the second half."""
    rows = [row | {"phase": Phase.WARMUP} for row in TWO_S[:10]] + TWO_S[10:]
    least = {"seconds": 0.0, "answers": 1, "duration_s": 1.5, "requests": 10}
    for after_warmup, hint in ((True, "more requests: --requests 23 --duration 1.5"), (False, None)):
        facts = recorded.facts(minimum=least | {"after_warmup": after_warmup}, planned=10, unsent=0)
        found = not_reached(GIVEN, recorded.records(*rows), facts)
        assert (found and found.hint) == hint


def test_a_file_that_ended_is_not_asked_for_more_requests():
    assert warning(requests=32).hint == "its file holds no more of them: use a longer one"


@pytest.mark.parametrize(
    ("load", "requests", "text", "hint"),
    [
        (
            {"kind": "rate", "value": 10.0},
            200,
            "10 requests/s",
            "its file holds no more of them: use a longer one",
        ),
        (
            {"kind": "trace", "value": 2},
            20,
            "replayed 2 times as fast",
            "more requests: --requests 300 --duration 20",
        ),
        (
            {"kind": "working-set", "value": 2},
            20,
            "working set of 2 times the KV cache",
            "more requests: --requests 300 --duration 20",
        ),
    ],
)
def test_a_file_or_a_replay_that_ended_before_the_duration_is_named_too(load, requests, text, hint):
    found = warning(load=load, requests=requests)
    assert found.text.startswith(f"x, {text}: all 20 requests were sent before the 20 s of --duration")
    assert found.hint == hint


@pytest.mark.parametrize(
    "changes",
    [
        {"given": GIVEN | {"load.requests": 20}},
        {"given": {}},
        {"duration_s": 2.0},
        {"unsent": 3},
        {"interrupted": True},
        {"load": {"kind": "rate", "value": 10.0}},
    ],
)
def test_nothing_is_said_of_a_cell_that_ended_as_asked(changes):
    assert warning(**changes) is None
