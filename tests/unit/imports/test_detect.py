"""What is read of the folders that tools write, and when it was measured."""

import pytest

from harness.errors import SpecError
from harness.imports import choose, read
from harness.imports.taken import WHEN, ZONE
from tests.factories import foreign


def entry(start_s):
    chunks = [start_s + 0.1 + 0.01 * token for token in range(16)]
    info = {"input_tokens": 16, "response_metrics": {"chunk_times": chunks, "output_tokens": 16}}
    return {"start_time": start_s, "end_time": chunks[-1], "info": info, "error": None}


def stage(rate=None, count=2, ttft_s=0.1):
    load = {"count": count} | ({"requested_rate": rate} if rate else {})
    latency = {"time_to_first_token": {"mean": ttft_s}}
    return {"load_summary": load, "successes": {"count": count, "latency": latency}, "failures": {"count": 0}}


def run_of_inference_perf(folder, *rates):
    """With the requests of all stages in one file, as the tool writes them."""
    for number, rate in enumerate(rates):
        foreign.write(folder / f"stage_{number}_lifecycle_metrics.json", stage(rate))
    foreign.write(folder / "summary_lifecycle_metrics.json", stage(count=2 * len(rates)))
    requests = [entry(1000.0 + number) for number in range(2 * len(rates))]
    return foreign.write(folder / "per_request_lifecycle_metrics.json", requests)


def results_in(folder):
    kept, left_out = choose.results_among(choose.entries_below(folder))
    return [path.name for path in kept], [path.name for path in left_out]


def test_of_several_stages_the_requests_are_read_each_with_the_load_of_its_stage(tmp_path):
    rates = [float(rate) for rate in range(1, 13)]  # stage 10 comes after stage 2, whatever its name
    requests = run_of_inference_perf(tmp_path, *rates)
    assert results_in(tmp_path)[0] == [requests.name]
    _, taken = read(requests)
    assert [(one.load.value, one.planned, one.load_known) for one in taken] == [
        (rate, 2, True) for rate in rates
    ]


def test_of_several_stages_without_their_requests_the_stages_are_read(tmp_path):
    run_of_inference_perf(tmp_path, 2.0, 10.0).unlink()
    kept, left_out = results_in(tmp_path)
    assert kept == ["stage_0_lifecycle_metrics.json", "stage_1_lifecycle_metrics.json"]
    assert left_out == ["summary_lifecycle_metrics.json"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (stage(10.0, count=3), "holds 4 requests, and its 2 stages have 5"),
        (stage(10.0, count=-2), "is not what inference-perf writes"),
        (stage(10.0, ttft_s=0.2), r"time_to_first_token \(in stage_1_lifecycle_metrics.json\) is 200"),
    ],
)
def test_stages_that_are_not_of_these_requests_are_refused(tmp_path, changed, why):
    requests = run_of_inference_perf(tmp_path, 2.0, 10.0)
    foreign.write(tmp_path / "stage_1_lifecycle_metrics.json", changed)
    with pytest.raises(SpecError, match=why):
        read(requests)


def test_answers_that_the_tool_counts_otherwise_are_of_their_stages(tmp_path):
    """One without text is a success to it, and one of a token has no TTFT."""
    requests = run_of_inference_perf(tmp_path, 2.0, 10.0)
    empty, short = entry(1001.0), entry(1003.0)
    empty["info"]["response_metrics"]["chunk_times"] = []
    short["info"]["response_metrics"] = {"chunk_times": [1003.5], "output_tokens": 1}
    short["end_time"] = 1003.5
    foreign.write(requests, [entry(1000.0), empty, entry(1002.0), short])
    _, taken = read(requests)
    assert [(one.load.value, one.planned) for one in taken] == [(2.0, 2), (10.0, 2)]


def test_of_one_stage_the_requests_are_read_and_its_summary_has_their_load(tmp_path):
    requests = run_of_inference_perf(tmp_path, 2.0)
    assert results_in(tmp_path)[0] == [requests.name]
    _, (taken,) = read(requests)
    assert (taken.load_known, taken.load.point.label) == (True, "r2")
    (tmp_path / "stage_0_lifecycle_metrics.json").unlink()
    _, (taken,) = read(requests)
    assert (taken.load_known, taken.load.point.label) == (False, "u1")


OVER_RUNS = [
    pytest.param({"metadata": {"num_profile_runs": 2}, "metrics": {}}, id="aggregate"),
    pytest.param({"metadata": {}, "per_combination_metrics": []}, id="sweep"),
]


@pytest.mark.parametrize("figures", OVER_RUNS)
def test_figures_over_several_runs_of_aiperf_are_left_out(tmp_path, figures):
    for number in (1, 2):
        lines = foreign.aiperf_lines(number, requests=6)
        foreign.write_lines(tmp_path / f"profile_runs/run_{number}/profile_export.jsonl", lines)
    over = foreign.write(tmp_path / "aggregate" / "profile_export_aiperf_aggregate.json", figures)
    over.with_suffix(".csv").write_text("metric,mean\n")
    kept, left_out = results_in(tmp_path)
    assert kept == 2 * ["profile_export.jsonl"]
    assert left_out == ["profile_export_aiperf_aggregate.csv", over.name]
    with pytest.raises(SpecError, match="has figures over several runs of aiperf"):
        read(over)
    assert results_in(over.parent)[0] == [over.name], "alone it is named, not passed over"


@pytest.mark.parametrize("requests", [True, False])
def test_figures_of_the_phases_of_aiperf_are_no_repeats(tmp_path, requests):
    """After a warm-up 0.13 writes them once more for each phase."""
    figures = {"aiperf_version": "0.13.0", "request_count": {"avg": 6.0}}
    foreign.write(tmp_path / "profile_export_aiperf.json", figures)
    foreign.write(tmp_path / "phase_manifest.json", {"phases": []})
    for phase in ("warmup", "profiling"):
        foreign.write(tmp_path / "phases" / phase / "profile_export_aiperf.json", figures)
    if requests:
        foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines(requests=6))
    kept, _ = results_in(tmp_path)
    assert kept == ["profile_export.jsonl" if requests else "profile_export_aiperf.json"]
    assert results_in(tmp_path / "phases" / "profiling")[0] == ["profile_export_aiperf.json"]


@pytest.mark.parametrize("metadata", [5, {}, {"figures_of": "another tool"}])
def test_metadata_and_metrics_alone_are_of_no_known_tool(tmp_path, metadata):
    with pytest.raises(SpecError, match="is no result that bench can read"):
        read(foreign.write(tmp_path / "r.json", {"metadata": metadata, "metrics": {}}))


def test_a_sweep_of_vllm_is_its_runs(tmp_path):
    """Next to them lie all in one list, a warm-up, and a table."""
    folder = tmp_path / "SERVE--max_num_seqs=32-BENCH--request_rate=10"
    runs = [foreign.vllm_summary(seed) for seed in (0, 1)]
    for number, run in enumerate(runs):
        foreign.write(folder / f"run={number}.json", run)
    foreign.write(folder / "warmup.json", foreign.vllm_summary(2))
    foreign.write(folder / "summary.json", runs)
    (tmp_path / "summary.csv").write_text(",run_number\n")
    kept, left_out = results_in(tmp_path)
    assert kept == ["run=0.json", "run=1.json"]
    assert sorted(left_out) == ["summary.csv", "summary.json", "warmup.json"]
    for number in (0, 1):
        (folder / f"run={number}.json").unlink()
    assert results_in(folder)[0] == ["summary.json"], (
        "without its runs the list has them, and not the warm-up"
    )
    assert len(read(folder / "summary.json")[1]) == len(runs)


def measured_at(path):
    _, (taken,) = read(path)
    return taken.started_unix_ns, [lack for lack in taken.lacks if lack in (WHEN, ZONE)]


AIPERF = {
    "aiperf_version": "0.13.0",
    "request_count": {"avg": 120.0},
    "time_to_first_token": {"unit": "ms", "avg": 100.0},
}
LLAMA = {"build_commit": "abc", "n_prompt": 512, "n_gen": 0, "avg_ts": 100.0}
REPORT = {
    "version": "0.2",
    "run": {},
    "results": {
        "request_performance": {
            "aggregate": {"latency": {"time_to_first_token": {"units": "ms", "mean": 100.0}}}
        }
    },
}
AT_NS = 1_764_085_927_000_000_000
DATED = [
    pytest.param(AIPERF | {"start_time": "2025-11-25T15:52:07"}, AT_NS, [ZONE], id="aiperf"),
    pytest.param(AIPERF | {"start_time": "2025-11-25T15:52:07Z"}, AT_NS, [], id="aiperf with a zone"),
    pytest.param(AIPERF, None, [WHEN], id="aiperf without it"),
    pytest.param(LLAMA | {"test_time": "2025-11-25T15:52:07Z"}, AT_NS, [], id="llama-bench"),
    pytest.param(LLAMA | {"test_time": "today"}, None, [WHEN], id="llama-bench, another format"),
    pytest.param(
        REPORT | {"run": {"time": {"start": "2025-11-25T16:52:07+01:00"}}}, AT_NS, [], id="benchmark report"
    ),
    pytest.param(
        REPORT | {"run": {"time": {"start": "2025-11-25T15:52:07"}}}, AT_NS, [ZONE],
        id="benchmark report without a zone",
    ),
    pytest.param(REPORT, None, [WHEN], id="benchmark report without it"),
    pytest.param(stage(2.0), None, [WHEN], id="inference-perf"),
    pytest.param(
        foreign.vllm_summary(date="20251125-155217", duration=10.0, request_throughput=12.0), AT_NS, [ZONE],
        id="vllm",
    ),
    pytest.param(foreign.vllm_summary(date="today"), None, [WHEN], id="vllm, another format"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "at_ns", "lacks"), DATED)
def test_the_time_of_a_measurement_is_the_files_own_or_stands_in_and_is_named(
    tmp_path, document, at_ns, lacks
):
    assert measured_at(foreign.write(tmp_path / "r.json", document)) == (at_ns, lacks)


@pytest.mark.parametrize("kind", ["fixed_schedule", "user_centric"])
def test_another_pace_of_aiperf_is_an_unknown_load(tmp_path, kind):
    of = AIPERF | {"input_config": {"phases": [{"kind": "profiling", "type": kind, "rate": 4.0}]}}
    _, (figures,) = read(foreign.write(tmp_path / "profile_export_aiperf.json", of))
    about = {"aiperf_version": "0.13.0", "request_count": {"avg": 6.0}, "input_config": of["input_config"]}
    foreign.write(tmp_path / "profile_export_aiperf.json", about)
    lines = foreign.aiperf_lines(requests=6)
    _, (requests,) = read(foreign.write_lines(tmp_path / "profile_export.jsonl", lines))
    for taken in (figures, requests):
        assert (taken.load.kind, taken.load_known) == ("unknown", False)
