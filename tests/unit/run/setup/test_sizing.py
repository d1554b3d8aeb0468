"""Loads chosen from a first look."""

from dataclasses import replace

import pytest

from harness.probe import Look
from harness.run.setup.sizing import SIZES, fit, short_answers
from harness.spec.scenario import load_scenario

GPU = Look(ttft_s=0.03, tpot_s=0.003, slowdown=1.1)
CHAT = Look(ttft_s=0.3, tpot_s=0.05, slowdown=1.2)
CPU = Look(ttft_s=2, tpot_s=0.1, slowdown=4)
CRAWLING = Look(ttft_s=60, tpot_s=5, slowdown=4)


def test_a_fast_server_is_loaded_up_to_64_in_flight():
    loads = fit([GPU], 120)
    assert (loads.concurrency, loads.output_tokens, loads.requests) == SIZES[0]
    assert (loads.repeats, loads.probe) == (1, True)


@pytest.mark.parametrize("looks", [[GPU], [CHAT], [GPU, CHAT], [CPU]])
@pytest.mark.parametrize("budget_s", [120, 300, 1200])
def test_what_is_chosen_fits_the_time(looks, budget_s):
    assert fit(looks, budget_s).expected_s <= budget_s


def test_a_slower_server_gets_less_and_never_more():
    sizes = [SIZES.index((one.concurrency, one.output_tokens, one.requests)) for one in
             (fit([look], 120) for look in (GPU, CHAT, CPU, CRAWLING))]  # fmt: skip
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == len(sizes)


@pytest.mark.parametrize("looks", [[GPU], [CHAT], [GPU, CHAT], [replace(GPU, ttft_s=0.2)] * 2])
def test_a_load_has_enough_answers_not_to_be_too_short_where_any_such_load_fits(looks):
    assert fit(looks, 110).requests >= load_scenario("first-look").load.min_answers


def test_what_fits_nothing_gets_the_least_and_says_how_long_it_takes():
    loads = fit([CRAWLING], 120)
    assert (loads.concurrency, loads.output_tokens, loads.requests) == SIZES[-1]
    assert not loads.probe
    assert loads.expected_s > 8 * (60 + 7 * 5)
    assert loads.cell_limit_s > loads.expected_s


def test_two_servers_are_measured_three_times_each_and_the_slower_one_decides():
    loads = fit([GPU, CHAT], 300)
    assert loads.repeats == 3
    assert replace(loads, expected_s=0) == replace(fit([CHAT, GPU], 300), expected_s=0)
    assert loads.requests < fit([GPU, GPU], 300).requests


def test_what_a_server_does_one_at_a_time_takes_as_long_in_each_load():
    alone = Look(ttft_s=1, tpot_s=0.1, slowdown=4)
    assert alone.answer_s(11) == pytest.approx(2)
    assert alone.answer_s(11, 8) == pytest.approx(16)
    assert GPU.answer_s(11, 64) == pytest.approx(0.06 * 3.1)


@pytest.mark.parametrize(
    ("cell_limit_s", "timeout_s"), [(8, 60), (90, 90), (299, 299), (300, None), (900, None)]
)
def test_an_answer_may_take_as_long_as_its_cell_and_a_minute_at_least(cell_limit_s, timeout_s):
    assert load_scenario("first-look").request.timeout_s == 300
    assert replace(fit([GPU], 120), cell_limit_s=cell_limit_s).timeout_s == timeout_s


@pytest.mark.parametrize("spent_s", [5, 30, 55])
def test_answers_that_were_cut_name_the_minutes_for_whole_ones(spent_s):
    """The order of two servers may turn with the length: 8 tokens after 120 ms at 10 ms each take longer than
    after 80 ms at 13 ms, and 64 do not."""
    pair = [Look(0.12, 0.01, 1.1), Look(0.08, 0.013, 1.1)]
    cut = fit(pair, 115)
    assert cut.output_tokens == 8
    hint = short_answers(cut, pair, spent_s)
    minutes = int(hint.partition("--minutes ")[2].split()[0])
    assert hint.startswith("answers have 8 tokens")
    enough, less = (fit(pair, 60 * count - spent_s).output_tokens for count in (minutes, minutes - 1))
    assert enough == 64 > less


def test_whole_answers_need_no_word_and_no_minutes_help_a_crawling_server():
    assert not short_answers(fit([GPU], 120), [GPU], 0)
    assert "--minutes" not in short_answers(fit([CRAWLING], 120), [CRAWLING], 0)
