"""Real vLLM and llama.cpp: they count what we count, cell after cell, and are seen at work."""

import json

import numpy as np
import pytest

from harness.metrics.window import measured_window
from harness.records.layout import Outcome
from tests.engines.runs import VLLM, bench_run

BACKENDS = (VLLM, "llamacpp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two cells in one life of each engine: what it counted before must not count again."""
    small = ("--repeats", "1", "--concurrency", "1,3", "--requests", "12", "--output-tokens", "8")
    quiet = ("--engine-set", "threads=1", "--no-agreement", "--json")
    return bench_run(tmp_path_factory.mktemp("run"), "shared-prefix", BACKENDS, *small, *quiet)[0]


@pytest.fixture(scope="module")
def summary(folder):
    return folder.read_json("summary.json")


def test_the_engines_counters_are_our_counts_on_every_cell(folder, summary):
    assert len(summary["cells"]) == 4
    for cell in summary["cells"]:
        records, facts = folder.read_cell(cell["cell"])
        rows = records.requests
        assert (rows["outcome"] == Outcome.OK).all()
        counted = facts.server_counters
        for ours, theirs in (
            ("prompt_tokens", "prompt_tokens"),
            ("output_tokens", "output_tokens"),
            ("cached_tokens", "cached_prompt_tokens"),
        ):
            assert int(np.sum(rows[ours])) == counted[theirs], (cell["cell"], ours)
        codes = {reason["code"] for reason in cell["validity"]["reasons"]}
        assert not codes & {"does-not-add-up", "engine-restarted"}


def test_cached_tokens_are_of_the_cell_and_not_of_the_engines_life(summary):
    for label in BACKENDS:
        one, other = (cell for cell in summary["cells"] if cell["label"] == label)
        for cell in (one, other):
            share = cell["server"]["cached_prompt_tokens"] / cell["server"]["prompt_tokens"]
            assert 0.5 < share < 0.97, "prompts are new to each cell, prefixes are shared within it"


def test_samples_lie_on_the_clock_of_the_requests(folder, summary):
    for cell in summary["cells"]:
        records, facts = folder.read_cell(cell["cell"])
        telemetry = folder.read_telemetry(cell["cell"])
        window = measured_window(records.requests, facts.load.slots, facts.client.spread_over_ns)
        tokens = telemetry.get("engine.output_tokens")
        assert (np.diff(tokens.values) >= 0).all()
        before = tokens.values[tokens.at_ns < 0]
        after = tokens.values[tokens.at_ns > records.requests["end_ns"].max()]
        total = int(np.sum(records.requests["output_tokens"]))
        assert len(before)
        assert len(after)
        assert after[-1] - before[-1] == total, (
            "all of the cell's tokens lie between its first and last stamp"
        )
        assert len(telemetry.get("server.cpu_s").between(window.start_ns, window.end_ns).values) >= 2


def test_the_engine_is_seen_at_work_and_a_cell_has_a_limiter(summary):
    for cell in summary["cells"]:
        assert cell["server"]["cpu_cores"] > 0.2
        assert cell["server"]["rss_bytes"]["max"] > 200e6
        assert cell["server"]["running"]["max"] <= cell["load"]["value"]
        assert cell["host"]["other_cores"] is not None
        assert cell["limiter"]["code"]
        assert cell["gpu"] is None
        assert cell["null_reasons"]["gpu"]
    # vLLM updates its gauge after each step: while a single request is prefilled it reads 0.
    for label in BACKENDS:
        own = [cell for cell in summary["cells"] if cell["label"] == label]
        assert max(cell["server"]["running"]["max"] for cell in own) > 0
    vllm = next(cell for cell in summary["cells"] if cell["label"] == VLLM)
    assert 0 < vllm["server"]["kv_use"]["max"] < 1
    histogram = vllm["server"]["histograms"]["ttft_ms"]
    sent = vllm["requests"]["sent"] + vllm["requests"]["warmup"]
    assert histogram["count"] == sent
    assert not [warning for warning in summary["warnings"] if warning["code"] == "telemetry-gap"]
    assert json.dumps(summary["scaling"])
