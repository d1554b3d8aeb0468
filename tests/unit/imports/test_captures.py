"""Files that the tools wrote themselves, of a scripted server: 100 ms to the first token, then 10 ms each.

Made by `python -m tests.bench.imported_tools --requests 12 --only "role chunk at once" --keep DIR`; its role
chunk comes at once, so that the tools' own figures differ. The report is `benchmark-report -b 0.2` of vLLM's
summary, and texts of prompts and answers are left out. `inference-perf.stages` is of two stages of that tool,
`guidellm.rate` has the first requests of a rate on a busy machine, and `pair` is of
`python -m tests.bench.imported_pair`; llama-bench ran without a server.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.cli.commands.imports import Found, made
from harness.conditions import unequal
from harness.imports import read, results_among
from harness.imports.taken import TOKENS
from harness.metrics import latency
from harness.metrics.view import RequestView
from harness.model import IssueCode
from harness.model.imported import SERVER
from tests.bench.imported_tools import equal_figures
from tests.bench.printed import printed
from tests.factories import foreign

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"
LAG_MS = 12.0  # of twelve requests: the tools' own start is in it


def taken_of(name):
    _, (taken,) = read(CAPTURES / name)
    return taken


RECORDS = [
    pytest.param("vllm.detail/r.json", "vllm bench serve", None, "records", id="vllm"),
    pytest.param("vllm-rs.detail/r.json", "vllm-rs bench serve", None, "records", id="vllm-rs"),
    pytest.param("aiperf.detail/profile_export.jsonl", "aiperf", "0.13.0", "records", id="aiperf"),
    pytest.param("guidellm/r.json", "guidellm", "0.8.1", "records", id="guidellm"),
    pytest.param(
        "inference-perf/per_request_lifecycle_metrics.json",
        "inference-perf",
        None,
        "records",
        id="inference-perf",
    ),
    pytest.param("evalscope/benchmark_data.db", "evalscope perf", None, "records", id="evalscope"),
]


@pytest.mark.parametrize(("name", "tool", "version", "level"), RECORDS)
def test_records_of_a_tool_have_the_servers_times(name, tool, version, level):
    taken = taken_of(name)
    assert (taken.tool, taken.version, taken.level, taken.model) == (tool, version, level, "truth")
    assert taken.load.slots == (None if tool == "inference-perf" else 4)  # whose requests name no load
    view = RequestView(taken.records)
    assert len(view.requests) == 12
    assert not taken.definitions
    assert np.median(latency.of_metric(view, "ttft_ms")) == pytest.approx(100, abs=LAG_MS)
    assert latency.tpot_ms(view).mean() == pytest.approx(10, abs=0.5)


def test_requests_of_two_stages_of_a_tool_are_told_apart_by_when_they_were_sent():
    """Of 4 requests in 2 streams and of 8 in 4; to the tool's tokenizer each token is two, 5 ms apart."""
    folder = CAPTURES / "inference-perf.stages"
    _, stages = read(folder / "per_request_lifecycle_metrics.json")
    assert [(taken.load.slots, len(taken.records.requests)) for taken in stages] == [(2, 4), (4, 8)]
    for taken in stages:
        view = RequestView(taken.records)
        assert latency.of_metric(view, "ttft_ms").mean() == pytest.approx(101.1, abs=LAG_MS)
        assert latency.tpot_ms(view).mean() == pytest.approx(10.04, abs=0.5)
    _, (alone,) = read(folder / "stage_1_lifecycle_metrics.json")
    assert (alone.load.slots, alone.answered) == (4, 8)
    assert alone.reported["tpot_ms.mean"] == pytest.approx(5, abs=0.5)
    assert f"{TOKENS}, 32.1 in an answer where the server counted 16.0" in alone.lacks


def test_a_client_that_sent_late_is_found_where_its_file_says_when_requests_were_due(tmp_path):
    """The server's first token came after 100 ms; TTFT counts from the time that was meant."""
    run = made([Found(SERVER, [CAPTURES / "guidellm.rate" / "r.json"], [])], tmp_path, [])
    (cell,) = run.read_summary().cells
    assert (cell.load.point.label, cell.client.send_lag_ms.samples) == ("r8", 12)
    assert cell.client.send_lag_ms.max == pytest.approx(28.3, abs=0.1)
    found = {reason.code: reason for reason in cell.validity.reasons}[IssueCode.SCHEDULE_LAG]
    assert found.verdict == "INVALID"
    assert found.hint.startswith("with `bench run`: ")


def test_a_request_that_the_cap_of_guidellm_held_back_is_no_late_client(tmp_path):
    """Twelve at once in two slots of 250 ms; all but two wait for others to end."""
    document = json.loads((CAPTURES / "guidellm.rate" / "r.json").read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["config"]["strategy"] |= {"max_concurrency": 2, "rate": 100.0}
    benchmark["metrics"] = {}
    for number, request in enumerate(benchmark["requests"]["successful"]):
        sent_s = 1e9 + number // 2 * 0.25 + 0.001
        request["info"]["timings"] |= {
            "targeted_start": 1e9 + number * 0.01,
            "request_start": sent_s + number % 2 * 0.01,
            "first_token_iteration": sent_s + 0.1,
            "last_token_iteration": sent_s + 0.2,
            "request_end": sent_s + 0.249 + number % 2 * 0.01,
        }
    path = foreign.write(tmp_path / "r.json", document)
    (cell,) = made([Found(SERVER, [path], [])], tmp_path / "runs", []).read_summary().cells
    assert (cell.label, cell.load.point.label, cell.ttft_ms.p50 > 500) == ("server-max2", "r100", True)
    assert cell.client.send_lag_ms.max == pytest.approx(1.0, abs=0.01)
    assert IssueCode.SCHEDULE_LAG not in {reason.code for reason in cell.validity.reasons}


SUMMARIES = [
    pytest.param("vllm/r.json", "vllm bench serve", None, id="vllm"),
    pytest.param("aiperf/profile_export_aiperf.json", "aiperf", "0.13.0", id="aiperf"),
    pytest.param("mlperf/result_summary.json", "MLPerf endpoints", "0.1.0", id="mlperf"),
    pytest.param("genai-perf/profile_export_genai_perf.json", "genai-perf", None, id="genai-perf"),
    pytest.param("evalscope/benchmark_summary.json", "evalscope perf", None, id="evalscope"),
]


@pytest.mark.parametrize(("name", "tool", "version"), SUMMARIES)
def test_figures_of_a_tool_keep_its_meaning(name, tool, version):
    taken = taken_of(name)
    assert (taken.tool, taken.version, taken.level) == (tool, version, "summary")
    assert taken.load.slots == 4
    assert taken.answered == 12
    assert {path.partition(".")[0] for path in taken.reported} == set(taken.definitions)


def test_latencies_of_genai_bench_are_computed_again_and_end_where_its_own_do():
    taken = taken_of("genai-bench/D16_16_text-to-text_num_concurrency_4_time_1s.json")
    assert (taken.tool, taken.version, taken.level, taken.model) == (
        "genai-bench",
        "0.0.5",
        "answers",
        "truth",
    )
    assert taken.load.slots == 4
    rows = taken.records.requests
    assert len(rows) == 16
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(
        100, abs=LAG_MS
    )
    assert set(taken.definitions) >= {"e2e_ms", "tpot_ms"}  # to the end of the stream


def test_latencies_of_sglang_have_the_servers_times():
    """40 requests; its rate, which is not limited, is no JSON in its file."""
    taken = taken_of("sglang.detail/r.json")
    assert (taken.tool, taken.version, taken.level) == ("sglang bench_serving", None, "answers")
    assert taken.load.slots == 4
    rows = taken.records.requests
    assert len(rows) == 40
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(
        100, abs=LAG_MS
    )
    assert latency.tpot_ms(RequestView(taken.records)).mean() == pytest.approx(10, abs=0.5)


def test_a_row_of_inferencex_has_the_meaning_of_the_client_that_it_descends_from():
    """By its own scripts; its row does not count answers."""
    taken = taken_of("inferencex/agg_r.json")
    assert (taken.tool, taken.version, taken.level) == ("InferenceX", None, "summary")
    assert (taken.load.slots, taken.answered) == (4, None)
    assert taken.reported["ttft_ms.p50"] == pytest.approx(100, abs=LAG_MS)
    assert taken.reported["tpot_ms.mean"] == pytest.approx(10, abs=0.5)
    assert taken.definitions["ttft_ms"].startswith("vllm bench serve 0.32")


@pytest.mark.parametrize(("name", "repeats"), [("r.json", 5), ("r.csv", 1)])
def test_tests_of_llama_bench_are_apart_and_their_repetitions_repeats(name, repeats):
    """`llama-bench -p 64 -n 32 -r 5 -o json`."""
    _, taken = read(CAPTURES / "llama-bench" / name)
    assert [one.variant for one in taken] == ["pp64"] * repeats + ["tg32"] * repeats
    prompt, answer = taken[0].reported, taken[-1].reported
    assert prompt["ttft_ms.mean"] == pytest.approx(64e3 / prompt["input_tokens_per_s"], rel=0.2)
    assert answer["tpot_ms.mean"] == pytest.approx(1e3 / answer["output_tokens_per_s"], rel=0.2)
    assert ("tpot_ms.p50" in answer) == (repeats > 1)


def test_a_report_keeps_the_meaning_of_the_tool_that_it_names():
    taken = taken_of("report-0.2/r.yaml")
    assert (taken.tool, taken.version, taken.level) == ("vllm-benchmark", None, "summary")
    assert taken.load.slots == 4
    assert (taken.answered, taken.failed) == (12, 0)
    direct = taken_of("vllm/r.json")
    for path, value in taken.reported.items():
        assert value == pytest.approx(direct.reported[path])
    assert taken.definitions["ttft_ms"] == direct.definitions["ttft_ms"]


def test_a_folder_has_each_measurement_once():
    """Next to requests lies their summary, and next to files their settings."""
    kept, left_out = results_among(sorted((CAPTURES / "inference-perf").iterdir()))
    assert [path.name for path in kept] == ["per_request_lifecycle_metrics.json"]
    assert [path.name for path in left_out] == ["summary_lifecycle_metrics.json"]
    kept, _ = results_among(sorted((CAPTURES / "genai-bench").iterdir()))
    assert [path.name[:3] for path in kept] == ["D16"]


def test_of_a_folder_of_evalscope_the_requests_are_read_and_of_others_no_database(tmp_path):
    folder = CAPTURES / "evalscope"
    kept, left_out = results_among(sorted(folder.iterdir()))
    assert [path.name for path in kept] == ["benchmark_data.db"]
    assert len(left_out) == 3
    shutil.copy(folder / "benchmark_data.db", tmp_path / "mlflow.db")
    other = Path(shutil.copy(CAPTURES / "vllm" / "r.json", tmp_path))
    assert results_among(sorted(tmp_path.iterdir())) == ([other], [])


def test_requests_of_genai_perf_have_the_servers_times_and_no_count_of_tokens():
    """Its own tokenizer counts 32 tokens in answers of 16, so its time between tokens is half."""
    taken = taken_of("genai-perf/profile_export.json")
    assert (taken.tool, taken.level, taken.model, taken.load.slots) == ("genai-perf", "records", "truth", 4)
    assert "the server's count of tokens (the tool asks for none)" in taken.lacks
    assert "tokens" not in taken.facts
    view = RequestView(taken.records)
    assert np.median(latency.of_metric(view, "ttft_ms")) == pytest.approx(100, abs=LAG_MS)
    assert np.mean(latency.itl_ms(view)) == pytest.approx(10, abs=0.5)
    stated = taken_of("genai-perf/profile_export_genai_perf.json")
    assert stated.reported["tpot_ms.mean"] == pytest.approx(150 / 31, abs=0.1)


def test_percentiles_of_evalscope_stand_in_the_file_next_to_its_summary():
    taken = taken_of("evalscope/benchmark_summary.json")
    assert taken.reported["ttft_ms.p50"] == 102.9135
    assert taken.reported["e2e_ms.p99"] == pytest.approx(254.7)
    assert taken.reported["input_tokens_per_s"] == pytest.approx(10 * taken.reported["requests_per_s"], 1e-4)


def test_a_folder_below_does_not_split_the_one_above(tmp_path):
    """Of aiperf's files the requests are the result, wherever a folder's name sorts between theirs."""
    detailed = CAPTURES / "aiperf.detail"
    files = [tmp_path / name for name in ("profile_export.jsonl", "profile_export_aiperf.json")]
    below = tmp_path / "profile_export_a" / "r.json"
    for path in (*files, below):
        path.parent.mkdir(exist_ok=True)
        source = CAPTURES / "vllm" / "r.json" if path is below else detailed / path.name
        path.write_bytes(source.read_bytes())
    kept, left_out = results_among(sorted([*files, below]))
    assert (kept, left_out) == ([files[0], below], [files[1]])


EQUAL = [
    ("vllm/r.json", "10 of 10"),
    ("vllm.detail/r.json", "10 of 10"),
    ("aiperf/profile_export_aiperf.json", "8 of 8"),
    ("aiperf.detail/profile_export.jsonl", "8 of 8"),
    ("inference-perf/per_request_lifecycle_metrics.json", "5 of 10"),  # the others are of its own tokenizer
    ("inference-perf/summary_lifecycle_metrics.json", "10 of 10"),
    ("genai-bench/D16_16_text-to-text_num_concurrency_4_time_1s.json", "6 of 8"),
    ("sglang.detail/r.json", "8 of 10"),  # its gaps stand in no answer
    ("mlperf/result_summary.json", "8 of 8"),
    ("inferencex/agg_r.json", "9 of 9"),
    ("genai-perf/profile_export.json", "5 of 8"),  # the others are of its own tokenizer
    ("genai-perf/profile_export_genai_perf.json", "8 of 8"),
    ("evalscope/benchmark_data.db", "5 of 6"),  # its TPOT ends where the stream does
    ("evalscope/benchmark_summary.json", "6 of 6"),
]


@pytest.mark.parametrize(("name", "equal"), EQUAL, ids=lambda one: one.partition("/")[0])
def test_an_import_has_the_figures_that_stand_in_the_file(tmp_path, name, equal):
    """Of requests they are computed again, as the tool means them."""
    file = CAPTURES / name
    tool = file.parent.name.partition(".")[0]
    run = made([Found(SERVER, [file], [])], tmp_path, [name])
    (cell,) = run.read_summary().cells
    assert equal_figures(run, cell, tool, printed(tool, file.parent)) == (equal, True)


def test_tpot_of_genai_bench_is_its_own_and_pieces_of_text_are_not_known(tmp_path):
    """Of 16 answers; a p90 needs 29."""
    (file,) = (CAPTURES / "genai-bench").glob("D*.json")
    (cell,) = made([Found(SERVER, [file], [])], tmp_path, [file.name]).read_summary().cells
    assert (cell.tpot_ms.mean, cell.tpot_ms.p50) == pytest.approx((10.9988, 10.1792), abs=1e-4)
    assert cell.imported.definitions["tpot_ms"].endswith("without answers whose text it read within 1 ms")
    assert (cell.tpot_ms.p90, cell.tpot_ms.p50_upper) == (None, None)
    assert cell.null_reasons["tpot_ms.p90"] == "16 samples; p90 needs 29"
    assert cell.null_reasons["tpot_ms.p50_upper"] == "only what the file says is known"
    assert (cell.output_tokens.total, cell.output_tokens.tokens_per_event) == (256, None)


def compared(tmp_path, *names):
    given = [Found(f"backend{number}", [CAPTURES / name], []) for number, name in enumerate(names)]
    return {entry.code: entry for entry in unequal(made(given, tmp_path, []).read_summary().cells)}


def test_figures_of_two_tools_that_mean_the_same_are_compared_whatever_the_tool(tmp_path):
    found = compared(tmp_path, "aiperf/profile_export_aiperf.json", "evalscope/benchmark_summary.json")
    assert "definition-ttft_ms" not in found
    tpot = found["definition-tpot_ms"]
    assert tpot.text.startswith("TPOT is not the same thing: aiperf 0.13: one mean per request")
    assert (tpot.what, tpot.metrics) == ("meaning of TPOT", ("tpot_ms",))


def test_rates_over_other_times_are_not_compared(tmp_path):
    """vLLM's run ends when all requests have, and that of aiperf with the last answer."""
    found = compared(
        tmp_path, "aiperf/profile_export_aiperf.json", "vllm/r.json", "evalscope/benchmark_summary.json"
    )
    assert found["definition-requests_per_s"].matters
    found = compared(tmp_path, "vllm/r.json", "evalscope/benchmark_summary.json")
    assert "definition-requests_per_s" not in found
    assert found["definition-input_tokens_per_s"].matters  # whose meaning nobody read


def test_what_tools_that_bench_does_not_know_mean_is_never_the_same(tmp_path):
    requests = {"latency": {"time_to_first_token": {"units": "ms", "mean": 100.0, "p50": 100.0}}}
    for name in ("one: tool", "two: tool"):
        foreign.write(
            tmp_path / f"{name[:3]}.json",
            {
                "version": "0.2",
                "run": {},
                "scenario": {"load": {"standardized": {"tool": name, "concurrency": 4}}},
                "results": {"request_performance": {"aggregate": requests}},
            },
        )
    found = compared(tmp_path / "runs", tmp_path / "one.json", tmp_path / "two.json")
    assert found["definition-ttft_ms"].matters


def test_two_tests_of_llama_bench_are_never_the_same_thing(tmp_path):
    assert compared(tmp_path, "llama-bench/r.csv")["definition-ttft_ms"].matters
