"""The search on loads with a known limit, and what is made of several searches."""

import math

import pytest

from harness.compare.capacity import capacity, words
from harness.plan import capacity_grid
from harness.run.search import Search
from harness.spec.scenario import Load


@pytest.mark.parametrize("limit", range(-1, 20))
@pytest.mark.parametrize("start", [0, 7, 19])
def test_every_limit_is_found_and_no_load_tried_twice(limit, start):
    search, tried = Search(20, start), []
    while (index := search.next) is not None:
        tried.append(index)
        search.told(index, kept=index <= limit)
    assert (search.kept, search.failed) == (limit, limit + 1)
    assert len(tried) == len(set(tried)) <= 11


def test_the_grid_has_three_steps_to_a_doubling():
    assert capacity_grid(Load(requests=1, concurrency=(1, 16))).concurrency == (
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        10,
        13,
        16,
    )
    rates = capacity_grid(Load(requests=1, rate=(0.5,))).rate
    assert rates[:4] == (0.5, 0.63, 0.794, 1.0)
    assert rates[-1] == 32


def cell(value, kept, *, repeat=0, kind="rate", served=None, drift=None, verdict="VALID"):
    return {
        "label": "vllm",
        "load": {"kind": kind, "value": value},
        "repeat": repeat,
        "validity": {"verdict": verdict},
        "slo": {"met": kept, "attainment": 1.0 if kept else 0.4},
        "requests_per_s": value if served is None else served,
        "steady_state": {"drift": {"e2e_ms": drift}},
    }


def only(cells):
    (one,) = capacity(cells)
    return one


def test_the_interval_is_never_narrower_than_the_gap():
    cells = [cell(value, value <= 8, repeat=repeat) for repeat in range(3) for value in (4, 8, 10, 16)]
    one = only(cells)
    low, middle, high = one["interval"]
    assert (low, high) == (8, 10)
    assert middle == pytest.approx(math.sqrt(80))
    assert words(one) == "vllm: 8.94 requests/s keep the limits (8 to 10, 3 searches)"


def test_searches_that_differ_widen_it():
    limits = (8, 10, 16)
    cells = [cell(v, v <= limits[r], repeat=r) for r in range(3) for v in (4, 8, 10, 16, 20)]
    low, middle, high = only(cells)["interval"]
    assert low < 8 < middle < 20 < high


def test_ends_that_were_not_reached_are_open():
    assert only([cell(value, kept=True) for value in (1, 2, 4)])["interval"] == [4, None, None]
    assert words(only([cell(4, kept=True)])).startswith("vllm: at least 4 requests/s keep the limits")
    assert only([cell(value, kept=False) for value in (1, 2)])["interval"] == [None, None, 1]


def test_an_invalid_cell_keeps_nothing():
    one = only([cell(1, kept=True), cell(2, kept=True, verdict="INVALID")])
    assert one["interval"][::2] == [1, 2]


def test_past_the_knee_is_called_saturated():
    rates = [
        cell(8, kept=True),
        cell(16, kept=False, served=11.0, drift=1.4),
        cell(20, kept=False, served=19.9),
    ]
    one = only(rates)
    assert one["saturated_from"] == 16
    assert [made["saturated"] for made in one["tested"]] == [False, True, False]
    assert one["tested"][1]["why"] == "11 of 16 requests/s served, and answers take longer and longer"
    loops = [
        cell(load, kept=True, kind="concurrency", served=served)
        for load, served in ((4, 10), (8, 19), (16, 19.2))
    ]
    assert only(loops)["saturated_from"] == 16
    assert words(only(loops)).endswith("; saturated from 16")
