"""The rule that removes warm-up, on courses of known shape: what it cuts, and how seldom without cause."""

import numpy as np
import pytest

from harness.metrics.steady import Course, steady_state
from harness.record import Outcome, Phase
from tests.unit.made import records

CLOSED = {"kind": "concurrency", "value": 1}


def course(values):
    return Course("x", np.arange(len(values)), np.log(values))


def one_after_another(took_ms, outcomes=None):
    """A closed loop of one: each request sent when the one before has ended, in the middle a token."""
    rows, now = [], 0
    for index, took in enumerate(took_ms):
        rows.append({"intended": now, "texts": [now + took // 2, now + took]})
        if outcomes and index in outcomes:
            rows[-1]["outcome"] = Outcome.HTTP_ERROR
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
    tokens = Course("x", np.arange(len(made)), made / made.mean(), logarithmic=False)
    assert 1 < tokens.drift(0) < 4


def test_early_requests_become_warm_up():
    made = one_after_another([400] * 10 + [100, 104, 96] * 40)
    tagged, found = steady_state(made, CLOSED)
    assert found["state"] == "steady"
    assert found["removed"] == int((tagged.requests["phase"] == Phase.WARMUP).sum()) in range(9, 16)
    assert found["fixed_s"] == 0
    assert found["start_s"] == pytest.approx(4.0, abs=0.6)
    assert found["end_s"] < found["drained_s"]
    assert (made.requests["phase"] == Phase.MEASURE).all()


def test_nothing_is_removed_that_a_percentile_needs():
    """32 requests support a p90, 26 do not."""
    tagged, found = steady_state(one_after_another([400] * 6 + [100, 104] * 13), CLOSED)
    assert found["state"] == "ramp kept"
    assert found["why"].endswith("of 32 measured requests differ from the rest: too few would be left")
    assert found["removed"] == 0
    assert (tagged.requests["phase"] == Phase.MEASURE).all()


def test_a_failure_is_never_removed():
    _, found = steady_state(one_after_another([400] * 10 + [100, 104] * 60, outcomes={3}), CLOSED)
    assert found["state"] == "ramp kept"
    assert "some of them failed" in found["why"]


def test_a_queue_that_grows_is_not_steady():
    rows = [{"intended": 10 * i, "texts": [10 * i + 30 * i + 20, 10 * i + 30 * i + 40]} for i in range(100)]
    _, found = steady_state(records(*rows), {"kind": "rate", "value": 100.0})
    assert found["state"] == "not steady"


def test_a_load_that_changes_by_itself_is_not_tested():
    for load in ({"kind": "trace", "value": 1}, {"kind": "rate", "value": 1, "profile": [{"seconds": 1}]}):
        assert steady_state(one_after_another([10] * 20), load)[1]["state"] == "not tested"
    assert steady_state(records(), CLOSED)[1]["state"] == "unknown"
    assert steady_state(one_after_another([10] * 5), CLOSED)[1]["why"] == "too few requests to tell"


def test_a_batch_that_is_sent_at_once_has_no_steady_part():
    rows = [{"intended": 0, "texts": [100 * (index // 8 + 1), 100 * (index // 8 + 2)]} for index in range(48)]
    made = records(*rows)
    tagged, found = steady_state(made, {"kind": "concurrency", "value": 48})
    assert (found["state"], found["why"]) == ("not tested", "all requests are sent at once")
    assert (tagged.requests["phase"] == Phase.MEASURE).all()
