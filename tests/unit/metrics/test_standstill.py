"""What stalls of the load generator and of the engine take from a cell, from records worked out by hand."""

import pytest

from harness.metrics.standstill import engine_stall, standstill
from harness.metrics.view import RequestView
from harness.model import UNSET
from harness.records.layout import Outcome
from tests.factories.recorded import facts, records, summarise_cell


def stall(at_s, lasted_ms, worker=0):
    return {"worker": worker, "at_s": at_s, "lasted_ms": lasted_ms}


def told(*stalls, sampler=None, stamps="kernel", **changes):
    """Facts of a cell with these stalls; `sampler`: its own, None: it says nothing."""
    own = {} if sampler is None else {"stalls": [{"at_s": at, "lasted_ms": ms} for at, ms in sampler]}
    return facts(
        client__stalls=list(stalls),
        client__stamp_source=stamps,
        telemetry={"requested": True, "problem": None, "sources": {}, **own},
        **changes,
    )


def answers(count=100, take_ms=100, first_ms=50):
    """One after the other, ten seconds of them; the last text ends each."""
    return [
        {
            "sent": take_ms * number,
            "texts": [take_ms * number + at for at in (first_ms, take_ms - 2, take_ms - 1)],
        }
        for number in range(count)
    ]


def without(rows, start_ms, end_ms):
    """Those that do not lie between; the one in flight at the start ends at the end."""
    kept = []
    for row in rows:
        if row["texts"][-1] <= start_ms or row["sent"] >= end_ms:
            kept.append(row)
        elif row["sent"] <= start_ms:
            kept.append({**row, "texts": [end_ms - 3, end_ms - 2, end_ms - 1]})
    return kept


def test_what_was_not_recorded_is_not_known():
    assert standstill(RequestView(records(*answers())), facts()) is None
    assert engine_stall(RequestView(records(*answers())), facts()) is None
    cell = summarise_cell(records(*answers()), facts(), None)
    assert cell.standstill is None
    assert "standstill" in cell.null_reasons
    assert facts().client.stalls is UNSET


def test_a_cell_without_a_stall_lost_nothing():
    found = standstill(RequestView(records(*answers())), told(sampler=[]))
    assert (found.lost_ms, found.share, found.longest_ms, found.hit_share) == (0, 0, 0, 0)
    assert (found.who, found.at_s, found.sampler_ms, found.arrived_meanwhile) == (None, None, None, None)


def test_the_sum_and_the_longest_are_of_the_measured_part():
    """From 0 to 9.999 s: half of the first stall and all of the last lie outside."""
    still = told(stall(-0.2, 400), stall(4.0, 600), stall(9.9, 1000), stall(20.0, 5000), sampler=[])
    found = standstill(RequestView(records(*answers())), still)
    assert found.lost_ms == pytest.approx(200 + 600 + 99)
    assert found.share == pytest.approx(899 / 9999)
    assert (found.longest_ms, found.at_s) == (pytest.approx(600), pytest.approx(4.0))


def test_the_worker_that_lost_most_counts_and_two_are_not_added():
    found = standstill(
        RequestView(records(*answers())),
        told(stall(1, 300), stall(1, 300, worker=1), stall(5, 300, worker=1), sampler=[]),
    )
    assert found.lost_ms == pytest.approx(600)


@pytest.mark.parametrize(
    ("sampler", "rows", "stamps", "expected"),
    [
        ([(3.0, 2000)], without(answers(), 3000, 5000), "kernel", "machine"),
        ([(3.9, 1100)], without(answers(), 3000, 5000), "kernel", "machine"),  # more than half of it
        ([(4.1, 900)], without(answers(), 3000, 5000), "kernel", "client"),  # less
        ([], without(answers(), 3000, 5000), "kernel", "client"),
        ([(9.0, 2000)], without(answers(), 3000, 5000), "kernel", "client"),  # another one
        ([(3.0, 2000)], answers(), "kernel", "client"),  # the server went on
        ([(3.0, 2000)], answers(), "user", "machine"),  # nobody saw it
        (None, without(answers(), 3000, 5000), "kernel", "client"),  # no sampler, or it was killed
    ],
)
def test_who_stood_still(sampler, rows, stamps, expected):
    found = standstill(RequestView(records(*rows)), told(stall(3.0, 2000), sampler=sampler, stamps=stamps))
    assert found.who == expected


def test_what_comes_as_the_machine_wakes_is_not_from_the_time_in_between():
    """Events of the 50 ms before the load process looked, while the server already ran again."""
    rows = [*without(answers(), 3000, 5000), {"sent": 2900, "texts": [4960, 4999]}]
    found = standstill(RequestView(records(*rows)), told(stall(3.0, 2000), sampler=[(3.0, 2000)]))
    assert (found.who, found.arrived_meanwhile) == ("machine", 0)
    rows = [*without(answers(), 3000, 5000), {"sent": 2900, "texts": [4940, 4999]}]
    found = standstill(RequestView(records(*rows)), told(stall(3.0, 2000), sampler=[(3.0, 2000)]))
    assert (found.who, found.arrived_meanwhile) == ("client", 1)


def test_a_sampler_of_this_machine_says_nothing_of_load_nodes():
    node = {
        "name": "a", "address": "10.0.0.1", "kernel": "6", "cpus": 2, "workers": [0], "lost": None,
        "clock_offset_ms": 0.0, "clock_uncertainty_ms": 0.0, "drift_ppm": 0.0, "rtt_ms": 0.1, "pings": 9,
        "path_rtt_ms": 0.1, "start_skew_ms": 0.0, "longest_stall_ms": 2000.0,
    }  # fmt: skip
    rows = records(*without(answers(), 3000, 5000))
    found = standstill(RequestView(rows), told(stall(3.0, 2000), sampler=[(3.0, 2000)], nodes=[node]))
    assert (found.who, found.sampler_ms) == ("client", None)


def test_answers_are_hit_from_a_tenth_of_their_time_on():
    """8 of the 99 ms of an answer are less than a tenth of the other 91, and 10 are more than one of 89."""
    rows = records(*answers())
    assert standstill(RequestView(rows), told(stall(3.0, 108), sampler=[])).hit_share == pytest.approx(0.01)
    assert standstill(RequestView(rows), told(stall(3.0, 110), sampler=[])).hit_share == pytest.approx(0.02)
    assert standstill(RequestView(rows), told(stall(3.0, 110, worker=1), sampler=[])).hit_share == 0


def test_an_engine_that_sends_nothing_is_seen_within_50_ms():
    found = engine_stall(RequestView(records(*without(answers(), 3000, 5000))), told(sampler=[]))
    assert found.lasted_ms == pytest.approx(2000, abs=100)
    assert found.at_s == pytest.approx(3.0, abs=0.1)
    assert found.in_flight == 1


def test_a_request_of_the_moment_in_which_silence_ends_did_not_wait_for_it():
    rows = [{"sent": 0, "texts": [*range(10, 3000, 10), 5060]}, {"sent": 5050, "texts": [5060, 5070]}]
    found = engine_stall(RequestView(records(*rows)), told(sampler=[]))
    assert (found.at_s, found.lasted_ms, found.in_flight) == (3.0, pytest.approx(2050), 1)


def test_silence_without_requests_is_not_the_engines():
    rows = [row for row in answers() if row["sent"] < 3000 or row["sent"] >= 5000]
    assert engine_stall(RequestView(records(*rows)), told(sampler=[])) is None


def test_silence_counts_from_the_send_that_nothing_came_for():
    rows = [row for row in answers() if row["sent"] < 3000 or row["sent"] >= 7000]
    rows.append({"sent": 4000, "texts": [7001, 7002]})
    found = engine_stall(RequestView(records(*rows)), told(sampler=[]))
    assert (found.at_s, found.lasted_ms) == (4.0, pytest.approx(3000, abs=50))


def test_silence_while_the_load_process_stood_still_is_not_the_engines():
    rows = records(*without(answers(), 3000, 5000))
    assert engine_stall(RequestView(rows), told(stall(3.0, 1990), sampler=[])) is None


@pytest.mark.parametrize(("outcome", "found"), [(Outcome.HTTP_ERROR, False), (Outcome.TIMEOUT, True)])
def test_an_engine_that_sends_errors_is_not_silent(outcome, found):
    """For 2 s a request each 100 ms ends without text. Where bench gave it up, nothing came."""
    made = records(
        *without(answers(), 3000, 5000), *({"sent": 3000 + 100 * i, "outcome": outcome} for i in range(20))
    )
    ended = made.requests["outcome"] == outcome
    made.requests["http_status"] = 200 if found else 503
    made.requests["end_ns"][ended] = made.requests["sent_ns"][ended] + 90_000_000
    assert (engine_stall(RequestView(made), told(sampler=[])) is not None) == found


@pytest.mark.parametrize(("resend_ms", "lasted_ms", "in_flight"), [(10, 4000, 2), (400, 900, 1)])
def test_a_hang_goes_on_while_requests_time_out_in_it(resend_ms, lasted_ms, in_flight):
    """Nothing comes from 3 to 7 s, and each request is given up after 0.9 s. A pause ends the wait."""
    rows = [row for row in answers() if row["sent"] < 3000 or row["sent"] >= 7000]
    given_up = [{"sent": at, "outcome": Outcome.TIMEOUT} for at in range(3000, 7000, 900 + resend_ms)]
    made = records(*rows, *given_up)
    ended = made.requests["outcome"] == Outcome.TIMEOUT
    made.requests["end_ns"][ended] = made.requests["sent_ns"][ended] + 900_000_000
    found = engine_stall(RequestView(made), told(sampler=[]))
    assert found.at_s == pytest.approx(3.0, abs=0.05)
    assert (found.lasted_ms, found.in_flight) == (pytest.approx(lasted_ms, abs=100), in_flight)


def test_a_hang_that_no_answer_ends_is_seen():
    """The last requests time out, and nothing is sent after them."""
    made = records(*answers(50), {"sent": 4999, "outcome": Outcome.TIMEOUT}, {"sent": 9000, "texts": [9001]})
    made.requests["end_ns"][50] = 7_000_000_000
    found = engine_stall(RequestView(made), told(sampler=[]))
    assert (found.lasted_ms, found.in_flight) == (pytest.approx(2000, abs=50), 1)


@pytest.mark.parametrize(("first_ms", "found"), [(900, False), (400, True)])
def test_a_prefill_is_as_silent_as_it_is_for_this_cell(first_ms, found):
    """1.6 s of silence, among first tokens after 0.9 and 0.4 s."""
    rows = without(answers(count=20, take_ms=1000, first_ms=first_ms), 5990, 7600)
    assert (engine_stall(RequestView(records(*rows)), told(sampler=[])) is not None) == found


@pytest.mark.parametrize(("silent_ms", "found"), [(1500, False), (2500, True)])
def test_in_a_long_cell_silence_counts_from_a_fiftieth_of_it_on(silent_ms, found):
    """2 s of 100 s."""
    rows = without(answers(count=1000), 30_000, 30_000 + silent_ms)
    assert (engine_stall(RequestView(records(*rows)), told(sampler=[])) is not None) == found


@pytest.mark.parametrize(("longest_ms", "found"), [(4000, False), (6000, True)])
def test_an_answer_that_comes_whole_is_silent_for_as_long_as_it_takes(longest_ms, found):
    """Answers of 1.7 s without a first token, and one that takes longer: three times as long stands out."""
    ends = [1700 * (number + 1) for number in range(20)]
    ends += [ends[-1] + longest_ms]
    made = records(*({"sent": before, "tokens": 0} for before in [0, *ends[:-1]]))
    made.requests["last_text_ns"] = made.requests["end_ns"] = [end * 1_000_000 for end in ends]
    assert (engine_stall(RequestView(made), told(sampler=[])) is not None) == found


def test_an_engine_that_never_speaks_again_is_silent_to_the_end():
    rows = [row for row in answers() if row["sent"] < 3000]
    made = records(*rows, {"sent": 3000, "outcome": Outcome.TIMEOUT})
    made.requests["end_ns"][-1] = 9_000_000_000
    found = engine_stall(RequestView(made), told(sampler=[]))
    assert (found.at_s, found.lasted_ms) == (pytest.approx(3.0), pytest.approx(6000, abs=60))


def test_the_longest_of_two_is_told():
    rows = without(without(answers(), 1000, 2000), 5000, 7000)
    assert engine_stall(RequestView(records(*rows)), told(sampler=[])).at_s == pytest.approx(5.0, abs=0.1)


@pytest.mark.parametrize(("pauses", "found"), [(1, False), (2, True), (12, True)])
def test_pauses_that_each_are_short_for_the_cell_add_up(pauses, found):
    """Answers of 5 s for a minute, text every 20 ms. A pause of 800 ms in an answer is 1.3% of that."""
    rows = []
    for sent in range(0, 60_000, 5000):
        paused = len(rows) < pauses
        texts = [at for at in range(100, 5000, 20) if not paused or not 2000 < at < 2800]
        rows.append({"sent": sent, "texts": [sent + at for at in texts]})
    stalled = engine_stall(RequestView(records(*rows)), told(sampler=[]))
    assert (stalled is not None) == found
    if stalled:
        assert (stalled.lasted_ms, stalled.silences) == (pytest.approx(800, abs=50), pauses)
        assert stalled.silent_ms == pytest.approx(800 * pauses, abs=50 * pauses)


def test_long_prefills_that_recur_are_no_pauses():
    """Each twentieth answer of one user waits 2 s for its first token: a sixth of the cell."""
    rows, now = [], 0
    for number in range(300):
        first = now + (2000 if number % 20 == 0 else 100)
        rows.append({"sent": now, "texts": list(range(first, first + 400, 20))})
        now = first + 400
    assert engine_stall(RequestView(records(*rows)), told(sampler=[])) is None
