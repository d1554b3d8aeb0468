"""The main job on real engines and a real model: the same bytes to each, the prefix cache on and off."""

import json

import pytest

from harness.records.layout import Outcome, Phase
from tests.engines.runs import VLLM, bench_run

UNCACHED = "llamacpp@no-prefix-cache"
BACKENDS = (VLLM, "sglang", "llamacpp")
SMALL = (
    *("--repeats", "1", "--concurrency", "2", "--requests", "8", "--output-tokens", "8"),
    *("--set", "prompts.prefix_tokens=256", "--no-agreement"),
    *("--set", "load.warmup_requests=4", "--set", "load.start=together"),  # a third fewer than spread
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of all, from an empty directory: (folder, what it printed)."""
    return bench_run(tmp_path_factory.mktemp("run"), "shared-prefix", BACKENDS, *SMALL)


@pytest.fixture(scope="module")
def uncached(tmp_path_factory):
    here = tmp_path_factory.mktemp("uncached")
    return bench_run(here, "shared-prefix", [UNCACHED], *SMALL, "--no-probe")


@pytest.fixture(scope="module")
def cells(run, uncached):
    summaries = [folder.read_json("summary.json") for folder, _ in (run, uncached)]
    return {cell["label"]: cell for summary in summaries for cell in summary["cells"]}


def test_every_backend_answers_every_request(cells):
    assert tuple(cells) == (*BACKENDS, UNCACHED)
    for cell in cells.values():
        assert cell["requests"]["ok"] == 8
        assert cell["output_tokens"]["total"] == 8 * 8
        assert cell["engine_version"]
        assert not cell["simulated"]


def test_all_get_the_same_bytes_and_count_them_alike(run, uncached, cells):
    assert len({cell["workload_sha256"] for cell in cells.values()}) == 1
    prompts = set()
    for label, cell in cells.items():
        folder, _ = uncached if label == UNCACHED else run
        records, _facts = folder.read_cell(cell["cell"])
        rows = records.requests[records.requests["phase"] == Phase.MEASURE]
        assert (rows["outcome"] == Outcome.OK).all()
        prompts.add(tuple(rows["prompt_tokens"]))
    assert len(prompts) == 1


def test_the_cache_is_seen_working_and_seen_off(cells):
    for label in BACKENDS:
        assert cells[label]["prefix_cache_hit_rate"] > 0.7, label
    assert cells[UNCACHED]["prefix_cache_hit_rate"] < 0.02
    on, off = cells["llamacpp"]["ttft_ms"]["p50"], cells[UNCACHED]["ttft_ms"]["p50"]
    assert off > 2 * on, "544 prompt tokens instead of about 40 must be felt"


def test_the_engines_counters_agree_with_ours(cells):
    """Warm-up included, and 8 tokens each."""
    for label in cells:
        requests = cells[label]["requests"]
        assert cells[label]["server"]["output_tokens"] == (requests["ok"] + requests["warmup"]) * 8, label


def test_different_weights_are_marked(run):
    folder, printed = run
    summary = folder.read_json("summary.json")
    assert any(warning["code"] == "different-tracks" for warning in summary["warnings"])
    assert "bf16" in printed


def test_the_folder_holds_what_a_reader_needs(run):
    folder, _printed = run
    manifest = folder.read_json("manifest.json")
    assert manifest["state"] == "complete"
    assert manifest["exact_lengths"]
    assert all(manifest["backends"][label]["engine"]["server_version"] for label in BACKENDS)
    assert manifest["backends"]["llamacpp"]["engine"]["weights"]["sha256"]
    assert (folder.path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert len(list((folder.path / "plots").glob("*.png"))) >= 4
    assert json.loads((folder.path / "plan.json").read_text())["blocks"]
