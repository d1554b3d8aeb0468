"""Text that came at once: no gap of it is known, wherever a gap or TPOT is used. Times worked out by hand."""

import numpy as np
import pytest

from harness.metrics.bundling import merged_gaps
from harness.metrics.goodput import goodput
from harness.metrics.latency import at_once, by_arrival, itl_ms, tpot_ms, why_no_gaps
from harness.metrics.peers import recompute, tool_named
from harness.metrics.view import RequestView
from harness.metrics.window import Window
from harness.records.layout import EVENT_DTYPE, UNKNOWN, EventKind, Records
from harness.validity import Evidence, blame, judge
from tests.factories.recorded import MS, facts, records, summarise_cell

WHOLE = {"texts": [440] * 20, "tokens": 20, "prompt": 100}
STREAMED = {"texts": [60 + 20 * i for i in range(20)], "tokens": 20, "prompt": 100}


def cell(*rows):
    """The n-th row is sent 100 n ms after the first."""
    return records(
        *(
            {**row, "intended": 100 * n, "texts": [100 * n + moment for moment in row["texts"]]}
            for n, row in enumerate(rows)
        )
    )


def codes(made, **changes):
    return {str(one.code): one for one in judge(Evidence(RequestView(made), facts(**changes))).reasons}


def test_an_answer_in_one_arrival_has_no_gap():
    made = cell(*[WHOLE] * 10)
    assert at_once(made.requests).all()
    assert len(tpot_ms(RequestView(made))) == len(itl_ms(RequestView(made))) == 0
    assert why_no_gaps(RequestView(made)).startswith("10 of 10 answers came at once")


@pytest.mark.parametrize(("first", "per_token"), [(UNKNOWN, 20), (42, 380 / 18)])
def test_reasoning_that_the_server_keeps_to_itself_came_before_the_first_text(first, per_token):
    """40 tokens of reasoning, then 20 events 20 ms apart. The server may have counted by the first."""
    made = cell({**STREAMED, "tokens": 60})
    made.requests["reasoning_tokens"], made.requests["first_tokens"] = 40, first
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([per_token])
    assert "tokens-per-event" not in codes(made, habits={"tokens_per_event": "one"})


def test_counted_reasoning_among_the_text_came_with_it():
    made = cell(STREAMED)
    made.requests["reasoning_tokens"] = 15
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([20])


def test_two_reads_of_one_write_are_no_gap():
    made = cell(WHOLE)
    made.events["stamp_ns"][10:] += 30_000
    made.requests["last_text_ns"] += 30_000
    assert at_once(made.requests).tolist() == [True]
    assert len(tpot_ms(RequestView(made))) == len(itl_ms(RequestView(made))) == 0


def test_a_fast_stream_is_no_write_at_once():
    """20 tokens in 1.9 ms: 10,000 tokens/s."""
    made = cell({**STREAMED, "texts": [60] * 20})
    made.events["stamp_ns"] += np.arange(20) * 100_000
    made.requests["last_text_ns"] += 1_900_000
    assert tpot_ms(RequestView(made)) == pytest.approx([0.1])


def test_several_tokens_in_each_event_keep_their_gaps():
    """Speculation: 5 events of 4 tokens, 80 ms apart, the first of which the server counted."""
    made = cell({"texts": [60 + 80 * i for i in range(5)], "tokens": 20})
    made.requests["first_tokens"] = 4
    assert not at_once(made.requests).any()
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([320 / 16])


def test_tokens_of_the_first_arrival_have_no_gap_to_the_first_token():
    """Two flushes of ten tokens, 100 ms apart: 10 ms a token, not 100 / 19."""
    made = cell({"texts": [100] * 10 + [200] * 10, "tokens": 20})
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([10.0])


def test_a_last_token_without_text_is_no_part_of_the_first_arrival():
    """Three of five texts came as one, then two more, and an end that is a token: 40 ms for 6 - 3 tokens."""
    made = cell({"texts": [100, 100, 100, 120, 140], "tokens": 6})
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([40 / 3])


def with_a_call(made):
    """The first event has a call besides its text: a row of its own, without bytes."""
    call = np.array([(0, EventKind.TOOL_CALL, 3, 0, made.events["stamp_ns"][0])], EVENT_DTYPE)
    events = np.concatenate([made.events[:1], call, made.events[1:]])
    return Records(made.requests, events, made.texts, made.finish_reasons, made.errors)


def test_text_and_a_call_in_one_event_are_no_gap():
    """5 events of 4 tokens, 20 ms apart, the first of which the server counted."""
    made = cell({"texts": [60 + 20 * i for i in range(5)], "tokens": 20})
    made.requests["first_tokens"] = 4
    made = with_a_call(made)
    assert tpot_ms(RequestView(by_arrival(made))) == pytest.approx([80 / 16])
    assert merged_gaps(RequestView(made)) == (0, 1)
    peers = recompute([tool_named("vllm@0.33"), tool_named("sglang")], made, facts())
    for view in peers.values():
        means = {figure.measure: figure.value for figure in view.figures if figure.statistic == "mean"}
        assert means["ITL"] == pytest.approx(20)


def test_a_stream_of_single_arrivals_is_left_as_it_is():
    made = cell(STREAMED, STREAMED)
    assert by_arrival(made) is made


def test_the_summary_says_why_gaps_are_not_known():
    found = summarise_cell(cell(*[WHOLE] * 10), facts(), None)
    assert (found.tpot_ms.p50, found.itl_ms.p50) == (None, None)
    assert found.e2e_ms.p50 == found.ttft_ms.p50 == pytest.approx(440)
    assert "came at once" in found.null_reasons["tpot_ms.p50"]
    assert "came at once" in found.null_reasons["itl_ms.mean"]


def kept(*rows):
    made = by_arrival(cell(*rows))
    window = Window(0, 10_000 * MS, "whole")
    return goodput(RequestView(made), {"tpot_ms": {"p90": 50.0}}, window, np.ones(len(made.requests))).slo


def test_a_limit_on_tpot_is_not_met_by_answers_written_at_once():
    assert kept(*[WHOLE] * 10) is None
    assert kept(*[STREAMED] * 10).attainment == 1.0


def test_one_token_has_no_tpot_to_limit():
    single = {"texts": [60], "tokens": 1}
    with_end = {"texts": [60], "tokens": 2}  # the end of the answer is a token without text
    assert kept(*[single] * 5, *[with_end] * 5).attainment == 1.0


def lag(p50, p99):
    return {"samples": 1000, "p50": p50, "p90": p99, "p95": p99, "p99": p99, "max": p99}


def test_an_answer_that_is_one_event_was_not_held_back_and_has_no_gaps():
    made = cell(*[{"texts": [440], "tokens": 20}] * 10)
    assert "itl-merged" not in codes(made)
    assert len(tpot_ms(RequestView(made))) == len(itl_ms(RequestView(made))) == 0


@pytest.mark.parametrize(
    ("whole", "api", "found"),
    [(10, "chat", True), (6, "chat", True), (5, "chat", False), (10, "rerank", False)],
)
def test_a_server_that_sends_whole_answers_does_not_stream(whole, api, found):
    made = cell(*[{"texts": [440], "tokens": 20}] * whole, *[STREAMED] * (10 - whole))
    doubts = codes(made, request={"api": api})
    assert ("not-streamed" in doubts) is found
    if found:
        reason = doubts["not-streamed"]
        assert reason.measured == f"{whole} of 10 answers of several tokens came as one event"
        assert (reason.verdict, reason.metrics) == ("SUSPECT", ("ttft_ms", "tpot_ms", "itl_ms"))
    assert "not-streamed" not in codes(cell(*[{"texts": [440], "tokens": 2}] * 10)), "a token and its end"


def test_the_client_is_not_blamed_for_what_the_server_wrote_at_once():
    found = codes(cell(*[WHOLE] * 10), client__merged_share=0.95, client__loop_lag_ms=lag(0.05, 3.0))
    assert "merged-events" not in found
    assert found["itl-merged"].measured == "10 of 10 answers came at once"
    assert found["itl-merged"].limit == "half of the answers"
    assert found["itl-merged"].verdict == "SUSPECT"
    words = "ITL and TPOT of these are not known, TTFT is when the text came; compare E2E"
    assert found["itl-merged"].hint.endswith(words)
    assert found["itl-merged"].metrics == ()  # of all: TTFT too is not the engine's


def test_a_starved_client_is_blamed_although_no_gap_is_known():
    made = cell(*[WHOLE] * 10)
    found = judge(
        Evidence(RequestView(made), facts(client__merged_share=0.95, client__loop_lag_ms=lag(500.0, 600.0)))
    )
    assert blame(found)[0] == "client"
    assert "merged-events" in {reason.code for reason in found.reasons}
