"""Stalls and suspends: both sides of each limit, and what they say."""

import pytest

from harness.metrics.view import RequestView
from harness.validity import Evidence, judge
from harness.validity.stalls import engine_stalls
from tests.factories.documents import changed
from tests.factories.recorded import facts, records, summarise_cell
from tests.factories.summaries import cell
from tests.unit.metrics.test_standstill import answers, stall, told, without

LATE = {"samples": 100, "p50": 60.0, "p90": 60.0, "p95": 60.0, "p99": 60.0, "max": 60.0}


def reasons(made, about):
    return {reason.code: reason for reason in judge(Evidence(RequestView(made), about)).reasons}


@pytest.mark.parametrize(
    ("lasted_ms", "verdict"),
    [(0, None), (100, None), (120, "SUSPECT"), (199, "SUSPECT"), (201, "INVALID"), (2000, "INVALID")],
)
def test_the_verdict_goes_by_what_was_lost_and_by_who_was_hit(lasted_ms, verdict):
    """Ten seconds, answers of 100 ms: one of a hundred may be hit; 200 ms are 2%."""
    stalls = [stall(3.0, lasted_ms)] if lasted_ms else []
    found = reasons(records(*answers()), told(*stalls, sampler=[]))
    assert {code: one.verdict for code, one in found.items()} == (
        {"client-stalled": verdict} if verdict else {}
    )


def test_many_short_stalls_are_one_long_one():
    found = reasons(records(*answers()), told(*(stall(at, 100) for at in range(1, 9)), sampler=[]))
    assert found["client-stalled"].verdict == "INVALID"
    assert found["client-stalled"].measured.startswith("0.80 s (8.0%) lost, 0.10 s of it at 1.0 s")


@pytest.mark.parametrize(
    ("lasted_ms", "sampler", "found"),
    [
        (2000, [], {"client-stalled"}),
        (2000, [(3.0, 2000)], {"machine-stalled"}),
        (120, [], {"client-stalled", "merged-events", "loop-lag"}),  # SUSPECT: that does not take so long
    ],
)
@pytest.mark.parametrize("merged", [0.2, 0.08])
def test_what_a_stall_made_late_is_no_second_doubt(lasted_ms, sampler, found, merged):
    rows = without(answers(), 3000, 5000) if sampler else answers()
    client = {"client__loop_lag_ms": LATE, "client__merged_share": merged}
    about = told(stall(3.0, lasted_ms), sampler=sampler, **client)
    assert reasons(records(*rows), about).keys() == found


@pytest.mark.parametrize(
    ("sampler", "rows", "code", "words"),
    [
        ([(3.0, 2000)], without(answers(), 3000, 5000), "machine-stalled", "nothing came from the server"),
        ([], answers(), "client-stalled", "the sampler went on"),
        ([(3.0, 2000)], answers(), "client-stalled", "events of the server arrived meanwhile"),
        (None, answers(), "client-stalled", "is not known"),
    ],
)
def test_it_says_who_stood_still_and_how_that_is_known(sampler, rows, code, words):
    found = reasons(records(*rows), told(stall(3.0, 2000), sampler=sampler))
    assert code in found
    assert found[code].measured.endswith(words)
    assert len({"machine-stalled", "client-stalled"} & found.keys()) == 1


def test_a_cell_of_an_older_version_is_not_judged():
    assert reasons(records(*answers()), facts()) == {}


@pytest.mark.parametrize(("lost_ms", "found"), [(None, set()), (0.9, set()), (1.1, {"suspended"})])
def test_a_machine_that_slept(lost_ms, found):
    assert reasons(records(*answers()), facts(client__suspended_ms=lost_ms)).keys() == found


def test_a_suspend_is_not_called_a_step_of_the_clock():
    """CLOCK_REALTIME goes on in it and CLOCK_MONOTONIC does not."""
    about = facts(client__suspended_ms=5000.0, client__clock_step_ms=5000.0)
    assert reasons(records(*answers()), about).keys() == {"suspended"}
    about = facts(client__suspended_ms=0.0, client__clock_step_ms=5000.0)
    assert reasons(records(*answers()), about).keys() == {"clock-step"}


def test_an_engine_that_stood_still_is_a_warning_and_no_doubt():
    rows = without(answers(), 3000, 5000)
    summarised = summarise_cell(records(*rows), told(sampler=[], planned=len(rows)), None)
    assert {one.code for one in summarised.validity.reasons} == set()
    (warning,) = engine_stalls([summarised])
    assert warning.code == "engine-stalled"
    assert "with 1 request in flight; the load" in warning.text
    assert list(engine_stalls([cell("vllm")])) == []


def test_pauses_that_come_again_are_counted():
    found = {"at_s": 3.0, "lasted_ms": 800.0, "in_flight": 4, "silences": 12, "silent_ms": 9600.0}
    (warning,) = engine_stalls([changed(cell("vllm"), engine_stall=found)])
    assert (
        "for 0.8 s, from 3.0 s on, with 4 requests in flight; 12 such pauses took 9.6 s; the" in warning.text
    )
