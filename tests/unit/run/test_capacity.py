"""The search on loads with a known limit, what a cell must show to keep the limits, and the words."""

from dataclasses import replace
from functools import partial
from itertools import islice, pairwise
from types import SimpleNamespace

import pytest
from msgspec import UNSET, structs

from harness.errors import ExitCode
from harness.model import (
    Capacity,
    CellResult,
    Cost,
    Interval,
    Limit,
    LoadPoint,
    Price,
    Reason,
    Summary,
    Validity,
)
from harness.plan import (
    Cell,
    ProbeSizes,
    capacity_grid,
    long_probe,
    make_plan,
    measured_requests,
    most_requests,
)
from harness.run.execute import Run
from harness.run.measure.workloads import Workloads
from harness.run.search import (
    MOST_AGAIN,
    MOST_LONG,
    first_load,
    next_probe,
    probes,
    repeat_of,
    usually_at_most,
)
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.scenario import Load, load_scenario
from harness.verdicts.capacity import capacity, exit_code, invalid_cells, why_unknown, words
from harness.verdicts.capacity_users import sentence
from harness.verdicts.crossing import contradictions, crossing, short_and_long, undisturbed
from harness.verdicts.slo_check import answers_needed, kept_limits, queue_reasons, why_not_kept
from tests.factories.documents import changed, made

LOADS = capacity_grid(Load(requests=1, rate=(1, 64))).rate


def searched(
    capacity, *, starts=3, loads=LOADS, kind="rate", lucky=(), unlucky=(), disturbed=(), short_of_it=()
):
    """Cells of a search on a server whose limits are kept up to `capacity`.

    Short probes at loads of `lucky` keep them whatever the load, those of `unlucky` do not. During the long
    probes of the numbers `disturbed` the server carries half as much. In the starts `short_of_it` 7% of the
    requests miss a limit that 5% may miss, at any load.
    """
    cells = []
    first = first_load(loads, kind)
    for start in range(starts):
        while (step := next_probe(loads, start, starts, cells, first)) is not None:
            load = loads[step.load_index]
            repeat = repeat_of(load, start, starts, cells) if step.long else start
            carried = capacity[start] if isinstance(capacity, list) else capacity
            if step.long and sum(one.repeat >= starts for one in cells) in disturbed:
                carried /= 2
            kept = load <= carried if step.long else load not in unlucky and load <= max(carried, *lucky, 0)
            within = 1.0 if kept else 0.5
            if start in short_of_it:
                within, carried = 0.93, load
            cells.append(cell(load, repeat=repeat, kind=kind, within=within, of=1200, **flow(load, carried)))
            assert len(cells) < 30
    assert len(cells) == len({(one.load.value, one.repeat) for one in cells})
    return cells


def flow(load, capacity):
    """What comes and what leaves in 29 s."""
    return {"arrivals": round(29 * load), "answered": round(29 * min(load, capacity))}


def sizes_of(cells, starts=3):
    """Loads of the short probes, and of the long ones."""
    short = [one.load.value for one in cells if one.repeat < starts]
    return short, [one.load.value for one in cells if one.repeat >= starts]


@pytest.mark.parametrize("limit", range(0, len(LOADS) - 1, 3))
def test_every_limit_is_found_in_few_probes(limit):
    capacity = (LOADS[limit] * LOADS[limit + 1]) ** 0.5
    cells = searched(capacity)
    short, long = sizes_of(cells)
    assert short[0] == 1
    assert len(short) <= 12
    assert 3 <= len(long) <= 5
    low, value, high = only(cells).interval
    assert 0.87 * capacity <= low <= value <= capacity <= high <= 1.14 * capacity


SLOTS = capacity_grid(Load(requests=1, concurrency=(1, 64))).concurrency


@pytest.mark.parametrize("limit", range(1, 41))
def test_a_closed_loop_is_searched_from_the_middle_and_every_limit_is_found(limit):
    """At one in flight the same number of answers takes eight times as long as at eight."""
    cells = searched(limit, loads=SLOTS, kind="concurrency")
    short, _ = sizes_of(cells)
    assert short[0] == 8
    assert limit < 9 or min(short) == 8
    assert only(cells).interval[1:] == (limit, limit + 1)


def test_a_closed_loop_ends_at_its_highest_load_or_at_its_lowest():
    cells = searched(99, loads=SLOTS, kind="concurrency")
    assert sizes_of(cells)[0] == [8, 16, 32, 64]
    assert only(cells).interval == (64, 64, None)
    cells = searched(0, loads=SLOTS, kind="concurrency")
    assert sizes_of(cells) == ([8, 4, 2, 1, 1], [1])
    assert words(only(cells)).startswith("vllm: 1 user, the lowest load tried, misses the limits: ")


@pytest.mark.parametrize("limit", [3, 5, 6, 7])
def test_lower_loads_than_the_first_are_tried_where_a_long_probe_leaves_none_that_keeps_the_limits(limit):
    """A short probe at eight kept them by luck; else no answer could be lower than eight."""
    cells = searched(limit, loads=SLOTS, kind="concurrency", lucky=(8,))
    assert min(sizes_of(cells)[0]) <= 4
    assert only(cells).value == limit


@pytest.mark.parametrize("starts", [1, 3, 5])
@pytest.mark.parametrize("ends", [(1, 64), (5, 10), (20, 25)])
def test_a_search_takes_no_more_probes_than_are_named_beforehand(ends, starts):
    loads = capacity_grid(Load(requests=1, rate=ends)).rate
    most = max(len(searched(load + 0.01, starts=starts, loads=loads)) for load in loads[::40])
    assert starts < most <= usually_at_most(loads, starts)


def test_where_no_load_keeps_the_limits_the_lowest_in_a_second_start_ends_the_search():
    """The first start has a long probe of it, the second a short one, which costs little."""
    cells = searched(0.5)
    assert sizes_of(cells) == ([1, 1], [1])
    assert [one.repeat for one in cells] == [0, 3, 1]
    assert only(cells).value is None
    assert words(only(cells)).startswith("vllm: 1 requests/s, the lowest load tried, miss the limits: ")


def test_the_lowest_load_is_tried_again_where_the_client_spoiled_it_or_the_server_nearly_kept_it():
    spoiled = cell(1, repeat=3, reasons=[doubt("schedule-lag", "INVALID")])
    nearly = cell(1, repeat=3, within=0.945, of=1200)
    for first in (spoiled, nearly):
        assert next_probe(LOADS, 1, 3, [cell(1, within=0.5), first]) == (0, True)


def test_a_server_does_not_miss_limits_at_a_lowest_load_that_the_client_spoiled():
    """It was said to, though every answer was within them."""
    late = [doubt("schedule-lag", "INVALID")]
    found = only([cell(2, reasons=late), cell(1, reasons=late), cell(1, repeat=1, reasons=late)], searches=1)
    assert words(found) == (
        "vllm: not decided: client, machine or other traffic spoiled probes at 1, 2: schedule-lag: so much"
    )
    assert why_unknown(found) == words(found).removeprefix("vllm: ")
    assert found.interval == (None, None, None)
    at_higher = cell(2, within=0.5)
    found = only([at_higher, cell(1, reasons=late), cell(1, repeat=1, reasons=late)], searches=1)
    assert words(found).startswith(
        "vllm: not decided: client, machine or other traffic spoiled probes at 1: "
    )
    assert found.interval == (None, None, 2), "the server itself failed at 2"
    carried = [cell(2), cell(1, reasons=late), cell(1, repeat=1, reasons=late)]
    assert words(only(carried, searches=1)).startswith(
        "vllm: not decided: client, machine or other traffic spoiled "
    )


def test_after_two_long_probes_that_failed_a_load_is_tried_that_is_surely_lower():
    """Those that fail by little at like loads do not show how slowly the share beyond a limit grows."""
    tried = [*map(cell, (1, 8, 14)), cell(18, within=0.5)]
    tried += [cell(16, repeat=3, within=0.94, of=1200), cell(15, repeat=4, within=0.945, of=1200)]
    assert LOADS[next_probe(LOADS, 2, 3, tried).load_index] < 13.5
    kept = cell(14, repeat=4, within=0.96, of=1200)
    assert 14 < LOADS[next_probe(LOADS, 2, 3, [*tried, kept]).load_index] < 16


def test_where_all_loads_keep_them_the_highest_is_the_answer():
    found = only(searched(100))
    assert found.interval == (64, 64, None)
    assert words(found) == (
        "vllm: at least 64 requests/s keep the limits, the highest load tried (10 probes in 3 searches)"
    )


def test_a_load_that_kept_the_limits_by_luck_is_given_up():
    cells = searched(14, lucky=(18,))
    assert 16 in sizes_of(cells)[0]
    assert 12.6 <= only(cells).value <= 14


def test_a_load_that_a_short_probe_kept_by_luck_is_no_low_end_where_a_long_one_failed_below():
    """Short probes have few requests, of which few miss a limit by little: 14 is well above the capacity."""
    short = [*map(cell, (1, 2, 4, 8, 14)), cell(16, within=0.5)]
    shares = ((11.5, 0.9), (10.8, 0.925), (9.9, 0.952))  # within the limit of p95, in long probes
    long_ones = [
        cell(load, repeat=3 + start, within=within, of=1200, **flow(load, 64))
        for start, (load, within) in enumerate(shares)
    ]
    low, value, high = only([*short, *long_ones]).interval
    assert low < 9.5
    assert value < 9.9 < high


def test_a_load_that_failed_by_bad_luck_is_not_the_end():
    cells = searched(20, unlucky=(LOADS[0],))
    assert sizes_of(cells)[0][:3] == [1, 2, 4]
    assert 17 <= only(cells).value <= 20
    assert only(searched(20, unlucky=(16,))).value >= 16


@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize("disturbed", range(2))
def test_a_disturbed_long_probe_counts_for_nothing_where_its_start_carries_the_load_after_all(
    disturbed, starts
):
    """Each is contradicted: a higher load kept the limits, or a lower one had more answers per second."""
    cells = searched(20, starts=starts, disturbed=(disturbed,))
    undisturbed = only(searched(20, starts=starts), starts).value
    found = only(cells, starts)
    assert 0.97 * undisturbed <= found.value <= 20 < found.interval[2]
    (again,) = (tried for tried in found.tested if tried.disturbed)
    assert (again.kept, again.saturated, again.disturbed) == (again.runs - 1, False, 1)
    assert found.slow_starts == ()
    assert max(filter(None, found.kept_by_search)) == 19.44
    assert words(found).endswith(f"; measured again at {again.value:g}: 1 disturbed probe left out")
    assert len(sizes_of(cells, starts)[1]) <= MOST_LONG + MOST_AGAIN


def test_a_disturbed_probe_tells_nothing_of_its_load():
    """Its 2 answers per second saturate no load, and what the client spoiled above may be carried."""
    of_eight = [long(8, kept, search=n, kind="concurrency", served=12 if kept else 2)
                for n, kept in enumerate((True, False, True))]  # fmt: skip
    above = long(16, True, kind="concurrency", served=24, reasons=[doubt("schedule-lag", "INVALID")])
    found = only([cell(4, kind="concurrency", served=10), *of_eight, above])
    tried = found.tested[1]
    assert (tried.runs, tried.kept, tried.disturbed) == (3, 2, 1)
    assert (tried.requests_per_s, tried.attainment, tried.why) == (12, 1.0, None)
    assert found.saturated_from is None
    assert "; may be higher: client, machine or other traffic spoiled probes at 16; measured" in words(found)


@pytest.mark.parametrize("limit", [6, 8, 24])
@pytest.mark.parametrize("disturbed", range(3))
def test_a_disturbed_probe_of_a_closed_loop_ends_no_search_far_below(disturbed, limit):
    found = only(searched(limit, loads=SLOTS, kind="concurrency", disturbed=(disturbed,)))
    assert found.interval[1:] == (limit, limit + 1)


def test_a_disturbed_short_probe_of_a_closed_loop_is_measured_again_by_a_long_one():
    """At four it missed the limits clearly, and at eight nearly kept them."""
    tried = [cell(8, within=0.91, kind="concurrency"), cell(4, within=0.5, kind="concurrency")]
    tried += [cell(load, kind="concurrency") for load in (2, 3)]
    step = next_probe(SLOTS, 0, 3, tried, first_load(SLOTS, "concurrency"))
    assert (SLOTS[step.load_index], step.long) == (4, True)
    tried.append(cell(4, repeat=3, kind="concurrency"))
    assert SLOTS[next_probe(SLOTS, 1, 3, tried).load_index] in {5, 6, 7}


def test_a_load_in_doubt_is_measured_again_in_its_own_start_and_in_the_next():
    """A short probe at 20 kept the limits: the long one was disturbed, or this start is a slow one."""
    tried = [*map(cell, (1, 2, 4, 8, 16)), cell(20), cell(32, within=0.1, **flow(32, 20))]
    tried.append(cell(18.22, within=0.5, repeat=3))

    def wanted(start):
        step = next_probe(LOADS, start, 3, tried)
        return step and (LOADS[step.load_index], step.long)

    assert wanted(0) == (18.22, True)
    tried.append(cell(18.22, within=0.5, repeat=6))
    assert wanted(0) is None
    assert wanted(1) == (18.22, True)
    assert only(tried).slow_starts == ()
    tried.append(cell(18.22, repeat=4))
    assert only(tried).slow_starts == (0,)


@pytest.mark.parametrize("slow", range(3))
def test_a_start_that_is_slow_each_time_widens_the_interval_and_is_named(slow):
    """Of 20 requests/s one start of three carries 13: its probes are no disturbed ones."""
    carried = [20, 20, 20]
    carried[slow] = 13
    found = only(searched(carried))
    low, value, high = found.interval
    assert low < 13
    assert 17 < value <= 20 < high
    assert found.slow_starts == (slow,)
    kept = found.kept_by_search[slow]
    assert 9 < kept <= 13
    assert words(found).endswith(
        f"; start {slow + 1} was slower each time it was measured: it carried {kept:g}"
    )


def test_a_start_that_answers_less_is_tried_at_what_another_one_carried():
    """A short probe kept the limits there: its queue was still short. From a server of 20/s and one of 15."""
    tried = [*map(cell, (1, 2, 4, 8, 16)), cell(32, within=0.1, **flow(32, 20)), cell(18.22, repeat=3)]
    tried += [cell(20, within=0.1, repeat=repeat, **flow(20, 15)) for repeat in (4, 7)]
    assert next_probe(LOADS, 1, 3, tried) == (LOADS.index(18.22), True)
    tried.append(cell(18.22, within=0.1, repeat=4, **flow(18.22, 15)))
    assert only(tried).slow_starts == (1,)


def test_a_queue_that_swings_near_the_capacity_makes_no_start_a_slow_one():
    """Another start carried the same load, of a server of 20/s, and all latencies kept the limits."""
    swings = {"arrivals": 566, "answered": 540, "in_system_first": 20.0, "in_system_last": 60.0}
    tried = [*map(cell, (1, 2, 4, 8, 16)), cell(32, within=0.1, **flow(32, 20)), cell(19.5, repeat=4)]
    tried += [cell(19.5, repeat=repeat, **swings) for repeat in (5, 8)]
    assert not any(map(kept_limits, tried[-2:]))
    assert only(tried).slow_starts == ()


def test_a_start_tries_a_load_in_doubt_no_more_than_twice():
    """Of one that missed the limits each time, by more and by less, 53 probes were left out at one load."""
    slots = partial(cell, kind="concurrency", of=320)
    tried = [slots(8), slots(16, within=0.1), slots(12, within=0.3), slots(10, within=0.8)]
    tried += [
        slots(9, within=0.44, repeat=3),
        slots(9, within=0.835, repeat=6),
        slots(9, within=0.86, repeat=4),
    ]
    tried += [slots(9, within=0.75, repeat=7)]
    step = next_probe(SLOTS, 1, 3, tried)
    assert step is None or SLOTS[step.load_index] != 9


def test_the_answer_is_that_of_most_starts():
    found = only(searched([13, 20, 13]))
    low, value, high = found.interval
    assert 0.87 * 13 < low <= value <= 13
    assert high > 20


@pytest.mark.parametrize("limit", [5, 8, 24])
def test_a_first_start_that_is_slow_brackets_no_other(limit):
    """Its short probes leave a bracket to all starts: each later one tries what failed there."""
    found = only(searched([limit // 2, limit, limit], loads=SLOTS, kind="concurrency"))
    assert (found.value, found.slow_starts) == (limit, (0,))


@pytest.mark.parametrize("limit", [6, 20, 40])
def test_a_first_start_that_misses_a_limit_by_little_at_any_load_bounds_no_other(limit):
    """The others keep it at far higher loads, with no request beyond it."""
    found = only(searched(limit, short_of_it=(0,)))
    low, value, high = found.interval
    assert 0.87 * limit < low <= value <= limit < high
    assert [tried.disturbed for tried in found.tested if tried.value == 1] == [1]


@pytest.mark.parametrize("kind", ["rate", "concurrency"])
def test_a_first_start_that_fails_at_the_lowest_load_ends_no_search(kind):
    """Of 20 requests/s the first start of three carries less than the lowest load."""
    loads = LOADS if kind == "rate" else SLOTS
    found = only(searched([0.5, 20, 20], loads=loads, kind=kind))
    low, value, high = found.interval
    assert low is None
    assert 17 < value <= 20 < high
    assert (found.searches, found.slow_starts, found.kept_by_search[0]) == (3, (0,), None)


def test_a_start_that_kept_nothing_is_slow_without_a_low_end():
    found = only(searched([20, 0.5, 20]))
    assert found.interval[0] is None
    assert words(found).endswith(
        "; start 2 was slower each time it was measured: it kept the limits at no load"
    )


@pytest.mark.parametrize(("code", "cause"), [("schedule-lag", UNSET), ("does-not-add-up", "either")])
def test_a_probe_that_the_client_spoiled_counts_for_nothing_where_another_tells_of_its_load(code, cause):
    """Of a server of 4 slots 3 were found (3 to 4). Another client of that server spoils a probe too."""
    slots = partial(cell, kind="concurrency")
    late = [structs.replace(doubt(code, "INVALID"), cause=cause)]
    tried = [slots(4), slots(5, within=0.75), slots(4, repeat=3, reasons=late), slots(3, repeat=4)]
    assert words(only(tried)).endswith(
        "; may be higher: client, machine or other traffic spoiled probes at 4"
    )
    found = only([*tried, slots(4, repeat=5)])
    assert (found.value, found.interval[0]) == (4, 4)
    assert words(found).endswith("; measured again at 4: 1 disturbed probe left out")


def test_a_start_whose_short_probes_the_client_spoiled_is_not_slow():
    """The first start of 4 slots "kept the limits at no load" after workers of the client died."""
    died = [doubt("worker-lost", "INVALID")]
    tried = [slots(2, reasons=died), slots(1, reasons=died), slots(4, repeat=4), slots(4, repeat=5)]
    assert only(tried).slow_starts == ()
    missed = [slots(2, within=0.5), slots(1, within=0.5), *tried[2:]]
    assert only(missed).slow_starts == (0,)


def test_a_load_that_fails_again_is_too_much():
    """A short probe at 18.2 requests/s kept the limits by luck, two long ones at 17.4 did not."""
    tried = [*map(cell, (1, 2, 4, 8, 16, 18.22)), cell(32, within=0.1, **flow(32, 16))]
    tried += [cell(17.45, repeat=repeat, within=0.5, of=1200, **flow(17.45, 16)) for repeat in (3, 4)]
    step = next_probe(LOADS, 2, 3, tried)
    assert LOADS[step.load_index] < 17.4
    assert only(tried).interval[2] < 18.22


def test_borderline_repeats_of_a_load_are_counted_together():
    """5.2% and 4.8% beyond the limit are no contradiction: nothing is left out of the estimate."""
    shares = (0.948, 0.952, 0.952)
    tried = [cell(10), cell(20, within=0.5)]
    tried += [cell(15, repeat=3 + start, within=share, of=1200) for start, share in enumerate(shares)]
    assert undisturbed(*short_and_long(tried, 3), 3) == tried[2:]


@pytest.mark.parametrize("slope", [1.5, 2.0, 3.0])
def test_the_answer_is_safe_where_the_share_beyond_a_limit_grows_slowly(slope):
    """As where lengths vary and a batch slows all: log odds of `slope` times the logarithm of the load."""
    cells = []
    while (step := next_probe(LOADS, 2, 3, cells)) is not None:
        load, of = LOADS[step.load_index], 1200 if step.long else 60
        within = round(of / (1 + 0.05 / 0.95 * (load / 13) ** slope)) / of
        cells.append(cell(load, repeat=2 + 3 * step.long, within=within, of=of, **flow(load, 40)))
    low, value, high = only(cells).interval
    assert 10 < value <= 13
    assert low <= 13 <= high


def test_users_who_hang_up_take_nothing_from_a_capacity():
    """Half of the requests at each load: the queue is of the others."""
    cells = searched(20)
    halves = [
        structs.replace(
            changed(one, requests={"outcomes": {"ok": 900, "abandoned": 300}, "impatient": 600}),
            backlog=structs.replace(
                one.backlog, arrivals=one.backlog.arrivals // 2, answered=one.backlog.answered // 2
            ),
        )
        for one in cells
    ]
    assert only(halves).interval == pytest.approx(only(cells).interval, rel=0.01)


def test_each_start_has_a_long_probe_and_the_last_goes_on_while_the_estimate_is_wide():
    cells = searched(20)
    assert [one.repeat for one in cells if one.repeat >= 3] == [3, 4, 5]
    soft = [cell(16, repeat=3, within=0.97, of=130), cell(17, repeat=4, within=0.96, of=130)]
    soft = [cell(1), cell(16), cell(20, within=0.5), *soft]
    assert next_probe(LOADS, 2, 3, soft).long
    soft.append(cell(LOADS[next_probe(LOADS, 2, 3, soft).load_index], repeat=5, within=0.95, of=130))
    assert next_probe(LOADS, 2, 3, soft).long
    assert 2 <= len(sizes_of(searched(20, starts=1), 1)[1]) <= 5
    assert len(sizes_of(searched(20, starts=7), 7)[1]) == 7


def test_a_start_that_measured_nothing_is_made_up_for():
    cells = []
    while (step := next_probe(LOADS, 1, 3, cells)) is not None:
        load = LOADS[step.load_index]
        share = 1.0 if load < 20 else 0.5
        cells.append(cell(load, repeat=1 + 3 * step.long, within=share, **flow(load, 20)))
    short, long = sizes_of(cells)
    assert short[0] == 1
    assert len(long) == 2


def test_the_grid_doubles_within_its_ends_and_its_neighbours_are_close():
    assert LOADS[0] == 1
    assert LOADS[-1] == 64
    assert all(above <= 1.023 * load for load, above in pairwise(LOADS))
    assert capacity_grid(Load(requests=1, concurrency=(1, 9))).concurrency == tuple(range(1, 10))
    assert capacity_grid(Load(requests=1, rate=(0.5,))).rate[-1] == 32
    assert capacity_grid(Load(requests=1, rate=(3, 50))).rate[-1] == 50


SIZES = ProbeSizes(seconds=45, needed=124, requests=32)


def rate(value):
    return LoadPoint("rate", value)


def test_a_short_probe_is_as_long_as_a_bracket_needs():
    seconds = [SIZES.short(rate(value)).seconds for value in (0.25, 1, 4, 20)]
    assert seconds == [40, 10, 7.5, 7.5]
    assert SIZES.short(rate(20), answer_s=5).seconds == 20
    assert SIZES.short(rate(20), answer_s=60).seconds == 45
    assert measured_requests(Load(requests=32, rate=(1, 64)), rate(20), SIZES.short(rate(20))) == 150


def test_a_long_probe_has_the_answers_and_the_time_that_decide():
    seconds = [SIZES.long(rate(value)).seconds for value in (1, 20, 400)]
    assert seconds == [225, 60, 45]
    assert SIZES.long(rate(400), answer_s=10).seconds == 120
    assert SIZES.long(rate(400), answer_s=100).seconds == 225 == SIZES.most(rate(400)).seconds
    assert SIZES.long(rate(1)).answers == 124
    p99 = replace(SIZES, needed=628)
    assert p99.long(rate(20)).seconds == pytest.approx(188.4)


def test_a_closed_loop_answers_so_often_on_each_slot():
    point, load = LoadPoint("concurrency", 20), Load(requests=32, concurrency=(1, 64))
    assert measured_requests(load, point, SIZES.short(point)) == 200
    assert measured_requests(load, point, SIZES.long(point)) == 800
    assert measured_requests(load, LoadPoint("concurrency", 1), SIZES.long(point)) == 4 * 124
    assert measured_requests(load, point) == 32


def test_as_many_prompts_are_read_as_the_largest_probe_needs():
    scenario = load_scenario("fixed-length", {"load.concurrency": [], "load.rate": [1, 20]})
    warmup = scenario.load.warmup_requests
    assert most_requests(scenario) == scenario.load.requests + warmup
    assert most_requests(scenario, SIZES) == 20 * 225 + warmup


def test_prompts_are_made_for_the_loads_that_are_tried_and_are_its_own_in_each_probe():
    scenario = load_scenario("fixed-length", {"load.concurrency": [], "load.rate": [1, 20]})
    made = Workloads(scenario, 1, 0, None, SIZES)
    assert list(made.cards(0)) == ["r1"]
    short = Cell("001-x-r20-r0", 0, rate(20), 0, SIZES.short(rate(20)))
    long = long_probe(short, 1, SIZES.long(rate(20)))
    assert (long.name, long.repeat) == ("001-x-r20-r1", 1)
    warmup = scenario.load.warmup_requests
    assert [len(made.of(cell)) - warmup for cell in (short, long)] == [150, 1200]
    assert made.of(short) is made.of(short)
    assert not {str(r.messages) for r in made.of(short).requests} & {
        str(r.messages) for r in made.of(long).requests
    }


def halves(texts):
    """A token for a short word or a full stop, two for a long one."""
    words = [text.replace(".", " .").split() for text in texts]
    return [sum(1 + (len(word) > 5) for word in found) for found in words]


@pytest.mark.parametrize("scenario", ["fixed-length", "rag"])
def test_prompts_have_one_length_at_loads_that_a_backend_without_a_tokenizer_tries(scenario):
    loads = load_scenario(scenario, {"load.concurrency": [], "load.rate": [1, 20]})
    searched = Workloads(loads, 1, 0, halves, SIZES)
    assert not searched.count_with(None)
    later = searched.of(Cell("001-x-r20-r0", 0, rate(20), 0, SIZES.short(rate(20))))
    assert not later.exact
    for request in islice(later.requests, 20):
        assert sum(halves([text for _, text in request.messages])) == request.content_tokens
    assert searched.count_with(halves)
    assert searched.of(Cell("", 0, rate(20), 1, SIZES.short(rate(20)))).exact


def test_words_count_at_every_load_where_the_first_backend_has_no_tokenizer():
    loads = load_scenario("fixed-length", {"load.concurrency": [], "load.rate": [1, 20]})
    searched = Workloads(loads, 1, 0, None, SIZES)
    assert searched.count_with(halves)
    assert not searched.of(Cell("", 0, rate(20), 0, SIZES.short(rate(20)))).exact


def walked(measured, searches=1, repeat=0):
    """The next cell that a search asks for."""
    block = make_plan(["vllm"], Load(requests=32, rate=tuple(LOADS)), searches)[repeat]
    return next(probes(block, searches, SIZES, lambda: measured), None)


def test_probes_are_sized_by_the_time_of_an_answer_at_the_lowest_load():
    assert walked([]).probe == SIZES.short(rate(1))
    first = cell(1, in_system_mean=50.0)  # 29 s with 580 arrivals: 2.5 s each
    following = walked([first])
    assert (following.load.value, following.repeat) == (2, 0)
    assert following.probe == SIZES.short(rate(2), answer_s=2.5)


def test_a_second_start_asks_for_a_long_probe_where_the_capacity_is_likely():
    cells = searched(20, starts=2)
    following = walked([one for one in cells if one.repeat % 2 == 0], searches=2, repeat=1)
    assert following.repeat == 3
    assert 19 < following.load.value < 22
    assert walked(cells, searches=2, repeat=1) is None


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


slots = partial(cell, kind="concurrency")


def doubt(code, verdict="SUSPECT"):
    return Reason(code, verdict, "so much", "", "")


@pytest.mark.parametrize(
    ("short", "long", "at"),
    [
        # Clearly is twice the 5% that may miss the limit, and far better is half of that share.
        ([cell(20), cell(16, within=0.91)], [], {}),
        ([cell(20), cell(16, within=0.89)], [], {16: 1.1}),
        ([cell(20, within=0.92), cell(16, within=0.8)], [], {16: 2.0}),
        ([cell(20, within=0.9), cell(16, within=0.8)], [], {}),
        ([cell(20, within=0.86), cell(16, within=0.2)], [], {16: 3.0}),
        # A long probe answered 10/s: so many more do not come from an engine that has no more to give.
        ([cell(12, **flow(10.9, 12))], [cell(16, within=0.5, repeat=3, **flow(16, 10))], {}),
        ([cell(12, **flow(11.1, 12))], [cell(16, within=0.5, repeat=3, **flow(16, 10))], {16: 3.0}),
        ([cell(12, **flow(11.1, 12)), cell(16, within=0.5, **flow(16, 10))], [], {}),
        # One that missed it by little is doubted by far better long ones alone: a fifth of its share.
        ([], [cell(20, repeat=4), cell(16, within=0.93, repeat=3)], {16: 1.0}),
        ([], [cell(20, within=0.98, repeat=4), cell(16, within=0.93, repeat=3)], {}),
        ([cell(20)], [cell(16, within=0.93, repeat=3)], {}),
        # Users at once who miss it by little, and of whom fewer had more answers.
        (
            [],
            [slots(12, within=0.96, repeat=4, served=11.1), slots(16, within=0.94, repeat=3, served=10)],
            {16: 1.0},
        ),
        (
            [],
            [slots(12, within=0.96, repeat=4, served=10.9), slots(16, within=0.94, repeat=3, served=10)],
            {},
        ),
        # The client is to blame for itself.
        ([cell(20)], [cell(16, within=0.5, repeat=3)], {16: 3.0}),
        ([cell(20)], [cell(16, within=0.5, repeat=3, reasons=[doubt("client-busy", "INVALID")])], {}),
    ],
)
def test_a_load_that_failed_clearly_is_doubted_by_far_better_probes(short, long, at):
    assert {found.load: found.clear for found in contradictions(short, long, 3)} == pytest.approx(at)


@pytest.mark.parametrize(
    ("load", "code", "ends"),
    [
        (64, "failed-requests", ExitCode.OK),
        (64, "dropped-requests", ExitCode.OK),
        (8, "failed-requests", ExitCode.INVALID),
        (64, "engine-died", ExitCode.INVALID),
        (64, "does-not-add-up", ExitCode.INVALID),
        (64, "client-busy", ExitCode.INVALID),
    ],
)
def test_what_a_server_refuses_beyond_its_capacity_is_no_invalid_measurement(load, code, ends):
    """A search has to ask for more than is carried."""
    spoiled = cell(load, repeat=2, within=0.0, reasons=[doubt(code, "INVALID")])
    cells = [*searched(20), spoiled]
    found = capacity(cells, 3)
    for answers, expected in ((found, ends), ((), ExitCode.INVALID), (None, ExitCode.INVALID)):
        summary = made(Summary, state="invalid", cells=cells, capacity=answers)
        assert exit_code(summary, failures=False) == expected


def test_a_spoiled_probe_that_another_one_replaced_is_no_invalid_measurement():
    """The answer rests on the other one, and says that one was left out."""
    slots, late = partial(cell, kind="concurrency"), [doubt("schedule-lag", "INVALID")]
    tried = [slots(4), slots(5, within=0.75), slots(4, repeat=3, reasons=late), slots(3, repeat=4)]
    for cells, ends in ((tried, ExitCode.INVALID), ([*tried, slots(4, repeat=5)], ExitCode.OK)):
        summary = made(Summary, state="invalid", cells=cells, capacity=capacity(cells, 3))
        assert exit_code(summary, failures=False) == ends
    died = [*tried[:2], slots(4, repeat=3, reasons=[doubt("engine-died", "INVALID")]), slots(4, repeat=5)]
    summary = made(Summary, state="invalid", cells=died, capacity=capacity(died, 3))
    assert exit_code(summary, failures=False) == ExitCode.INVALID


def test_a_search_without_an_answer_that_was_refused_ends_as_an_invalid_measurement():
    cells = [cell(load, within=0.0, reasons=[doubt("failed-requests", "INVALID")]) for load in (1, 2)]
    assert invalid_cells(cells, capacity(cells, 3)) == cells


def test_a_cell_that_keeps_up_with_its_load_and_its_limits_is_kept():
    assert why_not_kept(cell()) == []
    assert kept_limits(cell(kind="concurrency"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"within": 0.949}, "e2e p95: 94.9% within the limit"),
        ({"within": 0.9496}, "e2e p95: 94.96% within the limit"),
        ({"share": "max", "within": 599 / 600}, "e2e max: 99.8% within the limit"),
        ({"share": "max", "within": 0.99964}, "e2e max: 99.96% within the limit"),
        ({"in_system_last": 24.0}, "a queue builds: 7 requests in the system early, 24 late"),
        ({"answered": 560}, "560 answers to 580 arrivals"),
        ({"probed_s": 12.0}, "too short: 12 s, needs 24 s"),
        ({"in_system_mean": 250.0}, "too short: 30 s, needs 37.5 s"),
        ({"reasons": [doubt("not-steady")], "kind": "concurrency"}, "not-steady: so much"),
        ({"reasons": [doubt("output-length")]}, "output-length: so much"),
        ({"reasons": [doubt("schedule-lag", "INVALID")]}, "schedule-lag: so much"),
    ],
)
def test_each_way_to_fail_is_told(change, why):
    assert why_not_kept(cell(**change)) == [why]


def test_failed_requests_count_in_the_share_of_a_limit_and_refute_no_load_by_themselves():
    """One of 698 failed: SUSPECT, or INVALID beyond 1%, by the engine; the limit's share says enough."""
    for reason in (doubt("failed-requests"), doubt("failed-requests", "INVALID")):
        assert kept_limits(cell(reasons=[reason], within=597 / 600))
        assert why_not_kept(cell(reasons=[reason], within=0.94)) == ["e2e p95: 94% within the limit"]
    refused = changed(cell(answered=550, reasons=[doubt("failed-requests")]), requests={"failed": 28})
    assert kept_limits(refused)  # nor do they wait in a queue
    assert why_not_kept(cell(answered=550)) == ["550 answers to 580 arrivals"]


def test_the_last_sentence_says_what_a_server_carries_and_how_many_users_that_is():
    probe = cell(within=1.0)
    limits = probe.slo.limits
    (found,) = capacity(three(14.2, 15.0, 15.0), 3)
    assert sentence(found, limits, probe) == (
        "Within E2E p95 ≤ 500 ms, vllm serves about 380 users who send a request every 30 s."
    )
    assert words(found).startswith("vllm: 12.8 requests/s keep the limits (95% interval 11.6 to 15.5; ")
    assert sentence(changed(found, interval=(15.0, 15.0, None)), limits, probe) == (
        "Within E2E p95 ≤ 500 ms, vllm serves about 450 users or more who send a request every 30 s."
    )
    for rate, users in (
        (0.012, "0.36 users who send"),
        (1 / 30, "1 user who sends"),
        (0.15, "4.5 users who send"),
    ):
        slow = sentence(changed(found, interval=(rate, rate, 2 * rate)), limits, probe)
        assert slow.endswith(f" vllm serves about {users} a request every 30 s.")
    below = changed(found, interval=(None, 15.0, 16.0))
    assert "15 requests/s keep the limits (95% interval up to 16; " in words(below)
    assert sentence(below, limits, probe).endswith(
        " vllm serves about 450 users who send a request every 30 s."
    )
    assert sentence(changed(found, interval=(None, None, 16.0)), limits, probe) is None


@pytest.mark.parametrize(
    ("thinks_s", "pause"),
    [(0.0, "as soon as an answer ends"), (12.5, "12.5 s after an answer, on average")],
)
def test_users_of_a_closed_loop_are_as_many_as_there_are_slots_by_how_long_they_think(thinks_s, pause):
    probe = cell(within=1.0, kind="concurrency")
    probe = structs.replace(probe, load=structs.replace(probe.load, think_time_s=thinks_s))
    found = only(three(8, 8, 8, kind="concurrency"))
    served = "Within E2E p95 ≤ 500 ms, vllm serves"
    assert sentence(found, probe.slo.limits, probe) == (
        f"{served} 8 users at once who send the next request {pause}."
    )
    alone = changed(found, interval=(1, 1, 2))
    assert sentence(alone, probe.slo.limits, probe) == (
        f"{served} 1 user at once who sends the next request {pause}."
    )


@pytest.mark.parametrize(
    ("highest", "interval", "takes"),
    [
        (200, (7, 8, 9), "; 200 of them, divided evenly, take 25 such servers."),
        (201, (7, 8, 9), "; 201 of them, divided evenly, take 26 such servers."),
        (8, (8, 8, None), "."),
        (None, (7, 8, 9), "."),
    ],
)
def test_a_search_says_how_many_servers_its_highest_load_takes(highest, interval, takes):
    probe = cell(within=1.0, kind="concurrency")
    found = changed(only(three(8, 8, 8, kind="concurrency")), interval=interval, highest=highest)
    assert sentence(found, probe.slo.limits, probe).endswith(f" as soon as an answer ends{takes}")
    (whole,) = capacity(three(8, 8, 8, kind="concurrency"), 3, highest=highest)
    assert whole.highest == highest


def test_the_servers_of_the_highest_load_have_their_price():
    price = Price(per_hour=3.8, currency="EUR", covers="the machine", source="--price-per-hour")
    probe = structs.replace(cell(within=1.0), cost=made(Cost, price=price))
    found = changed(only(three(14.2, 15.0, 15.0)), interval=(11.6, 12.8, 15.5), highest=64)
    assert sentence(found, probe.slo.limits, probe).endswith(
        " every 30 s; 64 requests/s, divided evenly, take 5 such servers, 19 EUR per hour."
    )


@pytest.mark.parametrize(
    ("code", "own"), [("schedule-lag", False), ("machine-stalled", False), ("engine-died", True)]
)
def test_an_answer_that_the_client_or_the_machine_brought_down_may_be_higher(code, own):
    spoiled = long(16, True, search=1, reasons=[doubt(code, "INVALID")], **served(16))
    found = only([cell(10), cell(20), long(12, True, **served(12)), spoiled])
    higher = "; may be higher: client, machine or other traffic spoiled probes at 16"
    assert words(found).endswith(higher) is not own
    assert [tried.value for tried in found.tested if tried.spoiled] == ([] if own else [16])
    limit = Limit(metric="ttft_ms", share="p95", limit_ms=2000.0, within=1.0, met=True)
    assert (" users or more who send" in sentence(found, [limit], spoiled)) is not own
    below = only([cell(10), cell(20), long(12, True, **served(12)), long(14, False, search=2), spoiled])
    assert "may be higher" not in words(below), "the server itself fails at 14"
    known = only([cell(10), cell(20), long(12, True, **served(12)), spoiled, long(16, False, search=2)])
    assert "may be higher" not in words(known), "the server itself fails at 16 too"


def test_a_short_probe_fails_only_where_it_surely_does_not_keep_up():
    kept = [{"within": 0.96}, {"of": 20}, {"probed_s": 6.0}, {"answered": 565}, {"in_system_last": 14.0}]
    for change in (*kept, {"reasons": [doubt("not-steady")]}):
        assert why_not_kept(cell(**change), short=True) == []
    failed = {
        "e2e p95: 94% within the limit": {"within": 0.94},
        "550 answers to 580 arrivals": {"answered": 550},
        "a queue builds: 7 requests in the system early, 60 late": {"in_system_last": 60.0},
        "schedule-lag: so much": {"reasons": [doubt("schedule-lag", "INVALID")]},
    }
    for why, change in failed.items():
        assert why_not_kept(cell(**change), short=True) == [why]


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
    """Searches whose short probes kept 10, and whose long ones kept each answer, not the load above."""
    cells = []
    for search, answer in enumerate(answers):
        beyond = round(1.023 * answer, 2) if kind == "rate" else answer + 1
        cells += [cell(10, repeat=search, kind=kind)]
        cells += [long(answer, True, search=search, kind=kind, served=answer, **served(answer))]
        cells += [long(beyond, False, search=search, kind=kind, **served(beyond))]
    return cells


def served(rate):
    """A queue of which `rate` requests/s leave."""
    return {"answered": round(29 * rate), "arrivals": round(29 * rate)}


def test_a_probe_that_an_interruption_cut_short_says_nothing_of_its_load():
    """Ctrl-C two requests after its start: nothing was answered, the load was not too much."""
    before = [*map(cell, (1, 2, 4, 8, 16)), cell(32, within=0.5), long(18, True)]
    cut = changed(long(9, False, search=1), requests={"planned": 513, "cancelled": 2, "unsent": 511})
    assert only([*before, cut]).value < 10 < only(before).value
    found = capacity([*before, cut], 3, interrupted=True)
    assert found == capacity(before, 3)
    (nothing,) = capacity([cut], 3, interrupted=True)
    assert words(nothing) == "vllm: not decided: nothing was measured"


def test_the_answer_is_below_the_loads_that_kept_the_limits():
    found = only(three(19.4, 20.0, 20.0))
    low, value, high = found.interval
    assert found.kept_by_search == (19.4, 20.0, 20.0)
    assert 17.5 <= low <= value == found.value < 19.4 < high < 21.5
    effort = "9 probes in 3 searches"
    assert (
        words(found)
        == f"vllm: {value:g} requests/s keep the limits (95% interval {low:g} to {high:g}; {effort})"
    )


def test_the_answer_is_below_what_the_server_carried_at_most():
    """A queue just above the capacity grows for longer than a probe lasts."""
    kept = long(20, True, of=1, **served(20))
    full = long(23, False, of=1, arrivals=667, answered=580)
    assert only([cell(10), kept, full], searches=1).value == 19.1
    refusing = changed(full, requests={"failed": 87})  # they left the system as well
    assert only([cell(10), kept, refusing], searches=1).value > 19.1


def test_a_closed_loop_needs_no_reserve():
    found = only(three(8, 8, 8, kind="concurrency"))
    span = "(95% interval 8 to 9; 9 probes in 3 searches)"
    assert words(found).startswith(f"vllm: 8 users keep the limits {span}")


def test_loads_from_a_thousand_on_are_printed_as_they_were_given():
    loop = changed(
        only(three(8, 8, 8, kind="concurrency")),
        interval=(998, 1024, 1090),
        kept_short=1024,
        saturated_from=2048,
    )
    span = "(95% interval 998 to 1090; 9 probes in 3 searches)"
    assert words(loop) == f"vllm: 1024 users keep the limits {span}; saturated from 2048"
    top = changed(loop, interval=(1024, 1024, None), saturated_from=None)
    assert words(top).startswith("vllm: at least 1024 users keep the limits")
    short = changed(top, interval=(None, None, None))
    assert words(short) == "vllm: not decided: 1024 users kept the limits for a short time only"
    limit = made(Limit, metric="ttft_ms", share="p95", limit_ms=1_200_000.0)
    rates = structs.replace(loop, kind="rate", interval=Interval(1190.0, 1230.0, 1290.0))
    assert words(rates).startswith("vllm: 1230 requests/s keep the limits (95% interval 1190 to 1290; ")
    assert sentence(rates, [limit], cell()).startswith(
        "Within TTFT p95 ≤ 1200000 ms, vllm serves about 37,000 users who"
    )


def test_a_short_probe_alone_decides_nothing():
    found = only([cell(10), cell(20)], searches=1)
    assert found.value is None
    assert words(found) == "vllm: not decided: 20 requests/s kept the limits for a short time only"


def test_a_search_of_which_no_long_probe_kept_the_limits_has_no_answer():
    """It was interrupted: the share may grow slowly with the load, and be beyond the limit far below."""
    found = only([*map(cell, (1, 2, 4, 8)), cell(16, within=0.5), long(10.8, False)])
    assert (found.interval[:2], found.value, found.kept_short) == ((None, None), None, 8)
    effort = "6 probes in 1 search"
    high = f"{found.interval[2]:g}"
    assert words(found) == (
        f"vllm: not decided: no long probe kept the limits (95% interval up to {high}; {effort})"
    )


def test_loads_that_were_not_left_behind_are_told_as_such():
    top = only([cell(20), long(19.6, True, of=1), long(20, True, of=1)], searches=1)
    assert words(top).startswith("vllm: at least 20 requests/s keep the limits, the highest load tried")
    lowest = only([cell(1, within=0.5), long(1, False, of=1)], searches=1)
    missed = "vllm: 1 requests/s, the lowest load tried, miss the limits"
    assert words(lowest).startswith(f"{missed}: e2e p95: 50% within")
    slow_first = only([cell(1, within=0.5), cell(2), long(1, False, of=1)], searches=1)
    assert words(slow_first).startswith(f"{missed}, though 2 kept them: e2e p95: 50% within")


@pytest.mark.parametrize(
    ("within", "interval"), [(0.97, (64, 64, None)), (0.955, (57.1, 59.9, 74.6)), (0.951, (55.6, 58.9, 73.8))]
)
def test_the_highest_load_is_the_answer_where_it_surely_keeps_the_limits(within, interval):
    """Each time three long probes of 1,200 answers keep it as measured: by far, or by a few answers."""
    alike = [cell(64, repeat=3 + start, within=within, of=1200, **flow(64, 100)) for start in range(3)]
    assert only([cell(1), cell(32), cell(64), *alike]).interval == interval


@pytest.mark.parametrize(
    ("within", "high", "why"), [(0.955, 1.25, ""), (0.945, 1.14, ": e2e p95: 94.5% within the limit")]
)
def test_the_lowest_load_may_be_the_capacity(within, high, why):
    """Three long probes of 1,200 answers, in which about 5% are beyond the limit."""
    long_ones = [cell(1, repeat=3 + start, within=within, of=1200) for start in range(3)]
    found = only([cell(1), cell(1.25, within=0.5), *long_ones])
    assert found.interval == (None, None, high)
    assert words(found) == (
        "vllm: not sure of 1 requests/s, the lowest load tried "
        f"(95% interval up to {high}; 5 probes in 3 searches){why}"
    )


def test_a_start_that_kept_nothing_lowers_the_answer_and_says_so():
    alike = three(19.4, 20.0)
    found = only([*alike, long(18, False, search=2, **served(18))])
    assert found.kept_by_search == (19.4, 20.0, None)
    assert found.value < only(alike, 3).value
    assert words(changed(found, saturated_from=24.0)).endswith("; saturated from 24")


def test_what_was_tried_says_why_it_failed():
    found = only([cell(10), cell(20, within=0.5), cell(40, in_system_last=90.0, served=21)], searches=1)
    assert [(one.kept, one.runs) for one in found.tested] == [(1, 1), (0, 1), (0, 1)]
    assert found.tested[2].why == "a queue builds: 7 requests in the system early, 90 late"
    assert found.saturated_from == 40


def test_a_swing_in_a_short_probe_that_kept_its_load_saturates_nothing():
    """Of a long probe it is a queue that builds: that one must be surer of what it does not show."""
    short, more = cell(4, in_system_last=15.5), long(20, True, **served(20))
    found = only([short, more])
    assert (found.tested[0].kept, found.tested[0].why, found.saturated_from) == (1, None, None)
    assert only([cell(4), long(20, True, in_system_last=15.5)]).saturated_from == 20


def test_a_closed_loop_whose_doubling_brings_nothing_is_saturated():
    loops = [cell(load, kind="concurrency", served=served) for load, served in ((4, 10), (8, 19), (16, 19.2))]
    assert only(loops, 1).saturated_from == 16


def test_rates_and_queues_of_thousands_are_plain_numbers():
    loops = [cell(load, kind="concurrency", served=served) for load, served in ((1024, 1500), (2048, 1510.4))]
    assert only(loops, 1).tested[1].why == "1510 requests/s, at 1024 users it was 1500"
    grown = cell(
        40, arrivals=9000, answered=2000, in_system_first=7, in_system_last=4321.0, in_system_mean=2000
    )
    assert next(queue_reasons(grown)) == "a queue builds: 7 requests in the system early, 4321 late"


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
        sizes[wanted.repeat] = wanted.probe.seconds
        kept = wanted.load.value <= 20.5
        measured = cell(wanted.load.value, repeat=wanted.repeat, within=1.0 if kept else 0.5)
        run.cells.append(changed(measured, cell=wanted.name, label="truth"))
    assert len({cell.cell for cell in run.cells}) == len(run.cells) < 20
    assert sizes == {0: pytest.approx(1.6), 1: 25}
    (found,) = capacity(run.cells, 1)
    assert found.kept_by_search[0] <= 20.5 < found.interval[2] < 1.1 * 20.5
    assert 0.9 * 20.5 <= found.value <= 0.955 * 578 / 29  # of what was served
    assert list(run._wanted(block)) == []
    last = run.cells.pop()
    assert next(run._wanted(block)).name == last.cell


def test_searches_on_a_server_that_stays_up_follow_one_another_and_end():
    limits = {"load.concurrency": [], "load.rate": [5, 40], "slo.e2e_ms.p95": 500}
    url = "openai=http://127.0.0.1:9"
    prepared = prepare(RunOptions("fixed-length", url, find_capacity=True, overrides=limits))
    assert [block.repeat for block in prepared.plan] == [0, 1, 2]
    run = Run(prepared, None, None, None)
    for block in prepared.plan:
        for wanted in run._wanted(block):
            assert wanted.name not in {one.cell for one in run.cells}
            kept = wanted.load.value <= 20.5
            measured = cell(wanted.load.value, repeat=wanted.repeat, within=1.0 if kept else 0.5)
            run.cells.append(changed(measured, cell=wanted.name, label="openai"))
    assert {one.repeat for one in run.cells} == {0, 1, 2, 3, 4, 5}
    assert only(run.cells).value <= 20.5
    assert run._remaining(prepared.plan) == []


def test_no_engine_is_started_for_a_search_that_has_ended(monkeypatch):
    limits = {"load.concurrency": [], "load.rate": [5, 40], "slo.e2e_ms.p95": 500}
    asked = RunOptions("fixed-length", "truth", launch="simulate", find_capacity=True, overrides=limits)
    manifest = SimpleNamespace(document=SimpleNamespace(stopping=None))
    run, begun = Run(prepare(asked), None, None, manifest), []

    def measure(lives, _stopping):
        begun.append(lives)
        for wanted in run._wanted(lives[0]):
            measured = cell(wanted.load.value, repeat=wanted.repeat, within=0.5)
            run.cells.append(changed(measured, cell=wanted.name, label="truth"))

    monkeypatch.setattr(run, "_measure_lives", measure)
    monkeypatch.setattr(run, "count_as_begun", lambda lives: None)
    monkeypatch.setattr(run, "_cool_down", lambda block: None)
    run._steps()
    assert [block.repeat for (block,) in begun] == [0, 1]
    assert [one.repeat for one in run.cells] == [0, 3, 1]


def test_the_answer_says_what_its_loads_are():
    assert only(three(8, 8, 7, kind="concurrency")).kind == "concurrency"
    found = only(three(19.4, 20.0, 20.0))
    assert (found.kind, found.label, found.searches, found.kept_short) == ("rate", "vllm", 3, 10)


def test_of_two_starts_the_lower_one_counts_in_a_closed_loop():
    cells = [
        long(value, value <= kept, search=search, of=2, kind="concurrency")
        for search, kept in enumerate((7, 8))
        for value in (kept, kept + 1)
    ]
    found = only(cells, searches=2)
    assert (found.value, found.kept_by_search) == (7, (7, 8))


def test_each_backend_has_its_own_answer():
    other = [changed(one, label="tgi") for one in three(12, 12, 12, kind="concurrency")]
    found = capacity([*three(8, 8, 8, kind="concurrency"), *other], 3)
    assert [(one.label, one.value) for one in found] == [("vllm", 8), ("tgi", 12)]


@pytest.mark.parametrize(
    ("answered", "failed", "chance", "kept"),
    [(566, 0, 2, True), (565, 0, 2, False), (565, 1, 2, True), (558, 0, 4, True), (557, 0, 4, False)],
)
def test_so_many_arrivals_may_be_left_unanswered(answered, failed, chance, kept):
    """1% of 580 is 5.8, and an error is √(2 × 8 + 1) = 4.12: two of it allow 14.0, four of it 22.3."""
    one = changed(cell(answered=answered), requests={"failed": failed})
    assert list(queue_reasons(one, chance)) == ([] if kept else [f"{answered} answers to 580 arrivals"])


@pytest.mark.parametrize(
    ("held", "first", "last", "chance", "kept"),
    [
        (8, 7, 13.1, 2, True),
        (8, 7, 13.2, 2, False),
        (8, 7, 15.4, 4, True),
        (8, 7, 15.5, 4, False),
        (200, 180, 223.8, 2, True),
        (200, 180, 223.9, 2, False),
    ],
)
def test_so_much_may_a_queue_grow(held, first, last, chance, kept):
    """1% of 580 arrivals over two thirds of them is 3.867.

    A request of 8 at once stays 8 × 29 / 580 = 0.4 s, and a third lasts 9.667 s: the error is
    √(16 × 0.8 / 9.667) = 1.151. One of 200 stays longer than half of a third: √400 = 20.
    """
    one = cell(in_system_mean=held, in_system_first=first, in_system_last=last)
    why = f"a queue builds: {first:.3g} requests in the system early, {last:.3g} late"
    assert list(queue_reasons(one, chance)) == ([] if kept else [why])


def test_a_closed_loop_has_no_queue():
    assert list(queue_reasons(cell(kind="concurrency"))) == []


def test_words_where_nothing_is_known():
    given = {"label": "a", "kind": "rate", "kept_by_search": [], "interval": [None, None, 1.0]}
    nothing = made(Capacity, given)
    assert words(nothing) == "a: not decided: nothing was measured"
    old = made(Capacity, {"label": "a", "kind": "concurrency", "interval": [None, None, None]})
    assert words(old) == "a: between ? and ? users, not confirmed by long probes: measure it again"


def test_the_sentence_names_every_limit_and_needs_one():
    (found,) = capacity(three(14.2, 15.0, 15.0), 3)
    limits = [
        made(Limit, metric="ttft_ms", share="p50", limit_ms=100.0),
        made(Limit, metric="e2e_ms", share="max", limit_ms=2500.0),
    ]
    within = "Within TTFT p50 ≤ 100 ms and E2E max ≤ 2500 ms, vllm serves about "
    assert sentence(found, limits, cell()).startswith(within)
    assert sentence(found, [], cell()) is None


def test_a_load_that_was_tried_twice_has_the_mean_of_its_figures():
    found = only([cell(20, repeat=0, served=19), cell(20, repeat=1, served=21, within=0.5)], searches=2)
    (tried,) = found.tested
    assert (tried.runs, tried.kept, tried.attainment, tried.requests_per_s) == (2, 1, 0.75, 20)
    silent = only([changed(cell(20), requests_per_s=None, slo=None)], searches=1)
    (tried,) = silent.tested
    assert (tried.kept, tried.attainment, tried.requests_per_s) == (0, None, None)
    assert (tried.why, silent.saturated_from) == ("a latency with a limit is not known", 20)
    assert only([changed(cell(20), requests_per_s=None)], 1).tested[0].why == "nothing was answered in time"


def test_an_engine_that_died_was_not_saturated():
    dead = changed(cell(20, reasons=[doubt("engine-died", "INVALID")]), requests_per_s=None, slo=None)
    found = only([cell(10), dead], searches=1)
    assert [(tried.kept, tried.saturated) for tried in found.tested] == [(1, False), (0, False)]
    assert found.tested[1].why.startswith("engine-died: ")
    assert found.saturated_from is None


def test_a_load_above_one_that_failed_is_not_kept():
    cells = [long(10, True, of=1), long(12, False, of=1), long(14, True, of=1)]
    assert only(cells, searches=1).kept_by_search == (10,)


def test_what_just_reaches_a_limit_keeps_it():
    """95% as measured in a short probe, and 0.8 × 30 s in a long one."""
    assert kept_limits(cell(within=0.95), short=True)
    assert kept_limits(cell(probed_s=24.0))
    assert why_not_kept(changed(cell(), slo=None), short=True) == ["a latency with a limit is not known"]
    assert why_not_kept(cell(within=0.95)) == []
    few = cell(of=10, within=0.9)  # one of ten may miss by chance
    assert kept_limits(few, short=True)
    assert why_not_kept(few) == ["e2e p95: 90% within the limit"]
    quiet = {"in_system_mean": 0.0, "in_system_first": 0.0, "in_system_last": 0.0}
    assert list(queue_reasons(cell(arrivals=0, answered=0, **quiet))) == []


@pytest.mark.parametrize(("kind", "holds"), [("concurrency", True), ("rate", False)])
def test_requests_that_miss_a_limit_at_every_load_bound_closed_loops_alone(kind, holds):
    """3% of them miss it at 2, 4 and 8 of the 48 users that a short probe found to be too many."""
    short = [cell(8, kind=kind, within=0.97, served=8), cell(48, kind=kind, within=0.5, served=40)]
    long = [cell(load, kind=kind, within=0.97, repeat=3, served=load) for load in (2, 4, 8)]
    assert (crossing(short, long).quantile(0.5) > 16) is holds
