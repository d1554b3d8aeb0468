"""Rates by the share of each answer's work inside the window, worked out by hand and by their properties."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.throughput import rates
from harness.metrics.view import CellView
from harness.metrics.window import Window, makespan_s, measured_window, work_shares
from harness.model import Prices
from harness.records.layout import UNKNOWN, Outcome, Phase
from tests.factories.recorded import MS, facts, load, records, requested, summarise_cell

SECOND = Window(0, 1000 * MS, "steady")
CLOSED = load("concurrency", 8)
OPEN = load("rate", 10.0, arrival="constant", over_cap="wait")


def rates_of(made, window, *, closed_loop):
    return rates(made, window, work_shares(made.requests, made.events, window, closed_loop=closed_loop))


def closed_loop(lengths_ms, slots, warmup=0):
    """Answers of these lengths, one slot after another; three texts each, the last at the end."""
    free, rows = [0] * slots, []
    for seq, length in enumerate(lengths_ms):
        slot = free.index(min(free))
        sent = free[slot]
        texts = [sent + length // 2, sent + 3 * length // 4, sent + length]
        phase = Phase.WARMUP if seq < warmup else Phase.MEASURE
        rows.append({"intended": sent, "sent": sent, "texts": texts, "phase": phase, "prompt": 10})
        free[slot] = sent + length
    return records(*rows)


def test_slots_of_a_load():
    assert CLOSED.slots == 8
    assert OPEN.slots is None


def test_a_closed_loop_is_steady_from_one_answer_after_its_start_until_a_slot_stays_empty():
    window = measured_window(closed_loop([100] * 32, 8).requests, 8)
    assert (window.start_ns, window.end_ns, window.kind) == (100 * MS, 400 * MS, "steady")


def test_the_window_ends_where_a_slot_of_one_load_worker_stays_empty():
    """Workers have their own shares: the second has answers for 200 ms more when the first has none left."""
    first, second = closed_loop([50] * 8, 2).requests, closed_loop([100] * 8, 2).requests
    second["worker"], second["seq"] = 1, second["seq"] + len(first)
    requests = np.concatenate([first, second])
    assert measured_window(requests, 4).end_ns == 200 * MS


def chats(turns, slots):
    """Sessions of so many turns of 100 ms each, one slot after another; and the session of each request."""
    free, rows, sessions = [0] * slots, [], []
    for session, count in enumerate(turns):
        slot = free.index(min(free))
        for _ in range(count):
            rows.append({"sent": free[slot], "texts": [free[slot] + 100]})
            sessions.append(session)
            free[slot] += 100
    return records(*rows).requests, np.array(sessions)


def test_a_slot_stays_empty_when_no_chat_is_left_to_begin_though_others_go_on():
    requests, sessions = chats([1, 1, 2, 6], 2)
    window = measured_window(requests, 2, sessions=sessions)
    assert (window.start_ns, window.end_ns, window.kind) == (100 * MS, 300 * MS, "steady")
    assert measured_window(requests, 2).end_ns == 600 * MS, "as if any turn could take the empty slot"


@pytest.mark.parametrize(
    ("outcome", "facts_of_end", "end_ms"),
    [
        (Outcome.OK, {"minimum__duration_s": 1.0}, 800),
        (Outcome.OK, {"minimum__duration_s": 0.7}, 700),
        (Outcome.OK, {"minimum__duration_s": 9.0, "interrupted": True}, 800),
        (Outcome.OK, {}, 800),
        (Outcome.RESET, {"minimum__duration_s": 1.0}, 500),
    ],
)
def test_a_session_that_waits_past_the_end_keeps_its_slot_and_a_failed_one_does_not(
    outcome, facts_of_end, end_ms
):
    """Of two slots one waits from 500 ms on for its second call; in the other one two sessions follow."""
    rows = [
        {"sent": 0, "texts": [500], "outcome": outcome},
        {"sent": 0, "texts": [100]},
        {"sent": 100, "texts": [400]},
        {"sent": 400, "texts": [600]},
        {"sent": 600, "texts": [800]},
    ]
    made = records(*rows)
    made.requests["seq"] = [0, 2, 3, 4, 5]
    asked = requested(
        *(("", {"session": session, "turn": turn}) for session in range(4) for turn in range(2))
    )
    told = facts(load={"kind": "concurrency", "value": 2}, **facts_of_end)
    assert CellView(made, told, asked).window.end_ns == end_ms * MS


@pytest.mark.parametrize(("after_warmup", "end_ms"), [(False, 650), (True, 800)])
def test_a_duration_lasts_from_the_first_measured_send_where_the_cell_says_so(after_warmup, end_ms):
    rows = [
        {"sent": 0, "texts": [150], "phase": Phase.WARMUP},
        {"sent": 150, "texts": [400]},
        {"sent": 400, "texts": [600]},
    ]
    minimum = {"seconds": 0.0, "answers": 1, "duration_s": 0.65, "after_warmup": after_warmup}
    lost = records(*rows, {"sent": 400, "texts": [600]})
    lost.requests["start_ns"][-1] = UNKNOWN  # lost with its load worker
    assert CellView(lost, facts(minimum=minimum)).close_ns == end_ms * MS


@pytest.mark.parametrize(
    ("think_s", "unsent", "end_ms"), [(0.3, 8, 1000), (0.3, 0, 550), (0.0, 8, 550)], ids=str
)
def test_a_user_who_thinks_past_the_end_keeps_the_slot(think_s, unsent, end_ms):
    """Of two users one thinks from 550 ms on past the end of a cell of one second, and asks no more."""
    rows = [{"sent": 0, "texts": [100]}, {"sent": 0, "texts": [150]}, {"sent": 400, "texts": [500]},
            {"sent": 450, "texts": [550]}, {"sent": 850, "texts": [950]}]  # fmt: skip
    load = {"kind": "concurrency", "value": 2, "think_time_s": think_s}
    told = facts(load=load, minimum__duration_s=1.0, unsent=unsent)
    made = CellView(records(*rows), told, requested(*[("", {})] * (5 + unsent)))
    assert made.window.end_ns == end_ms * MS


def test_chats_of_one_turn_are_requests():
    requests, sessions = chats([1] * 32, 8)
    assert measured_window(requests, 8, sessions=sessions) == measured_window(requests, 8)


def test_slots_that_begin_one_after_another_have_all_begun_before_the_window():
    rows = [
        {"sent": 10 * slot + 80 * wave, "texts": [10 * slot + 80 * wave + 79]}
        for wave in range(4)
        for slot in range(8)
    ]
    window = measured_window(records(*rows).requests, 8)
    assert (window.start_ns, window.end_ns) == ((70 + 79) * MS, (240 + 79) * MS)


def test_a_single_wave_has_no_steady_part():
    rows = [{"sent": 0, "texts": [50, 100]} for _ in range(4)]
    window = measured_window(records(*rows).requests, 4)
    assert (window.start_ns, window.end_ns, window.kind) == (0, 100 * MS, "whole")


def test_an_open_loop_is_steady_from_one_answer_after_its_start_to_its_last_send():
    rows = [{"sent": 10 * i, "texts": [10 * i + 5, 10 * i + 20]} for i in range(10)]
    window = measured_window(records(*rows).requests, None)
    assert (window.start_ns, window.end_ns, window.kind) == (20 * MS, 90 * MS, "steady")


def test_an_open_loop_shorter_than_its_answers_has_no_steady_part():
    rows = [{"sent": 10 * i, "texts": [10 * i + 200]} for i in range(10)]
    assert measured_window(records(*rows).requests, None).kind == "whole"


def test_no_answer_has_no_window():
    made = records({"outcome": Outcome.TIMEOUT, "tokens": -1})
    assert measured_window(made.requests, 1) is None


def test_a_makespan_is_of_measured_requests_that_were_all_answered():
    rows = [
        {"sent": 0, "texts": [9000], "phase": Phase.WARMUP},
        {"sent": 300, "texts": [2500]},
        {"sent": 200, "texts": [700]},
    ]
    assert makespan_s(records(*rows).requests) == 2.3
    failed = {"sent": 400, "outcome": Outcome.TIMEOUT}
    assert makespan_s(records(*rows, failed).requests) is None
    assert makespan_s(records({**failed, "phase": Phase.WARMUP}, *rows).requests) == 2.3
    assert makespan_s(records(rows[0]).requests) is None


def test_a_closed_loop_counts_time_and_an_open_one_text():
    made = records(
        {"sent": 500, "texts": [600, 700, 1500], "tokens": 4, "prompt": 10},  # half its time, 2 of 3 texts
        {"sent": 200, "texts": [300, 900], "tokens": 2, "prompt": 20},
    )
    assert rates_of(made, SECOND, closed_loop=True) == {
        "output_tokens_per_s": 4.0,
        "input_tokens_per_s": 25.0,
        "requests_per_s": 1.5,
        "items_per_s": None,
        "output_chars_per_s": 10.5,
        "reasoning_tokens_per_s": None,
        "answer_tokens_per_s": None,
    }
    assert rates_of(made, SECOND, closed_loop=False)["requests_per_s"] == pytest.approx(1 + 2 / 3)


ANSWER, THOUGHT = {"texts": [10, 20, 30]}, {"texts": [10, 20, 30], "thoughts": 2}
FAILED = {"outcome": Outcome.HTTP_ERROR}


@pytest.mark.parametrize(
    ("rows", "counted", "why"),
    [
        ([ANSWER] * 2, [UNKNOWN] * 2, "no answer has reasoning"),
        ([THOUGHT] * 2, [UNKNOWN] * 2, "the server does not count reasoning tokens"),
        ([THOUGHT] * 2, [2, UNKNOWN], "the server counts the reasoning tokens of some answers only"),
        ([{**THOUGHT, "phase": Phase.WARMUP}, FAILED], [2, UNKNOWN], "no answer to count"),
    ],
)
def test_the_page_says_why_reasoning_has_no_rate_of_its_own(rows, counted, why):
    made = records(*rows)
    made.requests["reasoning_tokens"] = counted
    reasons = summarise_cell(made, facts(planned=2), None).null_reasons
    assert (reasons["reasoning_tokens_per_s"], reasons["answer_tokens_per_s"]) == (why, why)


def test_reasoning_that_no_answer_in_the_window_has_is_a_rate_of_0():
    """The warm-up's answer thought, and ended before the window."""
    made = records({**THOUGHT, "phase": Phase.WARMUP}, {"sent": 100, "texts": [150, 200]})
    made.requests["reasoning_tokens"] = 2, 0
    found = summarise_cell(made, facts(planned=1), None)
    assert found.reasoning_tokens_per_s == 0
    assert found.answer_tokens_per_s == found.output_tokens_per_s == pytest.approx(20)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [([UNKNOWN] * 2, "the server reports no token counts"),
     ([UNKNOWN, 3], "the server reports no token counts of 1 of 2 answers")],
)  # fmt: skip
def test_a_rate_in_tokens_that_is_not_known_says_how_many_answers_are_not_counted(tokens, why):
    made = records(ANSWER, ANSWER)
    made.requests["output_tokens"] = tokens
    priced = facts(planned=2, prices=Prices("USD", "list", machine_per_hour=2.0))
    reasons = summarise_cell(made, priced, None).null_reasons
    assert reasons["output_tokens_per_s"] == reasons["cost_per_million_output_tokens"] == why


def test_waves_are_not_counted_over_one_period_too_few():
    """32 slots, two waves of a second: 32 requests/s. By ends it would be 64 in one second."""
    made = closed_loop([1000] * 64, 32)
    window = measured_window(made.requests, 32)
    assert rates_of(made, window, closed_loop=True)["requests_per_s"] == 32.0


def test_an_overloaded_server_is_counted_by_its_work():
    """One answer every 50 ms, 40 requests/s offered: time in flight would call waiting work."""
    rows = []
    for i in range(80):
        begun = 50 * i
        rows.append({"sent": 25 * i, "texts": [begun + 25, begun + 50]})
    made = records(*rows)
    window = measured_window(made.requests, None)
    assert window.kind == "steady"
    assert rates_of(made, window, closed_loop=False)["requests_per_s"] == pytest.approx(20, rel=0.03)
    assert rates_of(made, window, closed_loop=True)["requests_per_s"] > 24


def test_slow_answers_are_no_lower_throughput():
    """Ten requests/s of 50 tokens each, every one answered; gaps of 20 and of 100 ms."""
    for gap_ms in (20, 100):
        rows = [{"sent": 100 * i, "texts": [100 * i + gap_ms * n for n in range(1, 51)]} for i in range(160)]
        cell = summarise_cell(records(*rows), facts(load=OPEN, planned=160), None)
        assert cell.window_kind == "steady"
        assert cell.output_tokens_per_s == pytest.approx(500, rel=0.01)


def test_rates_hold_where_a_request_never_became_due():
    """The second turn of a chat whose first one failed has no row."""
    whole = records({"texts": [100, 200]}, {"texts": [300]}, {"sent": 200, "texts": [400, 500]})
    events = whole.events[whole.events["seq"] != 1]
    made = replace(whole, requests=np.delete(whole.requests, 1), events=events)
    assert made.seq_count == 3
    for loop in (True, False):
        found = rates_of(made, SECOND, closed_loop=loop)
        assert (found["output_tokens_per_s"], found["requests_per_s"]) == (4.0, 2.0)


def test_tokens_nobody_reported_are_not_zero():
    found = rates_of(records({"texts": [500, 600], "tokens": -1}), SECOND, closed_loop=True)
    assert found["output_tokens_per_s"] is None
    assert found["input_tokens_per_s"] is None
    assert found["output_chars_per_s"] == 6.0


def test_text_has_no_items():
    made = summarise_cell(closed_loop([100] * 16, 4), facts(load=load("concurrency", 4)), None)
    assert made.items_per_s is None
    assert made.null_reasons["items_per_s"] == "answers are text, not vectors or scores"


def test_failures_amount_to_nothing():
    made = records({"texts": [500]}, {"texts": [500], "outcome": Outcome.TIMEOUT})
    assert rates_of(made, SECOND, closed_loop=True)["requests_per_s"] == 1.0


lengths = st.lists(st.integers(20, 400), min_size=16, max_size=48)


@given(lengths, st.integers(1, 8), st.integers(-20 * MS, 20 * MS))
def test_an_edge_may_lie_on_an_end_since_moving_it_a_little_moves_the_rate_a_little(taken, slots, shift_ns):
    """In a closed loop what is done is at most slots per shortest answer: so much can a shift add or take."""
    made = closed_loop(taken, slots)
    window = measured_window(made.requests, slots)
    steps = np.linspace(0, shift_ns, 5).astype(int).tolist()
    done = [
        work_shares(
            made.requests, made.events, replace(window, end_ns=window.end_ns + step), closed_loop=True
        ).sum()
        for step in steps
    ]
    for (before, after), (earlier, later) in zip(pairwise(done), pairwise(steps), strict=True):
        assert abs(after - before) <= abs(later - earlier) * slots / (min(taken) * MS) + 1e-9


@given(lengths, st.integers(1, 8))
def test_goodput_is_never_above_and_full_attainment_is_equal(taken, slots):
    made = closed_loop(taken, slots)
    closed = load("concurrency", slots)
    limited = facts(load=closed, planned=len(taken), slo={"e2e_ms": {"p50": 200.0}})
    cell = summarise_cell(made, limited, None)
    assert cell.goodput_requests_per_s <= cell.requests_per_s + 1e-9
    loose = facts(load=closed, planned=len(taken), slo={"e2e_ms": {"p50": 1e6}})
    cell = summarise_cell(made, loose, None)
    assert cell.slo.attainment == 1.0
    assert cell.goodput_requests_per_s == pytest.approx(cell.requests_per_s)


@given(lengths, st.integers(1, 8))
def test_every_figure_is_of_the_same_shares(taken, slots):
    cell = summarise_cell(
        closed_loop(taken, slots), facts(load=load("concurrency", slots), planned=len(taken)), None
    )
    for name, each in (("output_tokens", 3), ("input_tokens", 10), ("output_chars", 9)):
        assert getattr(cell, f"{name}_per_s") == pytest.approx(each * cell.requests_per_s)


def test_slots_that_spread_their_sends_wait_on_purpose_before_the_window():
    """Four slots, answers of 100 ms: the second sends come 25 ms apart, and 4 slots then give 40 a second."""
    rows = [{"sent": 0, "texts": [100], "phase": Phase.WARMUP} for _ in range(4)]
    rows += [
        {"sent": 100 + 25 * slot + 100 * wave, "texts": [200 + 25 * slot + 100 * wave]}
        for wave in range(3)
        for slot in range(4)
    ]
    made = records(*rows)
    window = measured_window(made.requests, 4, not_before_ns=175_000_000)
    assert (window.start_ns, window.kind) == (175_000_000, "steady")
    assert rates_of(made, window, closed_loop=True)["requests_per_s"] == pytest.approx(40)
