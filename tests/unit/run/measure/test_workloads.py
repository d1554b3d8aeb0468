"""Requests of a run, by load point."""

import resource
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.errors import SpecError
from harness.plan import Cell, load_points, prefixes, warmup_requests
from harness.run.measure.workloads import Workloads
from harness.spec.scenario import load_scenario


@pytest.mark.parametrize("order", ["cyclic", "drawn"])
def test_every_prefix_of_a_working_set_comes_before_the_measured_part(order):
    drawn = {"prompts.zipf_exponent": 1.0} if order == "drawn" else {}
    asked = {"prompts.order": order, "load.kv_tokens": 2048, "load.working_set": [0.5, 4], **drawn}
    scenario = load_scenario("kv-working-set", asked)
    made = Workloads(scenario, 1, 0, None)
    for point in load_points(scenario.load):
        groups = [shared[0].id for shared in made.of(Cell("", 0, point, 0)).requested.shared]
        count, warmup = prefixes(scenario, point), warmup_requests(scenario, point)
        assert sorted(groups[:count]) == list(range(count))
        assert set(groups[warmup:]) <= set(groups[:warmup])
        if order == "drawn":  # what a cache holds best at the end of the cycle is asked for most
            assert groups[count - 1] == 0
            assert groups[count:].count(0) >= groups[count:].count(count - 1)


@pytest.mark.parametrize(
    ("scenario", "refused"), [("rag", True), ("few-shot", False), ("shared-prefix", False)]
)
def test_a_warm_cache_that_would_hold_most_prompts_is_refused(scenario, refused):
    """Of the documents of `rag` hardly two prompts have the same in one order: priming all is `primed`."""
    warm = load_scenario(scenario, {"cache.state": "warm", "load.concurrency": [1]})
    says = r"^cache\.state: \d+ of \d+ prompts begin as none before them"
    with pytest.raises(SpecError, match=says) if refused else nullcontext():
        Workloads(warm, 1, 0, None)
    Workloads(load_scenario(scenario, {"cache.state": "primed"}), 1, 0, None)


@pytest.mark.parametrize(
    ("key", "metric", "hint"),
    [
        ("verdict.primary", "by_kind.nope.ttft_ms.p50", "known: by_turn.1, by_turn.2"),
        ("verdict.primary", "by_kind..ttft_ms.p50", "known: by_turn.1, by_turn.2"),
        ("verdict.metrics", ["by_turn.3.ttft_ms.p50"], "did you mean 'by_turn.2'?"),
    ],
)
def test_a_verdict_on_a_class_that_no_request_is_of_is_an_error(key, metric, hint):
    small = {"load.requests": 8, "load.warmup_requests": 0}
    with pytest.raises(SpecError, match="the requests give no figures of 'by_") as raised:
        Workloads(load_scenario("shared-prefix", {**small, key: metric}), 1, 0, None)
    assert hint in raised.value.hint
    for fine in (["by_turn.2.ttft_ms.p50"], ["by_turn.*.ttft_ms.p50", "by_kind.*.ttft_ms.p50"]):
        Workloads(load_scenario("shared-prefix", {**small, "verdict.metrics": fine}), 1, 0, None)


def test_few_requests_of_which_none_is_of_a_declared_class_are_to_be_more():
    few = load_scenario("context-depth", {"load.requests": 1, "load.warmup_requests": 0})
    with pytest.raises(SpecError, match="the requests give no figures of 'by_kind") as raised:
        Workloads(few, 1, 0, None)
    assert raised.value.hint.startswith("more --requests")
    other = {"verdict.primary": "ttft_ms.p50", "verdict.metrics": ["by_kind.512.ttft_ms.p50"]}
    rare = load_scenario("context-depth", {"load.requests": 1, "load.warmup_requests": 0, **other})
    Workloads(rare, 1, 0, None)


def test_any_number_of_repeats_fits_into_the_open_files_that_the_system_allows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    scenario = load_scenario("fixed-length", {"load.requests": 1, "load.warmup_requests": 0})
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 40, hard))
    try:
        made = Workloads(scenario, 60, 0, None)
        cells = [Cell("", 0, point, repeat) for point in load_points(scenario.load) for repeat in range(60)]
        assert len({made.of(cell).sha256 for cell in cells}) == 120
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
