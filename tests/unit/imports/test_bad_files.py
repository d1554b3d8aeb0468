"""Files that are damaged, of other units or of no tool: one error that says where, never a figure."""

import json
import re
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from harness.errors import SpecError
from harness.imports import read, yaml_text
from tests.factories import foreign


def refused(path):
    with pytest.raises(SpecError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_file_that_was_cut_off(tmp_path):
    path = foreign.write(tmp_path / "r.json", foreign.vllm())
    path.write_text(path.read_text()[:-2000])
    assert "not whole JSON" in refused(path)


def test_lines_that_were_cut_off(tmp_path):
    path = foreign.write_lines(tmp_path / "r.jsonl", foreign.aiperf_lines())
    path.write_text(path.read_text()[:-200])
    assert ":120: is not what aiperf writes" in refused(path)


CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"
REPORT = CAPTURES / "report-0.2" / "r.yaml"


@pytest.mark.parametrize("lost", [1, 5, 200, 900])
def test_a_report_that_was_cut_off(tmp_path, lost):
    """A number that lost its last digits would be one."""
    path = tmp_path / "r.yaml"
    path.write_text(REPORT.read_text()[:-lost])
    refused(path)


def test_a_small_text_that_grows_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "r.yaml"
    grown = [
        f"{after}: &{after} [{', '.join(10 * [f'*{before}'])}]" for before, after in pairwise("abcdefgh")
    ]
    path.write_text("\n".join(['version: "0.2"', "a: &a [1]", *grown, ""]))
    assert 10**7 * yaml_text._VALUE > yaml_text._MOST_GROWN
    monkeypatch.setattr(yaml_text, "_MOST_GROWN", yaml_text._MOST_GROWN // 64)  # counting to it takes long
    assert "too many values" in refused(path)


def test_keys_that_are_merged_again_and_again_are_refused(tmp_path):
    """PyYAML before 6.0.4 makes a thousand entries of these three lines, and a billion of nine."""
    path = tmp_path / "r.yaml"
    grown = [
        f"{after}: &{after} {{<<: [{', '.join(10 * [f'*{before}'])}]}}" for before, after in pairwise("abcd")
    ]
    path.write_text("\n".join(['version: "0.2"', "a: &a {k: v}", *grown, ""]))
    assert "is not whole YAML" in refused(path)


@pytest.mark.parametrize("copy", ["*a", "{*a : 1}", "!!set {*a }"])
def test_a_long_text_that_is_repeated_is_refused(tmp_path, copy):
    path = tmp_path / "r.yaml"
    path.write_text(f'version: "0.2"\na: &a {"x" * 80_000}\nb: [{", ".join(1000 * [copy])}]\n')
    assert "too much text" in refused(path)


@pytest.mark.parametrize(
    "figure", ["{units: h, mean: 3}", "{units: s, mean: .nan}", "{units: s}", "{units: s, mean: -1}"]
)
def test_a_report_with_a_figure_that_is_none(tmp_path, figure):
    path = tmp_path / "r.yaml"
    latency = f"{{time_to_first_token: {figure}}}"
    path.write_text(
        'version: "0.2"\nrun: {uid: a}\n'
        f"results: {{request_performance: {{aggregate: {{latency: {latency}}}}}}}\n"
    )
    refused(path)


def test_lines_that_end_early_at_the_end_of_a_line(tmp_path):
    """Only the summary beside them can tell."""
    path = foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines()[:100])
    about = {"aiperf_version": "0.13.0", "request_count": {"unit": "requests", "avg": 120.0}}
    foreign.write(tmp_path / "profile_export_aiperf.json", about)
    assert "request_count (in profile_export_aiperf.json) is 120" in refused(path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ttfts": [100.0] * 120}, id="ms where s are written"),
        pytest.param({"mean_ttft_ms": 0.1}, id="s where ms are written"),
        pytest.param({"completed": 119}, id="other requests than figures"),
        pytest.param({"ttfts": [0.1] * 119}, id="arrays of other lengths"),
        pytest.param({"itls": [[0.01] * 17] * 119}, id="gaps of fewer requests"),
        pytest.param({"itls": [[-0.01] * 17] * 120}, id="gaps below zero"),
    ],
)
def test_a_file_that_contradicts_itself(tmp_path, change):
    refused(foreign.write(tmp_path / "r.json", foreign.vllm() | change))


def test_a_gap_below_zero_for_which_another_makes_up(tmp_path):
    document = foreign.vllm()
    document["itls"][7][3] += 0.05
    document["itls"][7][4] -= 0.05
    path = foreign.write(tmp_path / "r.json", document)
    assert "request 7: its arrivals run backwards" in refused(path)


def test_a_schedule_in_another_unit_than_the_sends(tmp_path):
    document = json.loads((CAPTURES / "guidellm" / "r.json").read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["config"]["strategy"] = {"type_": "constant", "rate": 5.0}
    for request in benchmark["requests"]["successful"]:
        request["info"]["timings"]["targeted_start"] *= 1e3
    assert "request 0: meant for 1795599425420 s: other units?" in refused(
        foreign.write(tmp_path / "r.json", document)
    )


def test_settings_without_their_measurements():
    found = refused(CAPTURES / "genai-bench" / "experiment_metadata.json")
    assert "has the settings of genai-bench and no measurement" in found


def test_a_unit_that_nobody_knows(tmp_path):
    lines = foreign.aiperf_lines()
    lines[7]["metrics"]["time_to_first_token"]["unit"] = "jiffies"
    assert ":8: a time in 'jiffies'" in refused(foreign.write_lines(tmp_path / "r.jsonl", lines))


def test_units_are_read_and_not_assumed(tmp_path):
    lines = foreign.aiperf_lines()
    for line in lines:
        first = line["metrics"]["time_to_first_token"]
        line["metrics"]["time_to_first_token"] = {"value": first["value"] / 1e3, "unit": "s"}
    _, (taken,) = read(foreign.write_lines(tmp_path / "r.jsonl", lines))
    rows = taken.records.requests
    assert np.median(rows["first_text_ns"] - rows["sent_ns"]) == pytest.approx(100e6, rel=0.05)


def test_answers_that_were_not_streamed(tmp_path):
    lines = foreign.aiperf_lines()
    for line in lines:
        del line["metrics"]["time_to_first_token"], line["metrics"]["inter_chunk_latency"]
    assert "no answer has a first token" in refused(foreign.write_lines(tmp_path / "r.jsonl", lines))


def test_not_a_number(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(foreign.vllm() | {"mean_ttft_ms": float("nan")}))
    assert re.search(r"holds NaN, which is no number \(byte \d+\)", refused(path))
    path.write_text(json.dumps(foreign.vllm() | {"mean_ttft_ms": float("-inf")}))
    assert "holds Infinity, which is no number" in refused(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "hello", '{"a": 1}\n{"a": 2}\n', "a,b\n1,2\n"])
def test_a_file_of_no_tool(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text)
    refused(path)


def test_two_lists_in_one_file(tmp_path):
    """As `llama-bench -o json >> r.json` writes them."""
    path = tmp_path / "r.json"
    path.write_text("[\n  {}\n]\n" * 2)
    assert "holds more than one list" in refused(path)


@pytest.mark.parametrize("count", [-2, 2**31, 2**64])
def test_a_count_of_tokens_that_no_request_has(tmp_path, count):
    document = foreign.vllm()
    document["output_lens"][7] = count
    path = foreign.write(tmp_path / "r.json", document)
    assert f"request 7: a count of {count}" in refused(path)


def test_a_name_of_a_model_that_is_no_text(tmp_path):
    of = foreign.vllm_summary() | {"dataset_name": "random-ids", "total_output_tokens_retokenized": 1}
    of |= {"server_info": {"served_model_name": ["m"]}}
    _, (taken,) = read(foreign.write(tmp_path / "r.jsonl", of))
    assert (taken.tool, taken.model) == ("sglang bench_serving", None)


def test_parquet_is_named(tmp_path):
    path = tmp_path / "server_metrics_export.parquet"
    path.write_bytes(b"PAR1....PAR1")
    assert "no tool writes its results" in refused(path)


def test_texts_of_a_large_file_are_never_in_memory_as_objects(tmp_path):
    """Its pages are mapped, which the system takes back and tracemalloc does not count."""
    document = foreign.vllm(requests=100)
    document["generated_texts"] = ["x" * 200_000] * 100
    path = foreign.write(tmp_path / "r.json", document)
    size = path.stat().st_size
    assert size > 20_000_000
    tracemalloc.start()
    try:
        _, (taken,) = read(path)
        _now, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(taken.records.events) == 100 * (foreign.TOKENS + 2)
    assert most < size / 10
