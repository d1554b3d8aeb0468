from dataclasses import replace
from math import comb

import numpy as np
import pytest

from harness.metrics import latency, pooled
from harness.metrics.bundling import merged_gaps, tokens_of_first_events
from harness.metrics.distribution import latency_stats, samples_needed
from harness.metrics.throughput import _text_chars
from harness.metrics.view import CellView, RequestView
from harness.model import as_json
from harness.records.layout import UNKNOWN, EventKind, Outcome, Phase
from harness.stats.binomial import upper_rank
from tests.factories.recorded import facts, records


def test_ttft_counts_from_the_intended_send_and_service_from_the_actual():
    made = records({"intended": 0, "sent": 40, "texts": [100, 150]})
    assert latency.of_metric(RequestView(made), "ttft_ms").tolist() == [100]
    assert latency.of_metric(RequestView(made), "ttft_service_ms").tolist() == [60]
    assert latency.of_metric(RequestView(made), "e2e_ms").tolist() == [150]


def test_tpot_divides_by_tokens_not_by_events():
    whole = {"texts": [10], "tokens": 4}  # in one event: no time between tokens was seen
    made = records({"texts": [10, 30, 50], "tokens": 5}, {"texts": [10], "tokens": 1}, whole)
    assert latency.tpot_ms(RequestView(made)).tolist() == [10]


def test_a_failed_request_never_improves_a_time_per_token():
    """Gaps of 10 ms, and one answer of 500 ms each: it times out after two tokens, or never begins."""
    quick, slow = {"texts": [10, 20, 30]}, {"texts": [10, 510, 1010]}
    assert latency.tpot_ms(RequestView(records(quick, slow))).tolist() == [10, 500]
    for texts in ([10, 510], []):
        cut = records(quick, {"texts": texts, "outcome": Outcome.TIMEOUT})
        assert latency.tpot_ms(RequestView(cut)).tolist() == [10, np.inf]
        assert latency.itl_ms(RequestView(cut)).tolist() == [10, 10], "gaps are of answers"


def test_a_failed_request_has_no_time_per_token_where_no_answer_has_one():
    single, whole, failed = {"texts": [10]}, {"texts": [10], "tokens": 9}, {"outcome": Outcome.RESET}
    for answer in (single, whole):
        assert latency.tpot_ms(RequestView(records(answer, failed))).tolist() == []
    assert latency.tpot_ms(RequestView(records(single, {"texts": [10, 20]}, failed))).tolist() == [10, np.inf]
    found = latency.compute(CellView(records(*[failed] * 6), facts()))
    assert found.nulls["tpot_ms.p50"] == found.nulls["tpot_ms.mean"] == "6 of 6 requests never got there"


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_gaps_are_the_same_however_the_events_are_cut_into_blocks(monkeypatch, size):
    monkeypatch.setattr("harness.records.layout._EVENTS_PER_BLOCK", size)
    made = records({"texts": [10, 30, 60]}, {"texts": [5]}, {"texts": [7, 7, 12, 20]})
    assert latency.event_gaps_ms(RequestView(made)).tolist() == [20, 30, 0, 5, 8]
    assert latency.itl_ms(RequestView(made)).tolist() == [5, 8, 20, 30], "ascending"
    assert _text_chars(made).tolist() == [9, 3, 12]


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_those_of_each_answer_to_the_last_digit(monkeypatch, seed):
    drawn = np.random.default_rng(seed)
    monkeypatch.setattr("harness.records.layout._EVENTS_PER_BLOCK", int(drawn.integers(1, 50)))
    answers = [np.cumsum(drawn.integers(0, 4, drawn.integers(0, 30))) + drawn.random() for _ in range(40)]
    made = records(*({"texts": texts.tolist()} for texts in answers))
    stamps_ns = [made.events["stamp_ns"][made.events["seq"] == seq] for seq in range(40)]
    own = [
        np.diff(stamps) / 1e6
        for stamps, row in zip(stamps_ns, made.requests, strict=True)
        if not latency.at_once(row[None])[0]
    ]
    gaps = np.concatenate(own)
    assert latency.itl_ms(RequestView(made)).tolist() == sorted(gaps[gaps > 0].tolist())


def test_tpot_leaves_out_the_tokens_of_the_first_event():
    """Six tokens at once, then one every 10 ms: 54 gaps of 60 tokens, counted by the server."""
    made = records({"texts": [100, *range(110, 641, 10)], "tokens": 60})
    made.requests["first_tokens"] = 6
    assert latency.tpot_ms(RequestView(made)).tolist() == [10]
    made.requests["first_tokens"] = UNKNOWN
    assert latency.tpot_ms(RequestView(made)) == pytest.approx([540 / 59])
    assert latency.first_tokens(made.requests).tolist() == [UNKNOWN]
    made.requests["output_tokens"] = 55
    assert latency.first_tokens(made.requests).tolist() == [1]
    made.requests["output_tokens"] = 56  # the end of the answer is a token without text
    assert latency.first_tokens(made.requests).tolist() == [1]


def test_events_of_one_arrival_have_no_gap_between_them():
    made = records({"texts": [10, 10, 30, 30, 50, 50]})
    assert latency.itl_ms(RequestView(made)).tolist() == [20, 20]
    assert latency.event_gaps_ms(RequestView(made)).tolist() == [0, 20, 0, 20, 0]
    assert merged_gaps(RequestView(made)) == (0.6, 2.0)
    assert merged_gaps(RequestView(records({"texts": [10, 10]}))) == (1.0, 2.0)
    made = records({"texts": [10, 10, 30]}, {})
    made.requests["text_events"][1] = UNKNOWN  # of a file that does not have its arrivals
    assert merged_gaps(RequestView(made)) == (0.5, 1.5)


def test_tokens_of_first_events_by_their_letters():
    """Letters of the first text event over letters per token, and the share by which TPOT may be low."""
    made = records({"texts": [10, 20, 30], "tokens": 9}, {"texts": [10, 20], "tokens": 5}, {"texts": [5]})
    made.requests["output_chars"] = [9, 6, 3]
    # What is no text comes before; a request with one event, or one of which all is known, is not asked.
    ahead = made.events[:1].copy()
    ahead["kind"], ahead["text_chars"] = EventKind.OTHER, 50
    whole = replace(made, events=np.concatenate([ahead, made.events]))
    per_token = 15 / 14
    assert tokens_of_first_events(RequestView(whole)) == pytest.approx((3 / per_token, (6 / 8 + 3 / 4) / 2))
    halves = whole.events[[0, 1, 1, *range(2, len(whole.events))]]
    halves["text_chars"][1:3], halves["wire_bytes"][2] = (1, 2), 0
    assert tokens_of_first_events(RequestView(replace(made, events=halves))) == pytest.approx(
        (3 / per_token, (6 / 8 + 3 / 4) / 2)
    ), "an event with two kinds of text"
    counted = records({"texts": [10, 20, 30]})
    assert tokens_of_first_events(RequestView(counted)) is None


def letters_of(made, *firsts):
    made.events["text_chars"][np.unique(made.events["seq"], return_index=True)[1]] = firsts
    made.requests["output_chars"] = 4 * made.requests["output_tokens"]
    return tokens_of_first_events(RequestView(made))


def test_first_events_are_judged_by_those_that_hold_one_token():
    """Ten answers that open with words of three letters; in one of them an emoji takes three tokens."""
    one_each = [{"texts": [10, 20, 30, 40, 50, 60]} for _ in range(9)]
    emoji = {"texts": [10, 20, 30, 40], "tokens": 6}
    made = records(emoji, *one_each)
    assert letters_of(made, *[3] * 10) == (1.0, 0.0), "the median answer has an event for each token"
    lumped = {"texts": [10, 20, 30, 40], "tokens": 6}
    tokens, low = letters_of(records(*[lumped] * 6, *one_each[:4]), *[9] * 6, *[3] * 4)
    assert (tokens, low) == (3.0, pytest.approx(2 / 5)), "most first events hold as much as three others"


def test_the_events_that_came_as_one_with_the_first_hold_tokens_too():
    """Five events of a token in one read, then ten of two: 20 tokens came later, where TPOT divides by 24."""
    flushed = {"texts": [100] * 5 + [120 + 20 * i for i in range(10)], "tokens": 25}
    made = records(flushed, {"texts": [100] * 5, "tokens": 25})  # what came whole has no TPOT
    made.events["text_chars"] = [4] * 5 + [8] * 10 + [4] * 5
    made.requests["output_chars"] = 100
    assert tokens_of_first_events(RequestView(made)) == pytest.approx((5.0, 14 / 24))


def test_an_answer_of_one_token_whose_first_event_holds_none_is_no_share_of_nothing():
    """A server may count the first event as 0 tokens; then one token of two events has a TPOT."""
    made = records({"texts": [10, 20], "tokens": 1}, {"texts": [10, 20], "tokens": 5})
    made.requests["first_tokens"] = [0, UNKNOWN]
    _, low = tokens_of_first_events(RequestView(made))
    assert low == pytest.approx((0 + 3 / 4) / 2)


def test_itl_is_pooled_over_gaps_and_never_crosses_requests():
    made = records({"texts": [10, 12, 15]}, {"texts": [100]}, {"texts": [200, 207]})
    assert latency.itl_ms(RequestView(made)).tolist() == [2, 3, 7]


def test_warm_up_and_our_own_cancellations_are_left_out():
    made = records(
        {"texts": [5, 6], "phase": Phase.WARMUP},
        {"sent": None, "outcome": Outcome.CANCELLED},
        {"texts": [50, 51]},
    )
    assert latency.of_metric(RequestView(made), "ttft_ms").tolist() == [50]
    assert latency.itl_ms(RequestView(made)).tolist() == [1]


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.HTTP_ERROR, Outcome.DROPPED, Outcome.TRUNCATED])
def test_a_failure_is_an_endless_latency(outcome):
    made = records({"texts": [50]}, {"texts": [60], "outcome": outcome})
    assert latency.of_metric(RequestView(made), "ttft_ms").tolist() == [50, np.inf]
    assert latency.itl_ms(RequestView(made)).tolist() == []


def test_a_refusing_server_never_gets_a_better_tail():
    fine = np.full(95, 10.0)
    statistics, reasons = latency_stats(np.concatenate([fine, np.full(5, np.inf)]))
    assert statistics.p50 == 10
    assert statistics.p95 is None
    assert reasons["p95"] == "5 of 100 requests never got there"
    assert statistics.mean == 10


def test_a_failure_leaves_a_percentile_between_two_answers_where_it_was():
    """The neighbours of this median are 120 and 200, whatever the largest value is."""
    for last in (220.0, np.inf):
        assert latency_stats(np.array([100, 110, 120, 200, 210, last]))[0].p50 == 160


@pytest.mark.parametrize(("lost", "p50"), [(1, 3.0), (2, 3.0), (3, None)])
def test_a_percentile_is_infinite_where_one_of_its_neighbours_is(lost, p50):
    """Of five values the median is the third; of six it lies between the third and the fourth."""
    five = np.array([1.0, 2, 3, 4, 5])
    five[5 - lost :] = np.inf
    assert latency_stats(five)[0].p50 == p50
    assert latency_stats(np.append(five, np.inf))[0].p50 == (3.5 if lost == 1 else None)


def test_percentiles_need_enough_samples():
    assert [samples_needed(p) for p in (50, 90, 95, 99)] == [5, 29, 59, 299]
    statistics, reasons = latency_stats(np.arange(298.0))
    assert statistics.p99 is None
    assert reasons == dict.fromkeys(("p99", "p99_upper"), "298 samples; p99 needs 299")
    assert latency_stats(np.arange(1.0))[1]["p50"] == "1 sample; p50 needs 5"
    statistics, reasons = latency_stats(np.arange(299.0))
    assert statistics.p99 == pytest.approx(np.quantile(np.arange(299.0), 0.99))
    assert statistics.p99_upper == 298  # the largest
    assert not reasons


@pytest.mark.parametrize("samples", [5, 7, 29, 59, 100, 299, 500])
def test_an_upper_bound_is_the_smallest_that_holds_with_95_of_100(samples):
    """In whole numbers, of 100 ** samples: at least so many samples lie below the percentile."""
    for percentile in (50, 90, 95, 99):
        rank = upper_rank(percentile / 100, samples)
        if rank is None:
            assert samples < samples_needed(percentile)
            continue
        of = [comb(samples, k) * percentile**k * (100 - percentile) ** (samples - k) for k in range(rank)]
        assert sum(of) >= 95 * 100 ** (samples - 1) > sum(of[:-1])


def test_many_latencies_are_thinned_evenly_by_rank(monkeypatch):
    made = records(*({"texts": [ms]} for ms in (7, 3, 10, 1, 9, 2, 8, 4, 6, 5)))
    assert pooled.samples(RequestView(made))["ttft_ms"].tolist() == list(range(1, 11))
    monkeypatch.setattr(pooled, "MOST_VALUES", 4)
    # The middles of four quarters of ten ranks: 1.25, 3.75, 6.25, 8.75.
    assert pooled.samples(RequestView(made))["ttft_ms"].tolist() == [2, 4, 7, 9]


def test_an_upper_bound_needs_independent_samples_that_got_there():
    values = np.concatenate([np.arange(97.0), np.full(3, np.inf)])
    statistics, reasons = latency_stats(values)
    assert statistics.p95 is not None
    assert statistics.p95_upper is None
    assert reasons["p95_upper"] == "3 of 100 requests never got there"
    assert statistics.p90_upper == 95.0  # of 100, the 96th
    statistics, reasons = latency_stats(np.arange(400.0), independent=False)
    assert statistics.p99 is not None
    assert statistics.p99_upper is None
    assert "not independent" in reasons["p99_upper"]


def test_nothing_measured_is_null_everywhere():
    statistics, reasons = latency_stats(np.array([]))
    assert set(as_json(statistics).values()) == {None}
    assert set(reasons) == set(as_json(statistics))


def test_answers_that_think_have_two_beginnings():
    rows = records(
        {"texts": [100, 110, 150], "thoughts": 2},
        {"texts": [120, 130]},
        {"texts": [200, 210], "thoughts": 2},  # its tokens ran out
    )
    assert latency.ttft_reasoning_ms(RequestView(rows)).tolist() == [100, 200]
    assert latency.of_metric(RequestView(rows), "ttft_answer_ms").tolist() == [150, 120, float("inf")]
    assert {"ttft_reasoning_ms", "ttft_answer_ms"} <= latency.values_ms(RequestView(rows)).keys()


def test_the_wait_for_reasoning_has_upper_bounds_and_the_gaps_of_answers_have_none():
    made = ({"texts": [ms, ms + 5, 300], "thoughts": 2} for ms in range(100, 106))
    cell = CellView(records(*made), facts())
    found = latency.compute_of_reasoning(cell)
    assert found.ttft_reasoning_ms.p50_upper == 105  # the largest of six
    found = latency.compute(cell)
    assert found.itl_ms.p50_upper is None
    assert found.nulls["itl_ms.p50_upper"] == "gaps of one answer are not independent of each other"


def test_without_reasoning_there_is_one_beginning():
    found = latency.values_ms(RequestView(records({"texts": [100, 110]})))
    assert not {"ttft_reasoning_ms", "ttft_answer_ms"} & found.keys()


@pytest.mark.parametrize(("tokens", "gaps"), [(5, [10, 10]), (6, [10, 10]), (4, [10, 30, 10])])
def test_a_gap_in_which_tokens_without_text_came_is_not_one_between_tokens(tokens, gaps):
    """Two events 30 ms apart with an empty one between them, which is a token where the count says so."""
    made = records({"texts": [100, 110, 140, 150], "tokens": tokens}, {"texts": [0, 7]})
    empty = made.events[1].copy()
    empty["kind"], empty["text_chars"], empty["stamp_ns"] = EventKind.OTHER, 0, 120_000_000
    made = replace(made, events=np.insert(made.events, 2, empty))
    assert latency.itl_ms(RequestView(made)).tolist() == sorted([*gaps, 7])
    assert latency.unknown_gaps(RequestView(made)) == 3 - len(gaps)
    assert latency.event_gaps_ms(RequestView(made)).tolist() == [10, 30, 10, 7]


def test_gaps_that_itl_would_not_have_anyway_are_not_among_those_it_leaves_out():
    """An answer written at once, and two texts of one arrival, each with a token without text in them."""
    made = records({"texts": [100, 100, 100], "tokens": 4}, {"texts": [0, 20, 20, 40], "tokens": 6})
    made.events["stamp_ns"][:3] += np.array([0, 10_000, 20_000])
    made.requests["last_text_ns"][0] += 20_000
    empty = made.events[[0, 3, 3]]
    empty["kind"], empty["text_chars"] = EventKind.OTHER, 0
    empty["stamp_ns"] = [100_005_000, 20_000_000, 30_000_000]
    made = replace(made, events=np.insert(made.events, [1, 5, 6], empty))
    assert latency.with_silent_tokens(RequestView(made)).tolist() == [0, 1]
    assert latency.itl_ms(RequestView(made)).tolist() == [20]
    assert latency.unknown_gaps(RequestView(made)) == 1


@pytest.mark.parametrize(("thought", "tpot_ms"), [(200, 10.0), (4, 510 / 9)])
def test_tpot_is_of_the_answer_alone_where_reasoning_is_a_summary(thought, tpot_ms):
    """Two events of three letters each cannot be 200 tokens. They may be 4: then both count."""
    texts = [700, 1150, *range(1160, 1220, 10)]
    made = records({"sent": 0, "texts": texts, "tokens": thought + 6, "thoughts": 2})
    made.requests["reasoning_tokens"] = thought
    view = RequestView(made)
    assert latency.tpot_ms(view) == pytest.approx([tpot_ms])
    assert latency.of_metric(view, "ttft_ms") == pytest.approx([700])
    assert (tokens_of_first_events(view) is None) == (thought == 200)


def test_a_thought_without_an_answer_after_its_summary_has_no_tpot():
    made = records({"sent": 0, "texts": [700, 1150], "tokens": 200, "thoughts": 2})
    made.requests["reasoning_tokens"] = 200
    assert len(latency.tpot_ms(RequestView(made))) == 0
