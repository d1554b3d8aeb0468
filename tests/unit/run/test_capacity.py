"""The search on loads with a known limit, what a cell must show to keep the limits, and the words."""

from dataclasses import replace
from itertools import pairwise

import pytest
from msgspec import structs

from harness.compare.capacity import capacity, sentence, words
from harness.compare.slo_check import answers_needed, kept_limits, why_not_kept
from harness.model import Capacity, CellResult, LoadPoint, Reason, Validity
from harness.plan import (
    Cell,
    Probe,
    capacity_grid,
    long_probe,
    longer,
    measured_requests,
    most_requests,
    probe_of,
)
from harness.run.execute import Run
from harness.run.options import RunOptions
from harness.run.prepare import prepare
from harness.run.search import Search
from harness.run.workloads import Workloads
from harness.spec.scenario import Load, load_scenario
from tests.factories.documents import changed, made

LOADS = capacity_grid(Load(requests=1, rate=(1, 64))).rate


def searched(keeps, *, reserve=False, loads=LOADS):
    """`keeps` by place and whether the probe is long; the places tried, short and long."""
    search, tried = Search(loads, reserve), []
    while (step := search.next) is not None:
        tried.append(step)
        search.told(step, keeps(*step))
        assert len(tried) < 60
    assert len(tried) == len(set(tried))
    return search, tried


def highest(search):
    failed = min((place for place, kept in search.long.items() if not kept), default=len(search.loads))
    return max((place for place, kept in search.long.items() if kept and place < failed), default=-1)


@pytest.mark.parametrize("limit", range(-1, len(LOADS), 7))
def test_every_limit_is_found_in_few_probes_from_the_lowest_load(limit):
    search, tried = searched(lambda place, _long: place <= limit)
    assert tried[0] == (0, False)
    assert highest(search) == limit
    assert len(tried) <= 16
    assert sum(step.long for step in tried) <= 2
    if 0 <= limit < len(LOADS) - 1:
        assert search.long[limit + 1] is False


def test_a_load_that_kept_the_limits_by_luck_is_given_up():
    search, tried = searched(lambda place, long: place <= (90 if long else 96))
    assert highest(search) == 90
    assert search.long[91] is False
    assert sum(step.long for step in tried) <= 7


def test_a_load_that_failed_by_bad_luck_is_not_the_end():
    unlucky = {16: False}
    search, _tried = searched(lambda place, long: place <= 100 if long else unlucky.get(place, place < 16))
    assert highest(search) == 100


def test_with_a_reserve_the_load_below_the_highest_is_measured_too():
    search, _tried = searched(lambda place, _long: place <= 50, reserve=True)
    assert (search.long[49], search.long[50], search.long[51]) == (True, True, False)


def test_the_grid_doubles_within_its_ends_and_its_neighbours_are_close():
    assert LOADS[0] == 1
    assert LOADS[-1] == 64
    assert all(above <= 1.023 * load for load, above in pairwise(LOADS))
    assert capacity_grid(Load(requests=1, concurrency=(1, 9))).concurrency == tuple(range(1, 10))
    assert capacity_grid(Load(requests=1, rate=(0.5,))).rate[-1] == 32
    assert capacity_grid(Load(requests=1, rate=(3, 50))).rate[-1] == 50


def test_a_probe_lasts_and_answers_as_long_as_it_must():
    load, probe = Load(requests=32, rate=(1, 64)), Probe(seconds=30, answers=124)
    sizes = [measured_requests(load, LoadPoint("rate", rate), probe) for rate in (1, 4.133, 20)]
    assert sizes == [124, 124, 600]
    assert measured_requests(load, LoadPoint("rate", 20)) == 32
    assert measured_requests(load, LoadPoint("concurrency", 20), probe) == 200
    assert longer(probe, LoadPoint("rate", 20)).seconds == 200
    assert longer(probe, LoadPoint("rate", 1)).seconds == 240
    assert longer(probe, LoadPoint("rate", 400)).seconds == 60
    cell = Cell("007-x-r20-r1", 0, LoadPoint("rate", 20), 1)
    assert long_probe(cell, 3) == Cell("007-x-r20-r4", 0, LoadPoint("rate", 20), 4)
    assert probe_of(probe, cell, 3) == probe
    assert probe_of(probe, long_probe(cell, 3), 3) == longer(probe, cell.load)
    assert probe_of(None, long_probe(cell, 3), 3) is None


def test_as_many_prompts_are_read_as_the_largest_probe_needs():
    scenario = load_scenario("fixed-length", {"load.concurrency": [], "load.rate": [1, 20]})
    warmup = scenario.load.warmup_requests
    assert most_requests(scenario) == scenario.load.requests + warmup
    assert most_requests(scenario, Probe(30, 124)) == 4000 + warmup


def test_prompts_are_made_for_the_loads_that_are_tried_and_are_its_own_in_each_probe():
    scenario = load_scenario("fixed-length", {"load.concurrency": [], "load.rate": [1, 20]})
    made = Workloads(scenario, 1, 0, None, Probe(1, 11))
    assert list(made.cards(0)) == ["r1"]
    short = Cell("001-x-r20-r0", 0, LoadPoint("rate", 20), 0)
    long = long_probe(short, 1)
    warmup = scenario.load.warmup_requests
    assert [len(made.of(cell)) - warmup for cell in (short, long)] == [32, 160]
    assert made.of(short) is made.of(short)
    assert not {str(r.messages) for r in made.of(short).requests} & {
        str(r.messages) for r in made.of(long).requests
    }


def test_so_many_answers_that_two_may_miss_the_strictest_limit():
    assert answers_needed({"ttft_ms": {"p50": 100, "p95": 500}}) == 124
    assert answers_needed({"ttft_ms": {"p99": 500}, "e2e_ms": {"max": 900}}) == 628
    assert answers_needed({"ttft_ms": {"max": 500}}) == 1


QUEUE = {
    "probed_s": 30.0,
    "window_s": 29.0,
    "arrivals": 580,
    "answered": 578,
    "in_system_mean": 8.0,
    "in_system_first": 7.0,
    "in_system_last": 9.0,
}


def cell(
    value=20, *, repeat=0, kind="rate", within=1.0, of=600, share="p95", served=None, reasons=(), **queue
):
    limit = {"metric": "e2e_ms", "share": share, "limit_ms": 500.0, "within": within, "met": True}
    return made(
        CellResult,
        label="vllm",
        load={"kind": kind, "value": value},
        repeat=repeat,
        validity=Validity.of(reasons),
        slo={"limits": [limit], "attainment": within, "requests": of},
        requests_per_s=value if served is None else served,
        backlog={**QUEUE, **queue} if kind == "rate" else None,
        probe={"seconds": 30.0, "answers": 124},
    )


def doubt(code, verdict="SUSPECT"):
    return Reason(code, verdict, "so much", "", "")


def test_a_cell_that_keeps_up_with_its_load_and_its_limits_is_kept():
    assert why_not_kept(cell()) == []
    assert kept_limits(cell(kind="concurrency"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"within": 0.96}, "e2e p95: 96.0% within the limit, surely 94.4%"),
        ({"of": 58}, "e2e p95: 58 requests, needs 59"),
        ({"share": "max", "within": 599 / 600}, "e2e max: 99.8% within the limit"),
        ({"in_system_last": 24.0}, "a queue builds: 7 requests in the system early, 24 late"),
        ({"answered": 560}, "560 answers to 580 arrivals"),
        ({"probed_s": 12.0}, "too short: 12 s, needs 24 s"),
        ({"in_system_mean": 250.0}, "too short: 30 s, needs 37.5 s"),
        ({"reasons": [doubt("not-steady")]}, "not-steady: so much"),
        ({"reasons": [doubt("schedule-lag", "INVALID")]}, "schedule-lag: so much"),
    ],
)
def test_each_way_to_fail_is_told(change, why):
    assert why_not_kept(cell(**change)) == [why]


def test_failed_requests_count_in_the_share_of_a_limit_and_refute_no_load_by_themselves():
    """One of 698 failed: SUSPECT, or INVALID beyond 1 %, by the engine; the limit's share says enough."""
    for reason in (doubt("failed-requests"), doubt("failed-requests", "INVALID")):
        assert kept_limits(cell(reasons=[reason], within=597 / 600))
        assert why_not_kept(cell(reasons=[reason], within=0.94)) == [
            "e2e p95: 94.0% within the limit, surely 92.2%"
        ]
    refused = changed(cell(answered=550, reasons=[doubt("failed-requests")]), requests={"failed": 28})
    assert kept_limits(refused)  # nor do they wait in a queue
    assert why_not_kept(cell(answered=550)) == ["550 answers to 580 arrivals"]


def test_the_last_sentence_says_what_a_server_carries_and_how_many_users_that_is():
    (limit,) = cell(within=1.0).slo.limits
    (found,) = capacity(three(14.2, 15.0, 15.0), 3)
    assert sentence(found, [limit]) == (
        "vllm carries 15 requests/s (14.2 to 15.7) within E2E p95 0.5 s: "
        "about 450 users who send one every 30 s."
    )
    assert sentence(changed(found, interval=(14.2, 15.0, None)), [limit]).startswith(
        "vllm carries 15 requests/s (14.2 or more) within"
    )
    assert sentence(structs.replace(found, kind="concurrency"), [limit]) is None
    assert sentence(changed(found, interval=(None, 15.0, 16.0)), [limit]) is None


def test_doubts_that_can_only_make_a_load_look_harder_do_not_count():
    assert kept_limits(cell(reasons=[doubt("client-busy"), doubt("loop-lag")]))


def test_without_the_latency_nothing_is_kept():
    assert why_not_kept(changed(cell(), slo=None)) == ["a latency with a limit is not known"]


def long(value, kept, *, search=0, of=3, **more):
    return cell(value, repeat=search + of, within=1.0 if kept else 0.5, **more)


def only(cells, searches=3):
    (found,) = capacity(cells, searches)
    return found


def three(*answers, kind="rate"):
    """Searches whose short probes all kept 10, and whose long ones kept each answer and what lies above."""
    cells = []
    for search, answer in enumerate(answers):
        reserve = [round(1.02 * answer, 2)] if kind == "rate" else []
        beyond = round(1.045 * answer, 2) if kind == "rate" else answer + 1
        cells += [cell(10, repeat=search, kind=kind)]
        cells += [long(load, True, search=search, kind=kind) for load in (answer, *reserve)]
        cells += [long(beyond, False, search=search, kind=kind)]
    return cells


def test_the_answer_is_a_load_that_kept_the_limits_with_one_above_it():
    found = only(three(19.4, 20.0, 20.0))
    assert found.kept_by_search == (19.4, 20.0, 20.0)
    assert (found.value, found.interval) == (20.0, (19.4, 20.0, 20.27))
    assert words(found) == "vllm: 20 requests/s keep the limits (3 searches: 19.4, 20, 20); 20.3 does not"


def test_a_closed_loop_needs_no_reserve():
    found = only(three(8, 8, 7, kind="concurrency"))
    assert words(found).startswith("vllm: 8 in flight keep the limits (3 searches: 8, 8, 7); 9 does not")


def test_a_short_probe_alone_decides_nothing():
    found = only([cell(10), cell(20)], searches=1)
    assert found.value is None
    assert words(found) == "vllm: not decided: 20 requests/s kept the limits for a short time only (1 search)"


def test_loads_that_were_not_left_behind_are_told_as_such():
    top = only([cell(20), long(19.6, True, of=1), long(20, True, of=1)], searches=1)
    assert words(top).startswith("vllm: at least 19.6 requests/s keep the limits, the highest load tried")
    lowest = only([cell(1, within=0.5), long(1, False, of=1)], searches=1)
    assert words(lowest).startswith("vllm: below 1 requests/s, the lowest load tried: e2e p95: 50.0% within")


def test_the_lowest_load_needs_no_other_above_it():
    found = only([cell(5), cell(5.1, within=0.5), long(5, True, of=1), long(5.1, False, of=1)], searches=1)
    assert found.interval == (5, 5, 5.1)


def test_a_search_without_an_answer_counts_as_the_lowest():
    cells = [*three(19.4, 20.0), long(1, False, search=2), cell(1, repeat=2, within=0.5)]
    found = only(cells)
    assert found.kept_by_search == (19.4, 20.0, None)
    assert "(3 searches: 19.4, 20, none)" in words(found)
    assert words(changed(found, saturated_from=24.0)).endswith("; saturated from 24")
    assert only(cells).interval[:2] == (None, 19.4)


def test_what_was_tried_says_why_it_failed():
    found = only([cell(10), cell(20, within=0.5), cell(40, in_system_last=90.0, served=21)], searches=1)
    assert [(one.kept, one.runs) for one in found.tested] == [(1, 1), (0, 1), (0, 1)]
    assert found.tested[2].why == "a queue builds: 7 requests in the system early, 90 late"
    assert found.saturated_from == 40


def test_a_closed_loop_whose_doubling_brings_nothing_is_saturated():
    loops = [cell(load, kind="concurrency", served=served) for load, served in ((4, 10), (8, 19), (16, 19.2))]
    assert only(loops, 1).saturated_from == 16


def test_a_summary_from_before_long_probes_is_not_read_as_an_answer():
    old = {
        "label": "a",
        "kind": "rate",
        "interval": [47.8, 66.5, 92.6],
        "searches": 3,
        "saturated_from": None,
    }
    assert words(made(Capacity, old)).startswith("a: between 47.8 and 92.6 requests/s, not confirmed")


def test_a_run_walks_through_short_and_long_probes_and_goes_on_where_it_was_cut_off():
    limits = {"load.concurrency": [], "load.rate": [5, 40], "slo.e2e_ms.p95": 500}
    asked = RunOptions("fixed-length", "truth", launch="simulate", find_capacity=True, overrides=limits)
    prepared = prepare(replace(asked, repeats=1, probe_seconds=5.0))
    (block,) = prepared.plan
    run = Run(prepared, None, None, None)
    sizes = {}
    for wanted in run._wanted(block):
        sizes[wanted.repeat] = prepared.probe_of(wanted).seconds
        kept = wanted.load.value <= 20.5
        measured = cell(wanted.load.value, repeat=wanted.repeat, within=1.0 if kept else 0.5)
        run.cells.append(changed(measured, cell=wanted.name, label="truth"))
    assert len({cell.cell for cell in run.cells}) == len(run.cells) < 20
    assert sizes == {0: 5, 1: 40}
    (found,) = capacity(run.cells, 1)
    assert 20.5 / 1.023**2 < found.value < 20.5 < found.interval[2] <= 20.5 * 1.023
    assert list(run._wanted(block)) == []
    last = run.cells.pop()
    assert next(run._wanted(block)).name == last.cell
