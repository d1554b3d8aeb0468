import numpy as np
import pytest

from harness.metrics.prefix import first_of_each_prefix, ideal_hit_rate, ideals, reusable
from harness.metrics.view import RequestView
from harness.records.layout import Phase
from harness.records.request_table import Part
from harness.workload.prompts.request import CallPlace, ChatRequest
from harness.workload.prompts.workload import workload
from tests.factories.recorded import facts, records, summarise_cell


def asked(*requests):
    return workload(requests, exact=True).requested


def one(tokens, *shared, **more):
    return ChatRequest((("user", "x"),), 10, tokens, shared=tuple(Part(*part) for part in shared), **more)


def test_the_first_touch_of_each_prefix_is_a_miss():
    made = asked(*(one(40, (group, 30)) for group in (0, 0, 1, 0)))
    assert ideal_hit_rate(made) == pytest.approx(2 * 30 / 160)
    assert ideal_hit_rate(made, slice(1, None)) == pytest.approx(2 * 30 / 120)
    assert ideal_hit_rate(made, state="warm") == pytest.approx(4 * 30 / 160)


def test_the_first_request_of_each_prefix_warms_the_cache():
    """A longer prefix is new where it goes on; later turns are none, and a prompt without a shared part."""
    paths = [((1, 50),), ((1, 50), (2, 20)), ((1, 50),), (), ((3, 9),)]
    made = asked(*(one(100, *path) for path in paths), one(100, (4, 9), session=0, turn=1))
    assert list(first_of_each_prefix(made)) == [0, 1, 4]


def test_nested_prefixes_are_reused_as_far_as_they_agree():
    paths = [((1, 50), (2, 20)), ((1, 50), (3, 20)), ((1, 50), (2, 20)), ((2, 20),)]
    made = asked(*(one(100, *path) for path in paths))
    assert reusable(made)[0].tolist() == [0, 50, 70, 0]


def test_whole_blocks_only_and_never_the_last_token():
    made = asked(one(64, (1, 64)), one(64, (1, 64)), one(50, (1, 50)))
    assert reusable(made)[0].tolist() == [0, 63, 49]
    assert reusable(made, block=16)[0].tolist() == [0, 48, 48]


def test_a_later_turn_reuses_the_turn_before_it_with_its_answer():
    later = [one(20, session=0, turn=turn) for turn in (1, 2)]
    made = asked(one(100, (1, 60), session=0), *later, one(100, (1, 60), session=1))
    shared, total = reusable(made)
    assert total.tolist() == [100, 130, 160, 100]
    assert shared.tolist() == [0, 110, 140, 60]
    told = np.array([104, 140, -1, -1])
    shared, total = reusable(made, prompt_tokens=told, output_tokens=np.array([6, -1, -1, -1]))
    assert total[:2].tolist() == [104, 140]
    assert shared[:3].tolist() == [0, 110, 150]
    silent = np.array([0, -1, -1, -1])  # an answer of no token has not the length asked for
    assert [found[:2].tolist() for found in reusable(made, output_tokens=silent)] == [[0, 100], [100, 120]]


def test_a_recorded_call_finds_what_went_to_the_server_that_it_goes_to():
    """The second and third begin like the first, and the last like the third; each server has its own."""

    def call(tokens, session, base, kept):
        return one(tokens, session=session, call=CallPlace((1,), 0, 0, base, kept))

    made = asked(call(100, 0, 0, 0), call(20, 1, 1, 80), call(50, 2, 2, 60), call(30, 3, 1, 110))
    assert reusable(made)[0].tolist() == [0, 80, 60, 110]
    apart = [reusable(made, replicas=np.array(went))[0].tolist() for went in ([0, 1, 1, 0], [0, 1, 0, 1])]
    assert apart == [[0, 0, 60, 60], [0, 0, 60, 60]]
    assert reusable(made, replicas=np.array([0, 1, 2, 1]))[0].tolist() == [0, 0, 0, 60]


def test_a_turn_after_reasoning_finds_no_more_than_the_prompt_before_it():
    """Reasoning is left out of the next turn: of its 80 tokens 48 are the prompt before, 12 the answer."""
    made = asked(one(48, session=0), one(20, session=0, turn=1))
    rows = [{"intended": 10 * i, "texts": [10 * i + 5, 10 * i + 6], "prompt": (48, 80)[i]} for i in range(2)]
    for thoughts, ideal in ((1, 48 / 128), (0, 58 / 126)):
        summary = summarise_cell(records(*(row | {"thoughts": thoughts} for row in rows)), facts(), made)
        assert summary.prefix_cache_ideal == pytest.approx(ideal)
    assert summary.prefix_cache_ideal_by_block["1"] == pytest.approx(50 / 128)


@pytest.mark.parametrize(("usage", "ideal"), [(True, 0.75), (False, 119 * 30 / (130 * 40))])
def test_the_ideal_is_that_of_the_requests_that_the_hit_rate_is_of(usage, ideal):
    """Eleven to warm up, whose prefixes are new, then ones that share one; counters are of all requests."""
    counted = {"prompt": 40, **({"cached": 30} if usage else {})}
    took = [400] * 10 + [100, 104, 96] * 40
    begin = np.cumsum([0, *took])
    phases = [Phase.WARMUP] * 11 + [Phase.MEASURE] * 119
    rows = [
        {"intended": int(t), "texts": [int(t) + 5, int(t) + d], "phase": phase, **counted}
        for t, d, phase in zip(begin[:-1], took, phases, strict=True)
    ]
    made = asked(*(one(40, (max(10 - index, 0), 30)) for index in range(len(took))))
    known = facts(
        workload__ideal_hit_rate=0.5, server_counters={"prompt_tokens": 4, "cached_prompt_tokens": 3}
    )
    summary = summarise_cell(records(*rows), known, made)
    assert summary.requests.warmup == 11
    assert summary.prefix_cache_source == ("usage" if usage else "counters")
    assert summary.prefix_cache_ideal == pytest.approx(ideal)


def test_a_shared_template_is_no_warm_cache_however_long_the_prompts_before_were():
    """Of 56 tokens of a prompt 40 are its template's, which all prompts share."""
    long = {"intended": 0, "texts": [5, 9], "prompt": 1576, "cached": 0, "phase": Phase.WARMUP}
    short = {"texts": [5, 9], "prompt": 56, "cached": 36}
    rows = [*[long] * 10, *({**short, "intended": index} for index in range(30))]
    made = asked(*(one(1536) for _ in range(10)), *(one(16) for _ in range(30)))
    summary = summarise_cell(records(*rows), facts(workload__content_tokens_mean=396.0), made)
    assert "cache-not-cold" not in {reason.code for reason in summary.validity.reasons}
    assert summary.conditions.cache.holds


def blocks(requested, *rows):
    """Ideals by block; each row: prompt tokens as the server counted them (None: not), and the phase."""
    made = [
        {"intended": 10 * i, "texts": [10 * i + 5], "tokens": 6, "phase": phase}
        | ({} if prompt is None else {"prompt": prompt})
        for i, (prompt, phase) in enumerate(rows)
    ]
    return ideals(RequestView(records(*made)), requested)


def test_an_ideal_by_block_is_of_whole_blocks_of_the_prompt_as_counted():
    """70 tokens are shared of 96 in the text, and of 100 with the template: 70, 4 · 16, 1 · 64 and none."""
    made = asked(one(96, (1, 70)), one(96, (1, 70)))
    found = blocks(made, (100, Phase.MEASURE), (100, Phase.MEASURE))
    assert found == {"1": 70 / 200, "16": 64 / 200, "64": 64 / 200, "128": 0.0}


def test_an_ideal_by_block_is_of_measured_answers_in_the_order_of_the_workload():
    made = asked(one(96, (1, 70)), one(96, (1, 70)))
    found = blocks(made, (100, Phase.WARMUP), (100, Phase.MEASURE))
    assert found == {"1": 0.7, "16": 0.64, "64": 0.64, "128": 0.0}


def test_a_later_turn_reuses_the_tokens_that_the_server_counted():
    """A prompt of 104 with an answer of 6, of 10 asked for: 110 of the next prompt of 140."""
    made = asked(one(100, (1, 60), session=0), one(20, session=0, turn=1))
    found = blocks(made, (104, Phase.MEASURE), (140, Phase.MEASURE))
    assert found == {"1": 110 / 244, "16": 96 / 244, "64": 64 / 244, "128": 0.0}


@pytest.mark.parametrize("prompts", [(100, None), (0, 0)])
def test_no_ideal_by_block_where_prompts_were_not_counted(prompts):
    made = asked(one(96, (1, 70)), one(96, (1, 70)))
    assert blocks(made, *((prompt, Phase.MEASURE) for prompt in prompts)) is None
