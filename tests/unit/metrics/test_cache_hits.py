"""Cached tokens by hand: what of them came from behind the KV cache, and what an ideal cache would reuse."""

from dataclasses import replace

import pytest

from harness.conditions.cache_in_effect import verify
from harness.metrics import cache_hits
from harness.metrics.view import CellView
from harness.records.layout import Phase
from harness.records.request_table import Part
from harness.workload.prompts.request import ChatRequest
from harness.workload.prompts.workload import workload
from tests.factories.recorded import facts, records

URLS = ("http://one", "http://two")


def asked(*tokens):
    """Prompts of so many tokens each, of which the first 30 are the same."""
    made = [ChatRequest((("user", "x"),), 10, count, shared=(Part(0, 30),)) for count in tokens]
    return workload(made, exact=True).requested


def cell(*rows, requested=None, **more):
    """Each row: prompt and cached tokens as the server says (None: it does not), and its phase."""
    made = []
    for place, (prompt, cached, *phase) in enumerate(rows):
        told = {"prompt": prompt, "cached": cached}
        row = {
            "intended": 10 * place,
            "texts": [10 * place + 5],
            "phase": phase[0] if phase else Phase.MEASURE,
        }
        made.append(row | {name: count for name, count in told.items() if count is not None})
    return CellView(records(*made), facts(**more), requested)


@pytest.mark.parametrize(
    ("counters", "share"),
    [
        ({"host_cached_tokens": 30.0, "cached_prompt_tokens": 120.0}, 0.25),
        ({"host_cached_tokens": 120.0, "cached_prompt_tokens": 120.0}, 1.0),
        ({"host_cached_tokens": 0.0, "cached_prompt_tokens": 0.0}, 0.0),
        ({"cached_prompt_tokens": 120.0}, None),
        ({"host_cached_tokens": 30.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_part_of_the_cached_tokens_came_from_behind_the_kv_cache(counters, share):
    assert cache_hits.host_share(counters) == share


def test_the_hit_rate_of_a_cache_behind_is_its_part_of_the_hit_rate():
    """Half of the prompt tokens by usage, and all by the counters, a quarter of which came from behind."""
    counted = {"host_cached_tokens": 30.0, "cached_prompt_tokens": 120.0, "prompt_tokens": 120.0}
    found = cache_hits.compute(cell((100, 80), (100, 20), server_counters=counted))
    assert (found.prefix_cache_hit_rate, found.prefix_cache_source) == (0.5, "usage")
    assert found.host_cache_hit_rate == pytest.approx(0.125)
    assert found.nulls == {}


def test_a_cache_behind_that_is_not_counted_says_so():
    counted = {"prompt_tokens": 400.0, "cached_prompt_tokens": 100.0}
    found = cache_hits.compute(cell((100, None), server_counters=counted))
    assert (found.prefix_cache_hit_rate, found.prefix_cache_source) == (0.25, "counters")
    assert found.host_cache_hit_rate is None
    assert found.nulls == {
        "host_cache_hit_rate": "the engine does not count by where cached tokens came from"
    }


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([], "neither usage nor counters report cached tokens"),
        ([(100, None), (100, None)], "neither usage nor counters report cached tokens"),
        ([(100, 50), (100, None)], "the server reports cached tokens of 1 of 2 answers only"),
        ([(100, 50), (None, 50)], "the server reports cached tokens of 1 of 2 answers only"),
        ([(100, 50), (100, 101)], "the server counts more cached tokens than prompt tokens"),
        ([(0, 0), (0, 0)], "the server counts no prompt tokens"),
    ],
)
def test_a_hit_rate_that_is_not_known_says_why(answers, why):
    host = {"host_cached_tokens": 30.0, "cached_prompt_tokens": 120.0}
    for counted in (None, {"prompt_tokens": 400.0}, host):
        found = cache_hits.compute(cell(*answers, server_counters=counted))
        assert (found.prefix_cache_hit_rate, found.prefix_cache_source) == (None, None)
        assert found.nulls["prefix_cache_hit_rate"] == why
    assert found.nulls["host_cache_hit_rate"] == why


def test_counters_stand_in_for_a_usage_that_cannot_be():
    counted = {"prompt_tokens": 400.0, "cached_prompt_tokens": 100.0}
    assert cache_hits.hit_rate_of(cell((100, 101), server_counters=counted)) == (0.25, "counters")
    assert cache_hits.hit_rate_of(cell((100, 0), server_counters=counted)) == (0.0, "usage")


@pytest.mark.parametrize(
    ("answers", "share"),
    [([(100, 40), (100, 60)], 0.5), ([(100, 40), (100, 110)], None), ([(100, 40), (100, None)], None)],
)
def test_a_share_of_more_than_there_was_is_none(answers, share):
    """A server whose counts cannot be right had a share of up to 100% and more by URL, kind and depth."""
    assert cache_hits.cached_share(cell(*answers).answers) == share


def test_counters_of_more_cached_tokens_than_prompt_tokens_are_no_hit_rate():
    """An engine that counts the hits of requests whose prompt it never counts: 110% of nothing known."""
    found = cache_hits.compute(
        cell((100, None), server_counters={"prompt_tokens": 100.0, "cached_prompt_tokens": 110.0})
    )
    assert (found.prefix_cache_hit_rate, found.prefix_cache_source) == (None, None)
    why = "the server counts more cached tokens than prompt tokens"
    assert found.nulls["prefix_cache_hit_rate"] == why
    all_of_it = {"prompt_tokens": 100.0, "cached_prompt_tokens": 100.0}
    assert cache_hits.hit_rate_of(cell((100, None), server_counters=all_of_it)) == (1.0, "counters")


def test_a_cold_cache_misses_the_first_of_what_is_shared_and_a_warm_one_none():
    """Prompts of 40, 50 and 60 tokens that share 30: 60 of 150 the first time, 90 with a warm cache."""
    made = cache_hits.measured_facts(cell((40, 0), (50, 30), (60, 30), requested=asked(40, 50, 60))).workload
    assert made.ideal_hit_rate == pytest.approx(60 / 150)
    assert made.shared_share == pytest.approx(90 / 150)
    assert made.content_tokens_mean == pytest.approx(50)


WARMED = ((40, 0, Phase.WARMUP), (50, 30), (60, 30))


def test_a_warm_up_fills_the_cache_for_those_that_are_measured():
    made = cache_hits.measured_facts(cell(*WARMED, requested=asked(40, 50, 60))).workload
    assert made.ideal_hit_rate == made.shared_share == pytest.approx(60 / 110)
    assert made.content_tokens_mean == pytest.approx(55)


def test_counters_are_of_all_requests_and_so_is_their_ideal():
    counted = {"prompt_tokens": 150.0, "cached_prompt_tokens": 60.0}
    rows = [(prompt, None, *phase) for prompt, _, *phase in WARMED]
    given = cell(*rows, requested=asked(40, 50, 60), server_counters=counted)
    made = cache_hits.measured_facts(given).workload
    assert made.ideal_hit_rate == pytest.approx(60 / 150)
    assert made.shared_share == pytest.approx(90 / 150)
    assert made.content_tokens_mean == pytest.approx(55)
    assert cache_hits.compute(given).prefix_cache_ideal == pytest.approx(60 / 150)


def test_facts_of_the_whole_workload_stay_where_nothing_else_is_known():
    """Of a run that did not keep what was asked, and of one without a measured answer."""
    for given in (cell((40, 0)), cell((40, 0, Phase.WARMUP), requested=asked(40))):
        assert cache_hits.measured_facts(given) is given.facts
    assert cache_hits.compute(cell((40, 0))).prefix_cache_ideal_by_block is None


@pytest.mark.parametrize(("state", "reused"), [("cold", 60), ("any", 60), ("warm", 90), ("primed", 147)])
def test_the_ideal_is_from_the_state_that_the_cache_begins_in(state, reused):
    """Prompts of 40, 50 and 60 tokens that share 30; the last token of each is always computed."""
    rows = ((40, 0), (50, 30), (60, 30))
    found = cache_hits.compute(cell(*rows, requested=asked(40, 50, 60), cache__requested=state))
    assert found.prefix_cache_ideal == pytest.approx(reused / 150)
    assert found.prefix_cache_ideal_by_block["1"] == pytest.approx(reused / 150)


@pytest.mark.parametrize(
    ("went", "reused", "warm"), [((0, 1, 0, 1), 60, 120), ((0, 0, 1, 0), 60, 120), ((0, 0, 0, 0), 90, 120)]
)
def test_each_of_several_servers_has_a_cache_of_its_own(went, reused, warm):
    """Prompts of 40 tokens that share 30: the first at each server misses, unless both were warmed."""
    rows = ((40, 0), (40, 30), (40, 30), (40, 30))
    for state, ideal in (("cold", reused), ("warm", warm)):
        given = cell(*rows, requested=asked(40, 40, 40, 40), urls=URLS, cache__requested=state)
        given.requests["replica"] = went
        found = cache_hits.compute(given)
        assert found.prefix_cache_ideal == pytest.approx(ideal / 160)
        assert found.prefix_cache_ideal_by_block["1"] == pytest.approx(ideal / 160)
    assert cache_hits.measured_facts(given).workload.ideal_hit_rate == pytest.approx(90 / 160)


def test_a_primed_cache_holds_no_later_turn():
    """The second turn has the first prompt and its answer before it, as from a cold cache."""
    first = ChatRequest((("user", "x"),), 10, 40, session=0)
    later = ChatRequest((("user", "x"),), 10, 20, session=0, turn=1)
    made = workload([first, later], exact=True).requested
    found = cache_hits.compute(cell((40, 0), (70, 50), requested=made, cache__requested="primed"))
    assert found.prefix_cache_ideal == pytest.approx((39 + 50) / (40 + 70))


@pytest.mark.parametrize(("reasons", "warm", "primed"), [(False, 50, 89), (True, 40, 79)])
def test_a_filled_cache_need_not_hold_more_than_its_ideal(reasons, warm, primed):
    """Of a chat of two turns the second finds the first, and its answer unless that reasons."""
    first = ChatRequest((("user", "x"),), 10, 40, session=0)
    later = ChatRequest((("user", "x"),), 10, 20, session=0, turn=1)
    given = cell((40, 0), (70, 50), requested=workload([first, later], exact=True).requested)
    given.requests["first_reasoning_ns"] = 1 if reasons else -1
    found = cache_hits.measured_facts(given).workload
    assert (found.shared_share, found.primed_share) == pytest.approx((warm / 110, primed / 110))


def test_a_warm_cache_shows_in_chats_whose_answers_reason():
    """The next turn leaves out 400 tokens of reasoning: of 130 in both prompts 10 and 50 can be found."""
    first = ChatRequest((("user", "x"),), 400, 40, session=0)
    later = ChatRequest((("user", "x"),), 400, 20, session=0, turn=1)
    unsent = ChatRequest((("user", "x"),), 400, 40, session=1)
    made = workload([first, later, unsent], exact=True).requested
    for cached, holds in ((10, True), (45, False)):
        given = cell((50, cached), (80, cached + 10), requested=made, cache__requested="cold")
        given.requests["first_reasoning_ns"] = 1
        found = verify(given, cache_hits.measured_facts(given), cache_hits.hit_rate_of(given)[0])
        assert (found.holds, found.limit) == (holds, "47.9% from a cold start")
        assert cache_hits.measured_facts(given).workload.content_tokens_mean == (40 + 70) / 2


def test_a_call_that_is_sent_back_without_arguments_is_not_found_whole():
    """An answer of a call with 100 tokens adds 8 to the next prompt, of 50 + 8 + 20."""
    first = ChatRequest((("user", "x"),), 100, 50, session=0)
    later = ChatRequest((("user", "x"),), 100, 20, session=0, turn=1)
    given = cell((50, 0), (78, 50), requested=workload([first, later], exact=True).requested)
    given.requests["output_tokens"] = 100
    given = replace(given, records=replace(given.records, tool_calls=('[{"arguments": "\\"a"}]', "")))
    found = cache_hits.compute(given)
    assert found.prefix_cache_ideal == pytest.approx(58 / 128)
    assert found.prefix_cache_ideal_by_block["1"] == pytest.approx(58 / 128)


def test_the_ideal_is_from_a_cold_start_where_what_was_asked_for_is_not_known():
    given = cell((40, 0), cache__requested="warm")
    assert cache_hits.compute(given).prefix_cache_ideal == given.facts.workload.ideal_hit_rate
