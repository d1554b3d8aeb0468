"""Slots of a closed loop that send together, on send times of known shape."""

from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from harness.metrics.lockstep import synchrony
from harness.metrics.view import RequestView
from harness.model import Imported, Summary
from harness.records.layout import Outcome, empty_requests
from harness.report.findings.notes import notes
from harness.validity import Evidence, judge
from tests.factories import documents
from tests.factories.recorded import facts, load, records, summarise_cell, view_of

NS = 1_000_000_000
LATE_S = 0.02  # of sends within a burst, of a period of 1 s


@cache
def answered(count):
    requests = empty_requests(count)
    requests["outcome"] = Outcome.OK
    return requests


def of(sends_s, slots):
    requests = answered(len(sends_s)).copy()
    requests["sent_ns"] = np.round(np.sort(sends_s) * NS)
    return synchrony(view_of(requests), load("concurrency", slots))[0]


def bursts(slots, waves, groups, seed=1):
    random = np.random.default_rng(seed)
    places = np.arange(slots) % groups / groups
    return (np.arange(waves)[:, None] + places + random.uniform(0, LATE_S, (waves, slots))).ravel()


@pytest.mark.parametrize("slots", [3, 8, 32, 256])
@pytest.mark.parametrize("waves", [4, 10])
def test_lockstep_is_1_and_a_spread_is_0(slots, waves):
    together = of(bursts(slots, waves, 1), slots)
    assert together.index > 0.97
    assert together.in_bursts
    assert (together.groups, together.burst, together.waves) == (1, slots, waves - 1)
    even = of(np.arange(slots * waves) / slots, slots)
    assert even.index == pytest.approx(0, abs=1e-6)
    assert not even.in_bursts


@pytest.mark.parametrize("skipped", [1, 3, 7])
def test_lockstep_is_seen_wherever_the_measured_part_begins(skipped):
    found = of(bursts(8, 5, 1)[skipped:], 8)
    assert found.index > 0.95


def test_two_groups_cancel_in_the_first_harmonic_and_show_in_the_second():
    found = of(bursts(8, 5, 2), 8)
    assert found.in_bursts
    assert (found.groups, found.burst) == (2, 4)
    assert not of(bursts(2, 40, 2), 2).in_bursts  # two slots that alternate are evenly spread


@pytest.mark.parametrize(("slots", "waves"), [(4, 3), (8, 2), (8, 20), (64, 2)])
def test_random_sends_are_no_lockstep_in_99_of_100(slots, waves):
    random = np.random.default_rng(7)
    made = [of(np.cumsum(random.exponential(1, slots * waves + 1)), slots) for _ in range(1000)]
    assert sum(found.in_bursts for found in made) <= 10
    assert np.mean([found.index**2 for found in made]) < 2 / (slots - 1)


# Seconds at which SGLang 0.5.23 on two cores was sent the last requests of a closed loop of two. Each answer
# has 32 tokens; half a period apart at first, they came to end in the same step.
JOINED = """57.85 58.52 62.77 63.28 66.63 67.20 70.42 70.87 73.93 74.43 77.69 77.78 81.32 81.34 85.13 85.30
88.71 88.86 92.22 92.29 95.85"""


def test_two_that_continuous_batching_joined_are_no_burst():
    found = of(np.array(JOINED.split(), float), 2)
    assert found.index > 0.85
    assert (found.limit, found.in_bursts) == (1, False)


@pytest.mark.parametrize("slots", [3, 4, 8])
def test_one_pair_in_step_is_no_burst_and_all_in_step_are(slots):
    """With the jitter of the real pair; the others are spread evenly over the period."""
    apart = np.arange(1, slots - 1) / (slots - 1)
    places = np.concatenate([[0, 0], apart])
    random = np.random.default_rng(3)
    one_pair = (np.arange(200)[:, None] + places + random.uniform(0, LATE_S, (200, slots))).ravel()
    assert not of(one_pair, slots).in_bursts
    assert of(bursts(slots, 200, 1), slots).in_bursts


def test_where_there_is_nothing_to_tell():
    def why(count, kind, value):
        requests = empty_requests(count)
        requests["sent_ns"] = np.arange(count)
        requests["outcome"] = Outcome.OK
        return synchrony(view_of(requests), load(kind, value))[1]

    assert why(20, "rate", 8.0) == "an open loop has no slots"
    assert why(20, "concurrency", 1) == "one slot cannot be in lockstep"
    assert why(16, "concurrency", 8) == "16 requests; 17 are needed for 2 waves"
    assert "too few to tell" in why(7, "concurrency", 2)


def batches(start):
    """Four waves of eight, every answer as long as the next one."""
    rows = [
        {"intended": 1000 * wave + slot, "texts": [1000 * wave + 200 + slot, 1000 * wave + 990]}
        for wave in range(4)
        for slot in range(8)
    ]
    declared = load("concurrency", 8, start_declared=start)
    return records(*rows), facts(load=declared, planned=32, workload__output_tokens=2)


def test_bursts_are_a_doubt_unless_the_scenario_declares_them():
    """As the published cells of eight in flight: three or four static batches."""
    made, about = batches("spread")
    (reason,) = judge(Evidence(RequestView(made), about)).reasons
    assert (reason.code, reason.verdict) == ("lockstep", "SUSPECT")
    assert reason.measured == "synchrony 1.00: sends come in bursts of about 8"
    assert reason.limit == f"{synchrony(RequestView(made), about.load)[0].limit:.2f}"

    made, about = batches("together")
    summary = summarise_cell(made, about, None)
    assert summary.validity.verdict == "VALID"
    assert summary.synchrony.burst == 8
    said = [note.text for note in notes(documents.made(Summary, state="complete", cells=[summary]))]
    assert 'bursts of 8, as declared (start = "together"): x c8 r0' in said


MORE_SPREAD = "spread the answers: --set prompts.output_spread=0.35"


@pytest.mark.parametrize(
    ("spread", "advice"),
    [(None, ""), (0.35, ""), *((least, f", or {MORE_SPREAD}") for least in (0.0, 0.1))],
)
def test_no_spread_is_advised_to_prompts_that_have_none(spread, advice):
    """`bench run` refuses the key for shared-prefix. Nor is a spread that was there advised again."""
    made, about = batches("spread")
    about = replace(about, workload=replace(about.workload, output_spread=spread))
    reasons = judge(Evidence(RequestView(made), about)).reasons
    (hint,) = (reason.hint for reason in reasons if reason.code == "lockstep")
    assert hint == f"declare the burst (--set load.start=together){advice}"


def test_bursts_in_the_file_of_another_tool_are_no_reason_to_change_a_scenario():
    made, about = batches("spread")
    file = documents.made(Imported, tool="x", level="records", facts=["times", "load"])
    reasons = judge(Evidence(RequestView(made), replace(about, imported=file))).reasons
    (hint,) = (reason.hint for reason in reasons if reason.code == "lockstep")
    spread = "slots start spread, and output lengths that differ keep them so ([prompts] output_spread)"
    assert hint == f"with `bench run`: {spread}"
