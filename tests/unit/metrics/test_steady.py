"""The rule that sees a ramp, on courses of known shape: where it ends, and how seldom without cause."""

from dataclasses import replace

import numpy as np
import pytest

from harness.metrics.steady import Course, steady_state
from harness.model import UNSET, CellResult
from harness.records.layout import Outcome, Phase
from harness.summary import view_of
from harness.validity.steady import ramp_warnings
from tests.bench.steadiness import stalling
from tests.factories.documents import changed, made
from tests.factories.recorded import facts, load, records, requested, summarise_cell

CLOSED = load("concurrency", 1)


def course(values):
    return Course("x", "X", np.arange(len(values)), np.log(values))


def one_after_another(took_ms):
    """A closed loop of one: each request sent when the one before has ended, in the middle a token."""
    rows, now = [], 0
    for took in took_ms:
        rows.append({"intended": now, "texts": [now + took // 2, now + took]})
        now += took
    return records(*rows)


def course_of(made, point, **about):
    return steady_state(view_of(made, facts(load=point, **about), None))


@pytest.mark.parametrize("batches", [8, 13, 20, 30, 40])
@pytest.mark.parametrize("spread", ["normal", "lognormal"])
def test_a_steady_course_is_doubted_in_less_than_one_of_two_hundred(spread, batches):
    random = np.random.default_rng(3)
    draw = {
        "normal": lambda: random.normal(100, 20, batches).clip(1),
        "lognormal": lambda: random.lognormal(0, 1, batches),
    }[spread]
    assert sum(course(draw()).find() is not None for _ in range(1000)) < 5


FLAT = np.ones(40)


def level(start, stop, factor, batches=40):
    values = np.ones(batches)
    values[start:stop] = factor
    return values


@pytest.mark.parametrize(
    ("factors", "text"),
    [
        (level(0, 6, 1.104), "ramp: X is higher by 10.4% from second 0 to "),
        (level(0, 6, 0.8), "ramp: X is lower by 20% from second 0 to "),
        (level(0, 12, 0.84), "ramp: X is lower by 16% from second 0 to "),  # too little for a step
        (level(25, 40, 1.203), "step: X is higher by 20.3% from second "),
        (level(0, 20, 1 / 1.3), "step: X is higher by 30% from second 0 on"),
        (level(1, 18, 1 / 1.3), "step: X is higher by 30% from second 0 on"),
    ],
)
def test_a_change_does_not_read_as_the_limit_that_it_exceeds(factors, text):
    made = course(factors)
    assert made.says(made.find()).startswith(text)


@pytest.mark.parametrize(
    ("batch_s", "text"),
    [(0.004, "from second 0 to 0.024"), (0.13, "from second 0 to 0.78"), (2, "from second 0 to 12.0")],
)
def test_the_times_of_a_short_cell_are_not_all_zero(batch_s, text):
    values = np.log(level(0, 6, 0.8))
    made = Course("x", "X", np.arange(len(values)) * int(batch_s * 1e9), values)
    assert made.says(made.find()).endswith(text)
    late = replace(made, starts_ns=made.starts_ns + 13_000)  # 13 µs: no `1.3e-05`
    assert late.says(late.find()).endswith(text)


@pytest.mark.parametrize(
    ("factors", "form", "change"),
    [
        (level(0, 6, 1.6), "ramp", 0.6),
        (level(0, 6, 0.6), "ramp", -0.4),
        (np.maximum(2 - np.arange(40) / 10, 1), "ramp", -0.5),
        (np.linspace(1, 1.4, 40), "drift", 0.4),
        (np.linspace(1, 0.6, 40), "drift", -0.4),
        (np.maximum(np.linspace(0.4, 1.6, 40), 1), "drift", 0.6),  # steady for a while first
        (level(27, 40, 1.5), "step", 0.5),
        (level(0, 20, 1.5), "ramp", 0.5),  # it warms up, and holds for the other half
        (level(0, 20, 0.7), "step", -0.3),  # it only becomes slower: no warm-up
        (level(0, 12, 0.7), "step", -0.3),
        (np.minimum(1 + np.arange(40) / 16, 2), "drift", 1),
        (level(10, 30, 1.5), "step", 0.5),  # and back: it lasted too long for a stall
        (level(20, 24, 3), "stall", 2),
    ],
)
def test_what_differs_is_named_by_its_shape(factors, form, change):
    random = np.random.default_rng(4)
    found = [course(factors * random.lognormal(0, 0.05, 40)).find() for _ in range(100)]
    assert sum(one is not None and one.form == form for one in found) >= 95
    assert np.median([one.change for one in found if one is not None]) == pytest.approx(change, rel=0.15)


def test_a_ramp_ends_where_it_ends():
    random = np.random.default_rng(4)
    found = [course(level(0, 6, 1.6) * random.lognormal(0, 0.1, 40)).find() for _ in range(100)]
    stops = [one.shape.stop for one in found if one is not None and one.form == "ramp"]
    assert sum(5 <= stop <= 10 for stop in stops) > 90
    assert np.median(stops) == 6


@pytest.mark.parametrize("place", [0, 1, 20, 38, 39])
def test_one_odd_batch_has_no_shape(place):
    for batches in (FLAT, np.random.default_rng(1).lognormal(0, 0.05, 40)):
        values = batches.copy()
        values[place] *= 20
        assert course(values).find() is None


@pytest.mark.parametrize(
    ("places", "form"),
    [
        ([(0, 2, 2), (20, 21, 4)], "stall"),  # the second is as long, but inside one batch
        ([(20, 21, 4), (38, 40, 2)], "stall"),  # the last is no step
        ([(0, 2, 2)], "ramp"),
        ([(0, 2, 2), (20, 21, 1)], "ramp"),
        ([(38, 40, 2)], "step"),
    ],
)
def test_what_comes_again_is_no_property_of_the_start_or_the_end(places, form):
    random = np.random.default_rng(6)
    for _ in range(20):
        values = random.lognormal(0, 0.02, 40)
        for start, stop, more in places:
            values[start:stop] += more
        assert course(values).find().form == form


def test_a_ramp_with_a_hiccup_later_is_a_ramp():
    values = level(0, 6, 1.6) * np.random.default_rng(6).lognormal(0, 0.02, 40)
    values[25] *= 20
    assert course(values).find().form == "ramp"


def test_a_server_that_stalls_every_few_seconds_has_no_ramp():
    """0.9 s every 5 s, answers of 250 ms."""
    random, draw = np.random.default_rng(1), stalling(0.9, 5.0, 160)
    found = [course(draw(random)).find() for _ in range(300)]
    assert sum(one is not None and one.form != "stall" for one in found) <= 6
    assert any(one is not None and one.form == "stall" and one.shape.start == 0 for one in found)


def test_what_is_small_is_nothing_however_plain():
    assert course(level(0, 10, 1.09)).find() is None
    assert course(level(0, 10, 1.11)).find().form == "ramp"
    assert course(np.linspace(1, 1.19, 40)).find() is None
    assert course(np.linspace(1, 1.22, 40)).find().form == "drift"


def test_noise_that_lasts_is_no_shape_of_its_own():
    """Batches that keep 0.6 of the deviation of the one before: of independent noise nothing else is left."""
    random, doubted = np.random.default_rng(5), 0
    for _ in range(300):
        away = random.standard_normal(40)
        for batch in range(1, 40):
            away[batch] = 0.6 * away[batch - 1] + 0.8 * away[batch]
        doubted += course(np.exp(0.1 * away)).find() is not None
    assert doubted < 12


def test_a_few_values_have_no_course():
    assert course(np.array([100.0] * 3 + [1.0] * 4)).find() is None
    assert course(np.ones(8)).find() is None


def test_stretches_without_output_are_no_thousandfold_change():
    """Half a cell of long prompts, then bursts of answers: what was seen of llama.cpp on two cores."""
    made = np.array(
        [0, 0, 1, 0] * 5 + [0, 0, 72, 80, 72, 27, 3, 0, 56, 72, 48, 56, 21, 3, 8, 64, 64, 64, 53, 3.0]
    )
    tokens = Course("x", "X", np.arange(len(made)), made / made.mean(), logarithmic=False)
    found = tokens.find()
    assert found is None or abs(found.change) < 4


def test_a_ramp_is_told_and_kept():
    made = one_after_another([400] * 10 + [100, 104, 96] * 40)
    found = course_of(made, CLOSED)
    assert found.state == "ramp kept"
    assert found.ramp_requests in range(9, 16)
    first = f"the first {found.ramp_requests} of 130 measured requests differ from the rest"
    assert found.why.startswith(f"{first}: ramp: E2E is higher by ")
    assert found.shapes == {"e2e_ms": "ramp", "output_events_per_s": "ramp"}
    assert found.removed == 0
    assert found.fixed_s == 0
    assert found.start_s == pytest.approx(4.0, abs=0.6)
    assert found.end_s < found.drained_s


def test_warm_up_stands_in_for_users_who_hang_up_as_well():
    """Nobody hangs up in a warm-up, so one of as many requests is over no earlier."""
    every = one_after_another([400] * 20 + [100, 104, 96] * 40)
    every.requests["phase"][::2] = Phase.IMPATIENT
    found = course_of(every, CLOSED)
    assert found.ramp_requests in range(18, 30)
    assert found.why.startswith(f"the first {found.ramp_requests} of 140 measured requests differ")


def test_a_wave_and_a_half_of_users_half_of_whom_hang_up_is_not_sent_at_once():
    rows = [{"intended": 100 * (i // 8), "texts": [100 * (i // 8) + 90]} for i in range(12)]
    every = records(*rows)
    every.requests["phase"][::2] = Phase.IMPATIENT
    assert course_of(every, load("concurrency", 8)).why == "too few requests to tell"
    every.requests["phase"] = Phase.IMPATIENT
    assert course_of(every, load("concurrency", 8)).why == "no measured request was sent"


def test_a_slow_first_answer_after_a_start_is_no_doubt():
    """Five answers of 32 texts each within 400 ms, the first of them 1,600 ms later."""
    sent = [0, *range(2000, 3600, 400)]
    rows = [
        {"intended": at, "texts": [until + 12 * i for i in range(1, 33)]}
        for at, until in zip(sent, [1600, *sent[1:]], strict=True)
    ]
    first = records(*rows)
    assert course_of(first, CLOSED).state == "ramp kept"
    found = course_of(first, CLOSED, after_start=True)
    assert (found.state, found.why) == ("not tested", "the first requests after a start are what is measured")
    several = course_of(one_after_another([100] * 10), load("concurrency", 2), after_start=True)
    assert several.state == "steady"


def test_a_slow_beginning_of_one_user_is_a_doubt_where_nothing_was_started_for_it():
    """As of `offline-batch --concurrency 1`: it has no warm-up, and its requests come as they are."""
    made = one_after_another([400] * 20 + [100, 104, 96] * 40)
    together = load("concurrency", 1, start_declared="together")
    assert course_of(made, together).state == "ramp kept"


def test_an_output_that_grows_drifts_by_its_share_of_the_mean():
    """From 5 s on answers of 100 ms, the first of 10 texts, each of one more than that before."""
    starts = range(5000, 9100, 100)
    rows = [
        {"intended": start, "texts": np.linspace(start, start + 99, 10 + i).astype(int).tolist()}
        for i, start in enumerate(starts)
    ]
    found = course_of(records(*rows), CLOSED)
    mean = (10 + 49) / 2  # of the 40 before the last send
    assert found.drift == {"e2e_ms": None, "output_events_per_s": pytest.approx(39 / mean)}
    assert (found.state, found.why) == (
        "not steady",
        f"drift: output in events/s rises by {100 * 39 / mean:.0f}% of the mean from second 5.0 on",
    )
    assert found.shapes == {"e2e_ms": None, "output_events_per_s": "drift"}
    assert (found.fixed_s, found.end_s, found.drained_s) == (5, 9, 9.099)
    assert (found.start_s, found.ramp_requests) == (5, 0)


def test_first_requests_that_fail_are_no_ramp():
    made = one_after_another([100] * 60)
    made.requests["outcome"][:3] = Outcome.HTTP_ERROR
    found = course_of(made, CLOSED)
    assert (found.state, set(found.cuts.values())) == ("steady", {0})
    assert (found.start_s, found.ramp_requests) == (0, 0)


def test_a_server_that_stays_slower_from_some_time_on_is_not_steady():
    found = course_of(one_after_another([100, 104, 96] * 25 + [150, 156, 144] * 15), CLOSED)
    assert found.state == "not steady"
    assert found.why.startswith("step: E2E is higher by 50% from second ")
    assert found.drift["e2e_ms"] == pytest.approx(0.5, rel=0.05)


def steady(state, ramp=0, **changes):
    why = f"the first {ramp} of 40 measured requests differ from the rest" if ramp else None
    return {"state": state, "why": why, "ramp_requests": ramp, "cold_misses": False, **changes}


def cell(name, steady_state, value=8):
    point = {"kind": "concurrency", "value": value}
    return made(CellResult, cell=name, load=point, requests={"warmup": 8}, steady_state=steady_state)


def test_a_ramp_is_warned_of_once_per_load_with_the_warm_up_that_all_cells_need():
    cells = [
        cell("000-a-c8-r0", steady("ramp kept", 4)),
        cell("001-b-c8-r0", steady("steady")),
        cell("002-a-c8-r1", steady("ramp kept", 12)),
        cell("003-a-c32-r0", steady("ramp kept", 20, cold_misses=True), 32),
    ]
    at_8, at_32 = ramp_warnings(cells)
    assert at_8.text.startswith("002-a-c8-r1: the first 12 of 40 measured requests differ")
    assert at_8.hint.endswith("--set load.warmup_requests=20")
    assert "fill the empty cache" in at_32.hint


def test_the_warm_up_that_a_cell_is_advised_has_the_one_that_it_had():
    made = one_after_another([400] * 18 + [100, 104, 96] * 40)
    made.requests["phase"][:8] = Phase.WARMUP
    result = summarise_cell(made, facts(planned=138), None)
    assert result.steady_state.ramp_requests == 12  # found to a part of the load
    (reason,) = [reason for reason in result.validity.reasons if reason.code == "ramp-kept"]
    assert reason.change == {"--set load.warmup_requests": 20}


def test_recorded_sessions_are_not_advised_a_warm_up_that_they_do_not_take():
    counts = {"ended": 9, "failed": 0, "cut": 0}
    replayed = changed(cell("000-a-c8-r0", steady("ramp kept", 4)), sessions=counts)
    (warning,) = ramp_warnings([replayed])
    assert warning.hint == "recorded sessions have no warm-up: with more of them the start weighs less"


def test_two_cells_of_a_pair_keep_the_same_requests():
    """One with a ramp, one without: both have figures of all 130."""
    for took in ([400] * 10 + [100, 104, 96] * 40, [100, 104] * 65):
        summary = summarise_cell(one_after_another(took), facts(planned=130), None)
        assert summary.requests.ok == summary.requests.planned == 130
        assert summary.requests.warmup == 0


def test_the_misses_of_a_cold_cache_are_no_doubt():
    made = one_after_another([400] * 10 + [100, 104, 96] * 40)
    for ideal, expected in ((0.0, {"ramp-kept"}), (0.5, set())):
        about = facts(planned=130, workload__ideal_hit_rate=ideal, workload__output_tokens=2)
        summary = summarise_cell(made, about, None)
        assert summary.steady_state.state == "ramp kept"
        reasons = {reason.code: reason.measured for reason in summary.validity.reasons}
        assert reasons == dict.fromkeys(expected, summary.steady_state.why)


def test_a_queue_that_grows_is_not_steady():
    rows = [{"intended": 10 * i, "texts": [10 * i + 30 * i + 20, 10 * i + 30 * i + 40]} for i in range(100)]
    made, offered = records(*rows), load("rate", 100.0)
    found = course_of(made, offered)
    assert found.state == "not steady"
    assert found.why.startswith("drift: E2E rises by "), "as tables call it, not by its key"
    assert "e2e_ms" in found.drift
    summary = summarise_cell(made, facts(load=offered, planned=100), None)
    reasons = {reason.code: reason for reason in summary.validity.reasons}
    assert reasons["not-steady"].measured == found.why
    assert reasons["not-steady"].hint.endswith("lower the rate")


def test_a_queue_that_grows_is_not_advised_a_warm_up_since_it_has_no_steady_part():
    """One slot of 20 ms, a request every 18 ms, the first 60 every 10: answers take longer, more slowly."""
    due = [18 * i - 8 * min(i, 60) for i in range(300)]
    rows = [{"intended": at, "texts": [20 * i + 10, 20 * i + 20]} for i, at in enumerate(due)]
    result = summarise_cell(records(*rows), facts(load=load("rate", 55.0), planned=300), None)
    assert (result.state, result.steady_state.state) == ("unstable", "ramp kept")
    (reason,) = [reason for reason in result.validity.reasons if reason.code == "ramp-kept"]
    assert reason.hint.endswith("lower the rate")
    assert reason.requests_needed is UNSET
    (warning,) = ramp_warnings([result])
    assert warning.hint == reason.hint


def test_the_warm_up_of_a_load_is_that_of_backends_that_keep_up():
    behind, ramp = cell("000-a-r8-r0", steady("ramp kept", 20)), cell("001-b-r8-r0", steady("ramp kept", 4))
    (warning,) = ramp_warnings([changed(behind, state="unstable"), ramp])
    assert warning.hint.endswith("--set load.warmup_requests=12")


def test_what_was_sent_while_slots_waited_to_begin_is_a_ramp_however_little_it_shows():
    made = one_after_another([100, 104, 96] * 10)
    spread = course_of(made, CLOSED, client__spread_over_ms=(made.requests["sent_ns"][5] + 1) / 1e6)
    assert (spread.state, spread.ramp_requests) == ("ramp kept", 6)
    assert spread.why == "6 measured requests were sent before the slots had begun one after another"
    assert spread.start_s == pytest.approx(made.requests["sent_ns"][5] / 1e9)
    left = course_of(made, CLOSED, client__spread_over_ms=made.requests["sent_ns"][0] / 1e6)
    assert (left.state, left.ramp_requests) == ("steady", 0)


def test_a_few_requests_that_were_sent_while_slots_waited_to_begin_are_no_ramp():
    """One of 30 has no shape; a server that stalls in its first answers makes the slots wait so long."""
    made = one_after_another([100, 104, 96] * 10)
    spread = course_of(made, CLOSED, client__spread_over_ms=(made.requests["sent_ns"][0] + 1) / 1e6)
    assert (spread.state, spread.ramp_requests) == ("steady", 0)


def test_slots_with_nothing_left_to_send_are_no_drift():
    """Eight slots whose answers take as long as there are in flight: the last ones are quicker."""
    rows = [{"intended": 10 * i, "texts": [10 * i + 40, 10 * i + 80]} for i in range(24)]
    rows += [{"intended": 240 + 10 * i, "texts": [260 + 10 * i, 320 + 5 * i]} for i in range(8)]
    made = records(*rows)
    found = course_of(made, load("concurrency", 8))
    assert found.shapes["e2e_ms"] is None
    assert course_of(made, load("concurrency", 1)).shapes["e2e_ms"] is not None


def in_turn(worker, slots, took_ms):
    """Requests of a load worker: each of its slots begins 5 ms after the one before it."""
    starts = np.cumsum([0, *took_ms[:-1]])
    return [
        {"intended": at + 5 * slot, "texts": [at + 5 * slot + took // 2, at + 5 * slot + took]}
        for slot in range(slots)
        for at, took in zip(starts, took_ms, strict=True)
    ], [worker] * slots * len(took_ms)


def test_a_load_worker_with_nothing_left_to_send_is_no_step():
    """Two workers of four slots each. One ends first, and then the answers of the other are quicker."""
    first, second = in_turn(0, 4, [60] * 20), in_turn(1, 4, [90] * 14 + [45] * 12)
    made = records(*first[0], *second[0])
    made.requests["worker"] = first[1] + second[1]
    found = course_of(made, load("concurrency", 8))
    assert (found.state, found.why) == ("steady", None)
    made.requests["worker"] = 0
    assert course_of(made, load("concurrency", 8)).state == "not steady"


def test_the_last_user_who_thinks_is_no_step():
    """Four users who think 40 ms between answers of 60 ms; the last thinks half a second before he ends."""
    sent = [100 * turn + 25 * user for turn in range(30) for user in range(4)]
    sent[-1] += 500
    rows = [{"intended": at, "texts": list(range(at + 5, at + 61, 5))} for at in sent]
    found = course_of(records(*rows), load("concurrency", 4))
    assert (found.state, found.why) == ("steady", None)


def test_a_load_worker_that_could_send_nothing_leaves_no_slot_empty():
    sending, workers = in_turn(0, 4, [60] * 20)
    made = records(*sending, *[{"sent": None, "outcome": Outcome.CONNECT_FAILED}] * 20)
    made.requests["worker"] = workers + [1] * 20
    made.requests["end_ns"][-20:] = 5_000_000
    assert course_of(made, load("concurrency", 8)).state == "steady"


@pytest.mark.parametrize(
    ("answers", "point", "state", "why"),
    [
        (0, CLOSED, "unknown", "no measured request was sent"),
        (7, CLOSED, "unknown", "too few requests to tell"),  # eight batches are a course
        (8, CLOSED, "steady", None),
        (9, load("concurrency", 2), "unknown", "too few requests to tell"),  # less the last of each slot
        (10, load("concurrency", 2), "steady", None),
        (63, load("rate", 10.0), "unknown", "too few requests to tell"),  # eight answers a batch
        (64, load("rate", 10.0), "steady", None),
        (4, load("concurrency", 4), "not tested", "all requests are sent at once"),
        (40, load("trace", 1.0), "not tested", "the load itself changes over time"),
        (40, load("rate", 1, profile=[{"seconds": 1}]), "not tested", "the load itself changes over time"),
    ],
)
def test_what_has_no_course_to_look_at_says_so(answers, point, state, why):
    found = course_of(one_after_another([100] * answers), point)
    assert (found.state, found.why) == (state, why)


@pytest.mark.parametrize(("chats", "state"), [(7, "unknown"), (8, "steady")])
def test_a_batch_has_whole_chats(chats, state):
    asked = requested(*(("", {"session": i // 4, "turn": i % 4}) for i in range(4 * chats)))
    cell = view_of(one_after_another([100] * 4 * chats), facts(), asked)
    assert steady_state(cell).state == state
