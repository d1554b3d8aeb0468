"""The rule that sees a ramp, on courses of known shape: where it ends, and how seldom without cause."""

import numpy as np
import pytest

from harness.metrics.steady import Course, steady_state
from harness.model import CellResult
from harness.summary import summarise_cell
from harness.validity.steady import ramp_warnings
from tests.factories.documents import made
from tests.factories.recorded import facts, load, records

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


@pytest.mark.parametrize("spread", ["normal", "lognormal"])
def test_a_steady_course_is_cut_in_less_than_two_of_a_hundred(spread):
    random = np.random.default_rng(3)
    draw = {
        "normal": lambda: random.normal(100, 20, 40).clip(1),
        "lognormal": lambda: random.lognormal(0, 1, 40),
    }[spread]
    courses = [course(draw()) for _ in range(500)]
    assert sum(made.cut() > 0 for made in courses) < 10
    assert sum(made.drift(0) is not None for made in courses) < 10


def test_a_ramp_is_cut_where_it_ends():
    random = np.random.default_rng(4)
    cuts = []
    for _ in range(200):
        values = random.normal(100, 10, 40)
        values[:6] += 60
        cuts.append(course(values).cut())
    assert np.mean([5 <= cut <= 10 for cut in cuts]) > 0.9
    assert np.median(cuts) == 6


def test_a_few_values_have_no_course():
    assert course(np.array([100.0] + [1.0] * 8)).cut() == 0


def test_stretches_without_output_are_no_thousandfold_change():
    """Half a cell of long prompts, then bursts of answers: what was seen of llama.cpp on two cores."""
    made = np.array(
        [0, 0, 1, 0] * 5 + [0, 0, 72, 80, 72, 27, 3, 0, 56, 72, 48, 56, 21, 3, 8, 64, 64, 64, 53, 3.0]
    )
    tokens = Course("x", "X", np.arange(len(made)), made / made.mean(), logarithmic=False)
    assert 1 < tokens.drift(0) < 4


def test_a_ramp_is_told_and_kept():
    made = one_after_another([400] * 10 + [100, 104, 96] * 40)
    found = steady_state(made, CLOSED)
    assert found.state == "ramp kept"
    assert found.ramp_requests in range(9, 16)
    assert found.why == f"the first {found.ramp_requests} of 130 measured requests differ from the rest"
    assert found.removed == 0
    assert found.fixed_s == 0
    assert found.start_s == pytest.approx(4.0, abs=0.6)
    assert found.end_s < found.drained_s


def test_an_output_that_grows_drifts_by_its_share_of_the_mean():
    """From 5 s on answers of 100 ms, the first of 10 texts, each of one more than that before."""
    starts = range(5000, 9100, 100)
    rows = [
        {"intended": start, "texts": np.linspace(start, start + 99, 10 + i).astype(int).tolist()}
        for i, start in enumerate(starts)
    ]
    found = steady_state(records(*rows), CLOSED)
    cut = found.cuts["output_events_per_s"]
    mean = (10 + 49) / 2  # of the 40 before the last send
    assert found.drift == {"e2e_ms": None, "output_events_per_s": pytest.approx((39 - cut) / mean)}
    assert (found.state, found.why) == (
        "not steady",
        f"output in events/s changes by +{(39 - cut) / mean:.0%} over it",
    )
    assert (found.fixed_s, found.end_s, found.drained_s) == (5, 9, 9.099)
    assert (found.start_s, found.ramp_requests) == (5 + cut / 10, cut)


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
        assert {reason.code for reason in summary.validity.reasons} == expected


def test_a_queue_that_grows_is_not_steady():
    rows = [{"intended": 10 * i, "texts": [10 * i + 30 * i + 20, 10 * i + 30 * i + 40]} for i in range(100)]
    made, offered = records(*rows), load("rate", 100.0)
    found = steady_state(made, offered)
    assert found.state == "not steady"
    assert found.why.startswith("E2E changes by +"), "as tables call it, not by its key"
    assert "e2e_ms" in found.drift
    summary = summarise_cell(made, facts(load=offered, planned=100), None)
    reasons = {reason.code: reason for reason in summary.validity.reasons}
    assert reasons["not-steady"].measured == found.why


def test_a_load_that_changes_by_itself_is_not_tested():
    for changing in (load("trace", 1), load("rate", 1, profile=[{"seconds": 1}])):
        assert steady_state(one_after_another([10] * 20), changing).state == "not tested"
    assert steady_state(records(), CLOSED).state == "unknown"
    assert steady_state(one_after_another([10] * 5), CLOSED).why == "too few requests to tell"


def test_a_batch_that_is_sent_at_once_has_no_steady_part():
    rows = [{"intended": 0, "texts": [100 * (index // 8 + 1), 100 * (index // 8 + 2)]} for index in range(48)]
    made = records(*rows)
    found = steady_state(made, load("concurrency", 48))
    assert (found.state, found.why) == ("not tested", "all requests are sent at once")
