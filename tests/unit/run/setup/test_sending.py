"""Loads that no clock runs for, and warm-up that no memory holds."""

import pytest

from harness.errors import SpecError
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.run.setup.sending import sending_s

TINY = [{"seconds": 0.001, "start": 1e-10, "end": 1e-10}]
NEVER = [{"seconds": 0.001, "start": 1e-300, "end": 1e-300}]
RARE = {"prompts.every_s": 1e5, "prompts.heavy_every_s": 1e5, "load.requests": 1_000_000}


def asked(scenario, given):
    return prepare(RunOptions(scenario, "truth", overrides=given, profile="cpu"))


def by_rate(rate, **more):
    return {"load.concurrency": [], "load.rate": [rate], **{f"load.{key}": more[key] for key in more}}


@pytest.mark.parametrize(
    ("scenario", "given", "where"),
    [
        ("fixed-length", by_rate(0.001, requests=10_000_000), "load.rate"),
        ("fixed-length", by_rate(0.001, requests=10_000_000, duration_s=60), "load.rate"),
        ("fixed-length", by_rate(1, profile=NEVER, repeat_profile=True), "load.rate"),
        ("fixed-length", by_rate(1, profile=TINY), "load.rate"),
        ("fixed-length", by_rate(1, profile=TINY, repeat_profile=True), "load.rate"),
        ("victim-probe", RARE, "load.replay_speed"),
    ],
)
def test_a_load_that_takes_more_than_a_year_is_refused(scenario, given, where):
    with pytest.raises(SpecError, match=r"requests at \S+ take more than (a year|292 years)") as caught:
        asked(scenario, given)
    assert caught.value.where == where


def test_a_load_that_its_duration_ends_may_be_planned_for_longer():
    assert asked("fixed-length", by_rate(0.001, requests=100_000, duration_s=60))


def test_a_search_is_judged_by_its_probes():
    slow = {**by_rate(0.001, requests=100_000), "slo.ttft_ms.p95": 500}
    with pytest.raises(SpecError, match=r"100,004 requests at 0\.001 take more than a year to send"):
        prepare(RunOptions("fixed-length", "truth", overrides=slow, find_capacity=True, profile="cpu"))


def test_prefixes_that_nobody_can_make_are_refused():
    with pytest.raises(SpecError, match="requests of warm-up, and 10,000,000 is the most") as caught:
        asked("kv-working-set", {"load.kv_tokens": 2**62})
    assert caught.value.where == "load.working_set"


@pytest.mark.parametrize(
    ("scenario", "count", "seconds"), [("victim-probe", 56, 96), ("trace", 120, 65.94), ("ramp", 80, 29.5)]
)
def test_what_has_times_of_its_own_has_a_length(scenario, count, seconds):
    made = asked(scenario, {})
    (point,) = {cell.load for block in made.plan for cell in block.cells}
    assert sending_s(made.scenario, point, count, made.source) == pytest.approx(seconds, abs=0.01)
