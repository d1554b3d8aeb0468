"""Each law holds on records that are right, and fails when one record or figure is made wrong."""

from dataclasses import replace

import numpy as np
import pytest

from harness.metrics import conservation
from harness.metrics.conservation import Cell, laws
from harness.metrics.throughput import rates
from harness.metrics.view import RequestView
from harness.metrics.window import Window, measured_window, work_shares
from harness.model import Imported, Law, Requests
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.records.series import Samples, Telemetry
from harness.validity import Evidence, blame, judge
from tests.factories import documents
from tests.factories.recorded import MS, facts, load, records, requested, summarise_cell

CLOSED = load("concurrency", 8)
OPEN = load("rate", 10.0, arrival="constant", over_cap="wait")


def closed_loop(waves=4, slots=8, took_ms=100):
    rows = [
        {
            "sent": took_ms * wave,
            "texts": [took_ms * wave + 50, took_ms * (wave + 1)],
            "tokens": 2,
            "prompt": 5,
        }
        for wave in range(waves)
        for _ in range(slots)
    ]
    return records(*rows)


def open_loop(count=60, took_ms=300):
    rows = [
        {"sent": 100 * i, "texts": [100 * i + took_ms // 2, 100 * i + took_ms], "tokens": 2, "prompt": 5}
        for i in range(count)
    ]
    return records(*rows)


def overloaded(count=80):
    """One answer at a time, 50 ms each, 40 requests/s offered."""
    return records(*[{"sent": 25 * i, "texts": [50 * i + 25, 50 * i + 50]} for i in range(count)])


def cell(made, point=CLOSED, telemetry=None, **changes):
    requests = made.requests
    window = measured_window(requests, point.slots)
    shares = work_shares(requests, made.events, window, closed_loop=point.slots is not None)
    outcomes = {"ok": int((requests["outcome"] == Outcome.OK).sum())}
    outcomes["failed"] = len(requests) - outcomes["ok"]
    counts = documents.made(Requests, planned=len(requests), unsent=0, outcomes=outcomes)
    shown = rates(made, window, shares)
    return Cell(made, facts(load=point, **changes), window, shown, shares, counts, telemetry or Telemetry())


def law(given, name):
    (found,) = (one for one in laws(given) if name in one.law)
    return found


def with_rates(given, **factors):
    wrong = {name: given.rates[name] * factor for name, factor in factors.items()}
    return replace(given, rates={**given.rates, **wrong})


@pytest.mark.parametrize(
    ("made", "point"), [(closed_loop(), CLOSED), (open_loop(), OPEN), (overloaded(), OPEN)]
)
def test_no_law_fails_where_everything_is_right(made, point):
    counted = {"prompt_tokens": float(np.maximum(made.requests["prompt_tokens"], 0).sum()),
               "output_tokens": float(made.requests["output_tokens"].sum())}  # fmt: skip
    found = laws(cell(made, point, server_counters=counted))
    assert [one for one in found if one.holds is False] == []
    assert all(one.why for one in found if one.holds is None)


@pytest.mark.parametrize("factor", [1.4, 0.6])
def test_littles_law_finds_a_rate_with_an_edge_bias(factor):
    given = cell(closed_loop())
    assert law(given, "Little").holds
    found = law(with_rates(given, requests_per_s=factor), "Little")
    assert found.holds is False
    assert (found.measured, found.expected) == (pytest.approx(8), pytest.approx(8 * factor))
    (reason,) = [
        one
        for one in judge(Evidence(RequestView(given.records), given.facts, laws=[found])).reasons
        if one.code == "does-not-add-up"
    ]
    assert reason.verdict == "INVALID"
    assert reason.measured.startswith("Little's law: in flight = requests/s × time in system: 8")


def test_littles_law_counts_failures_as_in_flight():
    made = closed_loop()
    made.requests["outcome"][9::8] = Outcome.TIMEOUT
    assert law(cell(made), "Little").holds


def test_littles_law_in_an_open_loop():
    given = cell(open_loop(), OPEN)
    assert law(given, "Little").measured == pytest.approx(3, rel=0.02)
    assert law(given, "Little").holds
    assert law(with_rates(given, requests_per_s=1.4), "Little").holds is False


def test_littles_law_holds_in_an_open_loop_whose_answers_pause_together():
    """It stands still in the first 2 s of every 3: all that wait at an edge have their work on one side."""

    def texts(at_ms):
        for _ in range(10):
            at_ms += 30
            at_ms = max(at_ms, at_ms // 3000 * 3000 + 2000)
            yield at_ms

    rows = [{"sent": 10 * row, "texts": list(texts(10 * row))} for row in range(400)]
    given = cell(records(*rows), OPEN)
    assert law(given, "Little").holds
    assert law(with_rates(given, requests_per_s=1.4), "Little").holds is False


@pytest.mark.parametrize("slots", [2, 4, 8])
def test_littles_law_holds_where_a_pause_lies_at_an_edge(slots):
    """The first answer of each slot takes 700 ms, all others 200 ms: an edge of the window cuts them all."""
    rows = [{"sent": 0, "texts": [700]} for _ in range(slots)]
    rows += [
        {"sent": 700 + 200 * wave, "texts": [900 + 200 * wave]} for wave in range(19) for _ in range(slots)
    ]
    given = cell(records(*rows), load("concurrency", slots))
    found = law(given, "Little")
    assert (found.holds, found.measured) == (True, slots)
    assert found.tolerance < 0.06 * slots
    assert law(with_rates(given, requests_per_s=1.1), "Little").holds is False


def test_too_few_answers_are_not_judged():
    rows = [{"sent": 0, "texts": [100]}, {"sent": 100, "texts": [3900]}, {"sent": 0, "texts": [900]}]
    rows += [{"sent": 900, "texts": [1000]}]
    found = law(cell(records(*rows), load("concurrency", 2)), "Little")
    assert (found.holds, found.why) == (None, "too few answers to tell")
    # In the first second both slots are busy; by its ends 3.24 answers of 1,225 ms on average.
    assert (found.measured, found.expected) == (2, pytest.approx((3 + 9 / 38) * 1.225))
    assert found.tolerance > found.expected / 2


def test_tokens_go_with_answers():
    given = cell(closed_loop())
    assert law(given, "tokens/s").holds
    found = law(with_rates(given, output_tokens_per_s=1.1), "tokens/s")
    assert found.holds is False
    assert found.measured / found.expected == pytest.approx(1.1)


@pytest.mark.parametrize(("more", "verdict"), [(1, "SUSPECT"), (30, "INVALID"), (-30, "INVALID")])
def test_the_engine_must_have_counted_what_its_answers_say(more, verdict):
    given = cell(closed_loop(), server_counters={"prompt_tokens": 160.0, "output_tokens": 64.0 + more})
    assert law(given, "prompt tokens").holds
    found = law(given, "output tokens")
    assert (found.measured, found.expected, found.holds) == (64 + more, 64, False)
    (reason,) = judge(Evidence(RequestView(given.records), given.facts, laws=[found])).reasons[-1:]
    assert (reason.code, reason.verdict) == ("does-not-add-up", verdict)
    assert (reason.measured, reason.limit) == (f"{found.law}: {64 + more} seen, 64 expected", "no difference")
    assert (reason.cause, "other clients" in reason.hint) == ("either" if more > 0 else "work", more > 0)
    assert "one of the two counts is wrong" in reason.hint


@pytest.mark.parametrize(
    ("prompt_tokens", "output_tokens", "causes"),
    [
        (160, 94, ["work"]),  # another client would have sent a prompt too
        (150, 94, ["work", "work"]),
        (190, 94, ["either", "either"]),
        (None, 94, ["either"]),
        (190, 34, ["work", "work"]),
    ],
)
def test_a_count_that_no_other_client_can_cause_is_the_servers(prompt_tokens, output_tokens, causes):
    counters = {"prompt_tokens": prompt_tokens, "output_tokens": output_tokens}
    counters = {name: float(count) for name, count in counters.items() if count is not None}
    given = cell(closed_loop(), server_counters=counters)
    validity = judge(Evidence(RequestView(given.records), given.facts, laws=laws(given)))
    found = [reason for reason in validity.reasons if reason.code == "does-not-add-up"]
    assert [reason.cause for reason in found] == causes
    assert blame(validity) == (causes[0], "does-not-add-up")


def test_what_two_replicas_count_under_the_names_of_roles_is_put_down_to_the_roles():
    """Each did half of the requests, and was asked for its half of the prompts or of the answers alone."""
    counted = {"server_counters": {"prompt_tokens": 80.0, "output_tokens": 32.0}}
    roles = [{"role": role, "places": [place]} for place, role in enumerate(("prefill", "decode"))]
    given = cell(closed_loop(), roles=roles, **counted)
    reasons = judge(Evidence(RequestView(given.records), given.facts, laws=laws(given))).reasons
    hints = [reason.hint for reason in reasons if reason.code == "does-not-add-up"]
    assert len(hints) == 2
    assert all(hint.startswith("a role of --metrics-url is wrong") for hint in hints)


@pytest.mark.parametrize(
    ("measured", "expected", "tolerance", "words"),
    [
        (1234567.0, 1236999.0, 123.4, ("1234567", "1236999", "123")),
        (3.981234, 4.123456, 0.0531, ("3.981", "4.123", "0.053")),
        (4.1044, 4.0, 0.1, ("4.104", "4.000", "0.1")),  # broken by little, it does not read as kept
    ],
)
def test_a_figure_has_the_digits_that_its_tolerance_tells_apart(measured, expected, tolerance, words):
    given = cell(closed_loop())
    found = Law("in flight", measured=measured, expected=expected, tolerance=tolerance, holds=False)
    (reason,) = judge(Evidence(RequestView(given.records), given.facts, laws=[found])).reasons[-1:]
    seen, expected, apart = words
    assert reason.measured == f"in flight: {seen} seen, {expected} expected"
    assert reason.limit == f"a difference of {apart}"
    assert reason.cause == "client"


@pytest.mark.parametrize(("counted", "holds"), [(320.0, None), (160.0, True), (159.0, False)])
def test_engines_behind_one_address_may_both_count_a_prompt_and_never_too_little(counted, holds):
    behind = {"metrics_urls": ["http://prefill", "http://decode"]}
    given = cell(closed_loop(), server_counters={"prompt_tokens": counted}, **behind)
    assert law(given, "prompt tokens").holds is holds
    alone = cell(closed_loop(), server_counters={"prompt_tokens": counted}, metrics_urls=["http://m"])
    assert law(alone, "prompt tokens").holds is (counted == 160)


def test_what_the_engine_counted_for_a_failed_request_is_not_known():
    made = closed_loop()
    made.requests["outcome"][3] = Outcome.TRUNCATED
    found = law(cell(made, server_counters={"output_tokens": 64.0}), "output tokens")
    assert (found.holds, found.why[:26]) == (None, "requests without an answer")


def test_another_clients_requests_show_in_the_engines_gauges():
    at_ns = np.arange(0, 400, 10, dtype=np.int64) * MS
    for running, holds in ((8.0, True), (3.0, True), (11.0, False)):
        series = {
            "engine.running": Samples(at_ns, np.full(len(at_ns), running)),
            "engine.waiting": Samples(at_ns, np.zeros(len(at_ns))),
        }
        found = law(cell(closed_loop(), telemetry=Telemetry(series)), "gauges")
        assert (found.measured, found.holds) == (pytest.approx(running), holds)
    behind = cell(closed_loop(), telemetry=Telemetry(series), metrics_urls=["http://a", "http://b"])
    assert law(behind, "gauges").holds is None
    assert law(behind, "gauges").why.endswith("a prefill and a decode engine may both count a request")
    given_up = closed_loop()
    given_up.requests["outcome"][0] = Outcome.TIMEOUT
    found = law(cell(given_up, telemetry=Telemetry(series)), "gauges")
    assert (found.holds, found.why[:18]) == (None, "requests timed out")
    given_up.requests["end_ns"][0] = given_up.requests["end_ns"].max() + 1
    after = law(cell(given_up, telemetry=Telemetry(series)), "gauges")
    assert after.holds is False, "what is given up after the window was in flight here too"
    for name in ("sent_ns", "end_ns"):
        given_up.requests[name][0] = UNKNOWN
    assert law(cell(given_up, telemetry=Telemetry(series)), "gauges").holds is False, "never sent"


def test_a_window_between_two_samples_says_nothing_of_other_clients():
    """The load drains within half a second, and the line between the samples lies above it."""
    given = cell(closed_loop())
    start_ns, end_ns = given.window.start_ns, given.window.end_ns
    for inside, holds in ((0, None), (3, None), (4, False)):
        at_ns = np.array([start_ns - MS, *np.linspace(start_ns, end_ns, inside + 2)[1:-1], end_ns + MS])
        series = {
            f"engine.{name}": Samples(at_ns.astype(np.int64), np.full(len(at_ns), value))
            for name, value in (("running", 20.0), ("waiting", 0.0))
        }
        found = law(cell(closed_loop(), telemetry=Telemetry(series)), "gauges")
        assert found.holds is holds
    assert law(given, "gauges").why == "the engine's queue was not sampled over the window"


def test_what_an_engine_that_restarted_counted_is_not_judged():
    given = cell(closed_loop(), server_counters={"output_tokens": 50.0}, counter_restarts=1)
    found = law(given, "output tokens")
    assert (found.holds, found.why[:20]) == (None, "the engine restarted")


@pytest.mark.parametrize(("made", "growing"), [(open_loop(), False), (overloaded(), True)])
def test_arrivals_are_served_or_left_over(made, growing):
    given = cell(made, OPEN)
    found = law(given, "arrivals")
    assert found.holds
    assert (conservation.backlog_growth(made, given.window) > 5) is growing
    assert law(with_rates(given, requests_per_s=1.2), "arrivals").holds is False


def test_a_window_without_answers_is_not_judged():
    given = cell(open_loop(), OPEN)
    empty = replace(given, rates=dict.fromkeys(given.rates), shares=np.zeros(60))
    assert law(empty, "arrivals").why == law(empty, "Little").why == "no answer in the window"
    assert law(empty, "tokens/s").holds is None
    assert law(empty, "tokens/s").why == "no answer in the window"


def test_an_engine_that_counts_texts_of_a_request_apart_is_not_judged_by_its_gauges():
    found = law(cell(closed_loop(), request={"api": "embeddings"}), "gauges")
    assert (found.holds, found.why) == (None, "an engine counts the parts of a request apart")


def test_arrivals_that_were_dropped_are_neither():
    made = open_loop()
    made.requests["outcome"][20:25] = Outcome.DROPPED
    for name in ("sent_ns", "end_ns"):
        made.requests[name][20:25] = -1
    assert law(cell(made, OPEN), "arrivals").holds


def test_a_lost_record_is_missed():
    given = cell(closed_loop())
    assert law(given, "planned").holds
    found = law(replace(given, counts=documents.changed(given.counts, planned=33)), "planned")
    assert (found.measured, found.expected, found.holds) == (32, 33, False)
    warm = documents.made(Requests, planned=32, unsent=3, outcomes={"ok": 31})
    assert law(replace(given, counts=warm), "planned").why == "requests of the warm-up were never due"


def test_slots_hold_one_request_each():
    made = closed_loop()
    assert law(cell(made), "no more than slots").holds
    made.requests["sent_ns"][8] -= 50 * MS  # before the answer of its slot had ended
    found = law(cell(made), "no more than slots")
    assert (found.measured, found.expected, found.tolerance, found.holds) == (9, 8, 0, False)


def test_the_warm_up_of_another_tool_may_have_more_in_flight_than_its_load():
    made, named = closed_loop(), documents.made(Imported, level="records", facts=["times", "load"])
    made.requests["phase"][:8] = Phase.WARMUP
    made.requests["sent_ns"][8] -= 50 * MS
    assert law(cell(made), "no more than slots").measured == 9
    found = law(cell(made, imported=named), "no more than slots")
    assert (found.measured, found.holds) == (8, True)
    made.requests["sent_ns"][16] -= 50 * MS
    assert law(cell(made, imported=named), "no more than slots").holds is False


def test_a_slot_of_recorded_sessions_may_hold_several_calls():
    made = closed_loop()
    made.requests["sent_ns"][8] -= 50 * MS
    calls = requested(*[("", {"tool_ns": 0})] * len(made.requests))
    found = summarise_cell(made, facts(load=CLOSED, planned=32), calls).conservation
    assert {one.law: one.why for one in found if "slots" in one.law} == {
        "in flight: no more than slots": "a session may have several calls in flight",
        "slots × window = busy + idle": "slots think between requests",
    }


def test_a_slot_is_busy_or_between_two_requests():
    made = closed_loop(waves=6)
    assert law(cell(made), "slots × window").holds
    late = closed_loop(waves=6)
    late.requests["sent_ns"][24:32] += 20 * MS  # due when the answer ended: the gap is recorded
    assert law(cell(late), "slots × window").holds
    gone = replace(made, requests=np.delete(made.requests, 25))
    found = law(cell(gone), "slots × window")
    assert found.holds is False
    assert found.measured < found.expected


def test_slots_of_a_load_process_that_died_are_not_judged():
    """Four of eight end after half of the cell, with the process that they belonged to."""
    made = closed_loop(waves=12)
    rows = made.requests
    left = replace(made, requests=rows[(rows["sent_ns"] < 500 * MS) | (rows["seq"] % 2 == 0)])
    assert law(cell(left), "slots × window").holds is False
    died = law(cell(left, client__lost_workers=1), "slots × window")
    assert (died.holds, died.why) == (None, "slots were lost with a load process")


def test_slots_that_think_are_not_judged():
    rows = [{"sent": 150 * i, "texts": [150 * i + 100]} for i in range(20)]
    assert law(cell(records(*rows), load("concurrency", 1)), "slots × window").why.startswith("slots think")


def test_slots_in_lockstep_that_are_said_to_think_are_not_judged():
    """One of three waits 100 ms after each answer, which the median of all does not show."""
    rows = [
        {"sent": 1000 * i + wait, "texts": [1000 * i + 500, 1000 * i + 1000]}
        for i in range(8)
        for wait in (100, 0, 0)
    ]
    made = records(*rows)
    assert law(cell(made, load("concurrency", 3)), "slots × window").holds is False
    thinking = load("concurrency", 3, think_time_s=0.1)
    assert law(cell(made, thinking), "slots × window").why == "slots think between requests"


def test_a_cell_tells_its_laws_and_what_was_in_flight():
    made = summarise_cell(closed_loop(), facts(load=CLOSED, planned=32), None)
    assert made.in_flight_mean == made.effective_concurrency == pytest.approx(8)
    assert made.time_in_system_ms_mean == 100
    assert made.offered_per_s is None
    assert "offered_per_s" in made.null_reasons
    assert {one.holds for one in made.conservation} == {True, None}
    lost = summarise_cell(closed_loop(), facts(load=CLOSED, planned=40), None)
    assert "does-not-add-up" in {one.code for one in lost.validity.reasons}


def test_an_open_loop_tells_what_it_offered_and_how_its_backlog_grew():
    made = summarise_cell(overloaded(), facts(load=OPEN, planned=80), None)
    assert made.offered_per_s == pytest.approx(40, rel=0.05)
    assert made.backlog_growth_per_s == pytest.approx(20, rel=0.1)
    assert made.requests_per_s + made.backlog_growth_per_s == pytest.approx(made.offered_per_s, rel=0.03)
    assert made.effective_concurrency is None


def test_what_a_file_without_a_schedule_offered_is_not_known():
    without = open_loop()
    without.requests["intended_ns"] = UNKNOWN
    made = summarise_cell(without, facts(load=OPEN, planned=60), None)
    assert (made.offered_per_s, made.backlog_growth_per_s) == (None, None)
    why = "when requests were to leave is not known"
    assert made.null_reasons["offered_per_s"] == made.null_reasons["backlog_growth_per_s"] == why
    assert [law.why for law in made.conservation if law.law.startswith("arrivals")] == [why]


def test_a_backlog_grows_by_what_arrives_less_what_is_answered():
    """40 arrivals/s and 20 answers/s, each of two texts: 20 in a second; 1 less half an answer in 25 ms."""
    made = overloaded()
    grown = conservation.backlog_growth(made, Window(500 * MS, 1500 * MS, "whole"))
    assert grown == pytest.approx(40 - 20)
    assert conservation.backlog_growth(made, Window(500 * MS, 525 * MS, "whole")) == pytest.approx(1 - 0.5)
    assert conservation.backlog_growth(made, Window(500 * MS, 500 * MS, "whole")) == 0


def test_requests_that_fail_leave_the_backlog_as_it_is():
    made = overloaded()
    made.requests["outcome"][::2] = Outcome.TIMEOUT
    assert conservation.backlog_growth(made, Window(500 * MS, 1500 * MS, "whole")) == pytest.approx(20 - 10)


def test_a_backlog_that_is_worked_off_shrinks():
    made = overloaded(40)  # due until 975 ms, the last answer at 2000 ms
    assert conservation.backlog_growth(made, Window(1000 * MS, 2000 * MS, "whole")) == pytest.approx(-20)
