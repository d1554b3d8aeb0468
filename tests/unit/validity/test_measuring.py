"""Doubts that the way of measuring leaves, each with the least that raises it."""

import numpy as np
import pytest

from harness.metrics.view import RequestView
from harness.model import UNSET
from harness.records.layout import Outcome, Phase
from harness.validity import Evidence, judge
from tests.factories.recorded import facts, records, summarise_cell


def reasons(made, **changes):
    found = judge(Evidence(RequestView(made), facts(workload__exact_output=False, **changes))).reasons
    return {reason.code: reason for reason in found}


def loop(idle_ms, busy_ms, count=20):
    """One slot that waits `idle_ms` before each send."""
    sends = [(idle_ms + busy_ms) * i + idle_ms for i in range(count)]
    return records(*({"intended": t - idle_ms, "sent": t, "texts": [t + 5, t + busy_ms]} for t in sends))


@pytest.mark.parametrize(
    ("idle_ms", "verdict"), [(0, None), (1, None), (3, "SUSPECT"), (9, "SUSPECT"), (12, "INVALID")]
)
def test_idle_slots_lower_the_concurrency(idle_ms, verdict):
    found = reasons(loop(idle_ms, 97)).get("slot-idle")
    assert (found and found.verdict) == verdict


@pytest.mark.parametrize(
    ("share", "text"), [(0.703, "70.3%"), (0.81, "81%"), (0.904, "90.4%"), (1.0, "100%")]
)
def test_how_busy_the_client_was_does_not_read_as_the_limit(share, text):
    assert reasons(loop(0, 97), client__busy_share=share)["client-busy"].measured == f"{text} of a core"


def test_slot_idle_counts_the_slots_in_use_and_leaves_ttft_alone():
    """`effective_concurrency` is the mean in flight over the window: another figure."""
    made = loop(12, 88)
    made.requests["start_ns"] = made.requests["sent_ns"]  # as the load generator records a closed loop
    about = facts(load={"kind": "concurrency", "value": 8}, workload__exact_output=False)
    summary = summarise_cell(made, about, None)
    (reason,) = [one for one in summary.validity.reasons if one.code == "slot-idle"]
    assert reason.measured == "12.0% idle: 7.04 of 8 slots in use"
    assert summary.slot_idle_ms.p50 == pytest.approx(12)
    assert summary.slot_idle_share == pytest.approx(0.12)
    assert summary.ttft_ms.p50 == pytest.approx(5)


def test_idle_slots_are_no_fault_of_the_client_where_every_request_was_refused():
    made = loop(1, 1)
    assert "slot-idle" in reasons(made)
    made.requests["outcome"] = Outcome.HTTP_ERROR
    assert "slot-idle" not in reasons(made)
    made.requests["outcome"][0], made.requests["phase"][0] = Outcome.OK, Phase.WARMUP
    assert "slot-idle" not in reasons(made), "an answer of the warm-up says nothing here"


def test_connecting_is_not_idle_and_an_open_loop_has_no_slots():
    made = loop(12, 88)
    made.requests["connect_ns"] = 12_000_000
    assert "slot-idle" not in reasons(made)
    summary = summarise_cell(loop(12, 88), facts(load={"kind": "rate", "value": 10.0}), None)
    assert summary.slot_idle_ms is summary.slot_idle_share is None
    assert summary.null_reasons["slot_idle_share"] == "an open loop has no slots"


def test_a_thousand_streams_are_not_invalid_for_a_late_send_alone():
    """12 ms of every 4 s: TTFT counts from the send, and the concurrency is as asked for."""
    late = {"samples": 1000, "p50": 8.0, "p90": 11.0, "p95": 12.0, "p99": 12.0, "max": 12.0}
    assert reasons(loop(12, 4000), client__send_lag_ms=late) == {}


def test_too_short_names_what_would_do():
    made = loop(0, 100)
    found = reasons(made, minimum={"seconds": 0.0, "answers": 50})["too-short"]
    assert (found.measured, found.limit) == ("20 answers in 2.0 s", "50 answers and 0 s")
    assert found.hint == "measure longer: --requests 50"
    found = reasons(made, minimum={"seconds": 10.0, "answers": 1})["too-short"]
    assert (found.limit, found.hint) == ("1 answer and 10 s", "measure longer: --requests 120")  # with room
    assert "too-short" not in reasons(made, minimum={"seconds": 1.9, "answers": 20})


def test_too_few_answers_name_what_would_do():
    least = {"seconds": 0.0, "answers": 50}
    few = reasons(loop(0, 100, count=3), minimum=least)["too-few-samples"]
    assert few.hint == "measure longer: --requests 50"
    few = reasons(loop(0, 100, count=3), minimum=least | {"answers": 1})["too-few-samples"]
    assert few.hint == "measure longer: --requests 5"
    assert few.requests_needed == 5


def test_more_requests_are_no_help_where_most_failed():
    made, least = loop(0, 100), {"seconds": 0.0, "answers": 16}
    for answered in (3, 0):
        made.requests["outcome"][answered:] = Outcome.TIMEOUT
        found = reasons(made, minimum=least)["too-few-samples"]
        assert found.hint == "most requests got no answer: see to that first"
        assert found.requests_needed is UNSET
        found = reasons(made, minimum=least, interrupted=True)["too-few-samples"]
        assert found.hint == "the cell was cut short: `bench resume` measures it again"
    made.requests["outcome"][:19] = Outcome.OK
    assert (
        reasons(made, minimum=least | {"answers": 50})["too-short"].hint == "measure longer: --requests 53"
    )  # 19 of 20 answer


def test_more_requests_are_no_help_where_the_time_was_over():
    of_time = {"seconds": 10.0, "answers": 50, "duration_s": 2.0}
    hint = reasons(loop(0, 100), minimum=of_time, unsent=3)["too-short"].hint
    assert hint == "measure longer: --requests 120 --duration 12"  # 2 of 10 s, and some room
    few = reasons(loop(0, 4000), minimum=of_time | {"seconds": 0.0, "answers": 1})
    assert "too-few-samples" not in few
    few = reasons(loop(0, 8000, count=3), minimum=of_time, unsent=3)["too-few-samples"]
    assert few.hint == "measure longer: --requests 50 --duration 40"  # 3 of 50
    assert few.change == {"--duration": 40, "--requests": 50}


def test_more_requests_get_the_time_that_they_need():
    """The duration of this cell would cut them, whatever other cells of the run take."""
    least = {"seconds": 0.0, "answers": 100}  # five times those that were answered in 2 s
    for asked_s, longer in ((3.0, {"--duration": 12}), (20.0, {})):
        found = reasons(loop(0, 100), minimum=least | {"duration_s": asked_s})["too-short"]
        assert found.change == {"--requests": 100} | longer
    warmed_up = loop(0, 100)
    warmed_up.requests["phase"][:10] = Phase.WARMUP
    found = reasons(warmed_up, minimum=least | {"duration_s": 3.0})["too-short"]
    assert found.change == {"--requests": 100, "--duration": 12}  # ten times one second, not two


@pytest.mark.parametrize(
    ("given", "hint", "needed"),
    [
        ({}, "measure longer: --requests 50", 50),  # all were sent before the time was over
        ({"unsent": 3}, "measure longer: --requests 50 --duration 180", UNSET),  # 20 would end it
        (
            {"interrupted": True, "unsent": 3},
            "the cell was cut short: `bench resume` measures it again",
            UNSET,
        ),
        ({"planned": 12}, "its file holds only 12 requests for this load: use a longer one", 50),
        ({"planned": 12, "unsent": 3}, "its file holds only 12 requests for this load: use a longer one", 50),
    ],
)
def test_what_ended_a_cell_decides_how_to_measure_more(given, hint, needed):
    of_time = {"seconds": 0.0, "answers": 50, "duration_s": 60.0, "requests": 20}
    found = reasons(loop(0, 100), minimum=of_time, **({"planned": 20} | given))["too-short"]
    assert (found.hint, found.requests_needed) == (hint, needed)


@pytest.mark.parametrize(
    ("held", "unsent", "hint"),
    [
        (50, 0, "measure longer: --requests 50"),
        (49, 0, "its file holds only 49 requests for this load: use a longer one"),
        (50, 3, "measure longer: --requests 50 --duration 180"),
        (49, 3, "its file holds only 49 requests for this load: use a longer one"),  # whatever the time
    ],
)
def test_no_more_requests_are_asked_for_than_the_file_holds(held, unsent, hint):
    least = {"seconds": 0.0, "answers": 50, "duration_s": 60.0, "requests": 20, "held": held}
    found = reasons(loop(0, 100), minimum=least, planned=20, unsent=unsent)
    assert found["too-short"].hint == hint


@pytest.mark.parametrize(("duration_s", "short"), [(2.0, False), (2.05, False), (2.2, True)])
def test_answers_reach_as_much_of_the_duration_as_is_asked_for(duration_s, short):
    """The last first token comes after 1.905 s, the last further one after 2 s."""
    least = {"seconds": 0.0, "answers": 1, "coverage": 0.92, "duration_s": duration_s}
    found = reasons(loop(0, 100), minimum=least).get("coverage-short")
    assert (found is not None) == short
    if short:
        assert found.measured == "first tokens 86.6%, further ones 90.9% of 2.2 s"
        assert (found.verdict, found.limit) == ("INVALID", "92%")
    assert "coverage-short" not in reasons(loop(0, 100), minimum=least | {"duration_s": 0.0})


def test_times_that_vary_need_waves():
    """Half of the answers take 50 ms, half 150: cv 0.5, 5 waves. 20 answers are 5 waves of four slots."""
    rows = [
        {"intended": 100 * i, "sent": 100 * i, "texts": [100 * i + 10, 100 * i + 50 + 100 * (i % 2)]}
        for i in range(20)
    ]
    made = records(*rows)

    def slots(count, **start):
        return reasons(made, load={"kind": "concurrency", "value": count} | start).get("few-waves")

    assert slots(4) is slots(1) is None
    assert "few-waves" not in reasons(records(*rows[:4]), load={"kind": "concurrency", "value": 1})
    assert slots(20, start_declared="together") is None  # sent at once: no answer is cut
    assert slots(20)
    assert slots(19, start_declared="together")
    found = slots(5)
    assert (found.measured, found.limit) == ("4 waves of answers whose times vary by 50%", "5 waves")
    assert found.hint == "requests/s may be too high; measure longer: --requests 25"
    assert found.requests_needed == 25
    assert "few-waves" not in reasons(made, load={"kind": "rate", "value": 5.0})


def test_a_run_that_declares_nothing_is_judged_by_the_defaults():
    about = facts(workload__exact_output=False, minimum=None)
    found = judge(Evidence(RequestView(loop(0, 100)), about)).reasons
    assert [reason.limit for reason in found] == ["100 answers and 10 s"]


def six_at_first(first_tokens=None, letters=18):
    """60 tokens, of which the first event holds six, or as few as its letters say."""
    made = records(*({"intended": 0, "texts": [100, *range(110, 641, 10)], "tokens": 60} for _ in range(10)))
    made.requests["output_chars"] = 180
    made.events["text_chars"][np.unique(made.events["seq"], return_index=True)[1]] = letters
    if first_tokens:
        made.requests["first_tokens"] = first_tokens
    return made


def test_a_first_event_of_several_tokens_is_told_where_nobody_counted_them():
    found = reasons(six_at_first())["first-event-tokens"]
    assert found.measured == "about 6.0 tokens in first arrivals, by their letters: TPOT may be 8% low"
    assert found.metrics == ("tpot_ms",)
    assert "first-event-tokens" not in reasons(six_at_first(first_tokens=6))
    assert "first-event-tokens" not in reasons(six_at_first(letters=3))  # others hold more


def test_itl_of_events_that_come_together_is_labelled_and_never_0():
    pairs = [t for i in range(10) for t in (20 + 10 * i, 20 + 10 * i)]
    made = records(*({"intended": 1000 * k, "texts": [1000 * k + t for t in pairs]} for k in range(10)))
    found = reasons(made)["itl-merged"]
    assert found.measured == "53% of the gaps are within one arrival, 2.00 events per arrival"
    assert found.metrics == ("itl_ms",)
    summary = summarise_cell(made, facts(), None)
    assert summary.itl_ms.p50 == 10
    assert summary.events_per_arrival == 2
    assert "itl-merged" not in reasons(loop(0, 100))
