"""Goodput by hand: four requests, limits that some of them keep."""

import numpy as np
import pytest

from harness.metrics.goodput import goodput
from harness.metrics.view import RequestView
from harness.metrics.window import Window
from harness.records.layout import Outcome, Phase
from tests.factories.recorded import MS, facts, records, summarise_cell, view_of

# First tokens after 10, 20, 30 ms and never; then a token every 10, 10 and 50 ms.
MADE = records(
    {"intended": 0, "texts": [10, 20, 30]},
    {"intended": 100, "texts": [120, 130, 140]},
    {"intended": 200, "texts": [230, 280, 330]},
    {"intended": 300, "outcome": Outcome.HTTP_ERROR},
)
WINDOW = Window(0, 1000 * MS, "steady")


def of(slo, window=WINDOW):
    ended = np.array([1.0, 1.0, 1.0, 0.0]) if window else np.zeros(4)
    return goodput(RequestView(MADE), slo, window, ended)[:2]


def test_a_failed_request_is_never_good():
    made, rate = of({"ttft_ms": {"max": 1e6}})
    assert (made.good, made.requests, made.attainment) == (3, 4, 0.75)
    assert not made.met
    assert rate == pytest.approx(3.0)


def test_a_request_keeps_every_limit_or_is_not_good():
    assert of({"ttft_ms": {"p50": 25}})[0].good == 2
    assert of({"ttft_ms": {"p50": 25}, "e2e_ms": {"p50": 35}})[0].good == 1
    assert of({"tpot_ms": {"p50": 10}})[0].good == 2


def test_limits_are_met_by_their_share():
    made, _ = of({"ttft_ms": {"p50": 20, "p90": 30, "max": 40}})
    assert [(limit.share, limit.limit_ms, limit.within, limit.met) for limit in made.limits] == [
        ("p50", 20, 0.5, True),
        ("p90", 30, 0.75, False),
        ("max", 40, 0.75, False),
    ]
    assert made.good == 3  # the loosest of a latency's limits is a request's own


def test_exactly_the_share_is_enough_and_a_hundredth_less_is_not():
    assert of({"ttft_ms": {"p75": 30}})[0].met
    assert not of({"ttft_ms": {"p75.5": 30}})[0].met


def test_a_limit_for_all_is_met_where_all_keep_it():
    """The last first token takes exactly as long as it may."""
    three = records(*({"intended": 0, "texts": [first, 40]} for first in (10, 20, 30)))
    made = goodput(RequestView(three), {"ttft_ms": {"max": 30}}, WINDOW, np.ones(3)).slo
    assert [(limit.within, limit.met) for limit in made.limits] == [(1.0, True)]
    assert (made.met, made.good, made.attainment) == (True, 3, 1.0)
    made = goodput(RequestView(three), {"ttft_ms": {"max": 29.9}}, WINDOW, np.ones(3)).slo
    assert [(limit.within, limit.met) for limit in made.limits] == [(pytest.approx(2 / 3), False)]


def test_one_missed_limit_of_several_is_enough_to_miss():
    made, _ = of({"ttft_ms": {"p50": 20, "max": 40}, "tpot_ms": {"p50": 10}})
    assert [(limit.metric, limit.met) for limit in made.limits] == [
        ("ttft_ms", True),
        ("ttft_ms", False),
        ("tpot_ms", True),
    ]
    assert not made.met
    assert of({"ttft_ms": {"p50": 20}, "tpot_ms": {"p50": 10}})[0].met


def test_tokens_of_good_answers_are_a_share_of_those_of_all_answers():
    """Of 3, 3 and 3 tokens those within 25 ms are 6; the failed request has none."""
    assert of({"ttft_ms": {"p50": 25}})[0].good_token_share == pytest.approx(6 / 9)
    unequal = records({"texts": [10, 20]}, {"texts": [90, 100], "tokens": 8})
    made = goodput(RequestView(unequal), {"ttft_ms": {"p50": 25}}, WINDOW, np.ones(2)).slo
    assert (made.attainment, made.good_token_share) == (0.5, 0.2)


@pytest.mark.parametrize(("answers", "known"), [(99, False), (100, True)])
def test_one_unknown_latency_of_a_hundred_counts_as_missed_and_more_void_the_figure(answers, known):
    rows = [{"texts": [10, 20], "tokens": -1 if i == 0 else 2} for i in range(answers)]
    made = goodput(RequestView(records(*rows)), {"tpot_ms": {"p50": 10}}, WINDOW, np.ones(answers)).slo
    assert (made.good if made else None) == (99 if known else None)


def test_the_rate_counts_good_answers_by_their_shares():
    shares = np.array([0.5, 1.0, 0.25, 0.0])
    made = goodput(RequestView(MADE), {"ttft_ms": {"p50": 25}}, WINDOW, shares)
    assert (made.requests_per_s, made.output_tokens_per_s) == (1.5, 4.5)
    assert of({"ttft_ms": {"p50": 100}}, None)[1] is None


def test_good_answers_of_the_warm_up_count_in_the_rate_alone():
    """Their tails lie in the window, and requests/s counts them too."""
    requests = MADE.requests.copy()
    requests["phase"][0] = Phase.WARMUP
    made = goodput(view_of(requests), {"ttft_ms": {"p50": 25}}, WINDOW, np.array([1.0, 1.0, 1.0, 0.0]))
    assert (made.slo.good, made.slo.requests) == (1, 3)
    assert made.requests_per_s == 2.0


def test_warm_up_before_the_window_leaves_nothing_unknown():
    """Its two answers came at once, so that their TPOT is not known; one in the window voids the rate."""
    whole = {"texts": [10] * 5, "phase": Phase.WARMUP}
    made = RequestView(records(whole, whole, *[{"intended": 20, "texts": [30, 40, 50]}] * 8))
    shares = np.array([0.0] * 2 + [1.0] * 8)
    found = goodput(made, {"tpot_ms": {"p50": 10}}, WINDOW, shares)
    assert (found.slo.good, found.slo.requests, found.requests_per_s) == (8, 8, pytest.approx(8))
    voided = goodput(made, {"tpot_ms": {"p50": 10}}, WINDOW, np.ones(10))
    assert (voided.slo, voided.requests_per_s) == (found.slo, None)


def test_without_limits_or_counts_nothing_is_said():
    assert of({}) == (None, None)
    half = records({"intended": 0, "texts": [10, 20]}, {"intended": 0, "texts": [10, 20], "tokens": -1})
    made = goodput(RequestView(half), {"ttft_ms": {"p50": 50}}, WINDOW, np.ones(2))
    assert (made.slo.good_token_share, made.output_tokens_per_s) == (None, None)
    silent = records({"intended": 0, "texts": [10, 20], "tokens": -1})
    assert goodput(RequestView(silent), {"tpot_ms": {"p50": 10}}, WINDOW, np.ones(1)) == (None, None, None)
    cell = summarise_cell(records({"intended": 0, "texts": [10, 20]}), facts(), None)
    assert cell.goodput_requests_per_s is None
    assert cell.null_reasons["goodput_requests_per_s"] == "the scenario sets no limits ([slo])"
    limited = summarise_cell(
        records({"intended": 0, "texts": [10, 20]}), facts(slo={"ttft_ms": {"p50": 50.0}}), None
    )
    assert limited.slo.met


@pytest.mark.parametrize(
    ("rows", "slo", "why"),
    [
        ([{"outcome": Outcome.HTTP_ERROR}] * 20, {"ttft_ms": {"p95": 50.0}}, "no answer to count"),
        ([{"outcome": Outcome.CANCELLED}] * 6, {"ttft_ms": {"p95": 50.0}}, "no answer to count"),
        (
            [{"texts": [10, 20], "tokens": -1}],
            {"tpot_ms": {"p95": 50.0}},
            "a latency with a limit is not known",
        ),
    ],
)
def test_goodput_that_is_not_known_says_why(rows, slo, why):
    made = summarise_cell(records(*rows), facts(slo=slo), None)
    assert made.null_reasons["goodput_requests_per_s"] == why
