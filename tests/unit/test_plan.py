from dataclasses import replace

import pytest

from harness.plan import (
    LoadPoint,
    backend_order,
    highest_load,
    load_points,
    make_paired_plan,
    make_plan,
    seed_for,
    together,
    turns,
    warmup_requests,
)
from harness.spec.scenario import Load, load_scenario

LOAD = Load(requests=8, concurrency=(1, 8))


def order(count, repeats):
    return ["".join("ABCD"[i] for i in backend_order(count, repeat)) for repeat in range(repeats)]


def test_two_backends_run_abba():
    assert order(2, 4) == ["AB", "BA", "BA", "AB"]


def test_three_backends_rotate_and_reverse():
    assert order(3, 6) == ["ABC", "CBA", "BCA", "ACB", "CAB", "BAC"]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_every_backend_stands_in_every_position_equally_often(count):
    orders = order(count, 2 * count)
    for position in range(count):
        names = [text[position] for text in orders]
        assert {names.count(name) for name in names} == {2}


def test_one_engine_start_measures_every_load_point():
    blocks = make_plan(["a", "b"], LOAD, repeats=2)
    assert [[cell.name for cell in block.cells] for block in blocks] == [
        ["000-a-c1-r0", "001-a-c8-r0"],
        ["002-b-c1-r0", "003-b-c8-r0"],
        ["004-b-c1-r1", "005-b-c8-r1"],
        ["006-a-c1-r1", "007-a-c8-r1"],
    ]


def test_cell_names_sort_in_plan_order():
    names = [cell.name for block in make_plan(["x", "y"], LOAD, repeats=60) for cell in block.cells]
    assert names == sorted(names)


def test_rates_are_load_points_too():
    points = load_points(Load(requests=1, rate=(0.5, 2.0)))
    assert points == (LoadPoint("rate", 0.5), LoadPoint("rate", 2.0))
    assert [point.label for point in points] == ["r0.5", "r2"]


def test_the_highest_load_may_stand_anywhere():
    assert highest_load(Load(requests=1, concurrency=(4, 16, 2))) == LoadPoint("concurrency", 16)


def test_seeds_differ_by_dimension_and_place_and_never_change():
    seeds = {
        seed_for(0, "prompts", "c1", 0),
        seed_for(0, "arrivals", "c1", 0),
        seed_for(0, "prompts", "c1", 1),
        seed_for(1, "prompts", "c1", 0),
    }
    assert len(seeds) == 4
    assert seed_for(0, "prompts", "c1", 0) == 10503820596088161946


@pytest.mark.parametrize(
    ("name", "concurrency", "asked", "start", "made"),
    [
        ("fixed-length", 8, 4, "spread", 24),
        ("fixed-length", 8, 40, "spread", 40),
        ("fixed-length", 1, 1, "spread", 1),  # one slot has nothing to spread
        ("fixed-length", 8, 4, "together", 8),
        ("shared-prefix", 8, 4, "spread", 40),  # of chats with two turns: 8 first, 8 spread, 4 meanwhile
        ("shared-prefix", 1, 20, "spread", 20),
        ("shared-prefix", 8, 0, "spread", 0),
    ],
)
def test_warm_up_lasts_until_the_start_is_forgotten(name, concurrency, asked, start, made):
    scenario = load_scenario(name, {"prompts.turns": 2} if name == "shared-prefix" else {})
    scenario = replace(scenario, load=replace(scenario.load, warmup_requests=asked, start=start))
    assert warmup_requests(scenario, LoadPoint("concurrency", concurrency)) == made
    assert warmup_requests(scenario, LoadPoint("rate", concurrency)) == asked


def test_engines_that_are_up_together_take_turns_within_each_start():
    blocks = make_paired_plan(["a", "b"], Load(requests=8, concurrency=(1,)), starts=2, blocks=2)
    assert [(block.start, cell.name) for block in blocks for cell in block.cells] == [
        *((0, "000-a-c1-r0"), (0, "001-b-c1-r0"), (0, "002-b-c1-r1"), (0, "003-a-c1-r1")),
        *((1, "004-b-c1-r2"), (1, "005-a-c1-r2"), (1, "006-a-c1-r3"), (1, "007-b-c1-r3")),
    ]
    assert [len(group) for group in together(blocks)] == [4, 4]


def test_engines_that_take_turns_share_no_life():
    assert [len(group) for group in together(make_plan(["a", "b"], LOAD, repeats=2))] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "plan",
    [
        make_plan(["a", "b", "c"], LOAD, repeats=200),
        make_paired_plan(["a", "b", "c"], LOAD, starts=20, blocks=10),
    ],
)
def test_many_blocks_still_sort_in_plan_order(plan):
    names = [cell.name for block in plan for cell in block.cells]
    assert len(names) == 1200
    assert names == sorted(names)


def test_a_duet_loads_what_alternating_blocks_load_in_turns():
    plan = make_paired_plan(["a", "b"], LOAD, starts=1, blocks=2)
    assert [len(turn) for turn in turns(plan, "blocks")] == [1] * 8
    duet = list(turns(plan, "duet"))
    assert [{cell.name[4:] for block in turn for cell in block.cells} for turn in duet] == [
        {"a-c1-r0", "b-c1-r0"},
        {"a-c8-r0", "b-c8-r0"},
        {"a-c1-r1", "b-c1-r1"},
        {"a-c8-r1", "b-c8-r1"},
    ]
