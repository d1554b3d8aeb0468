"""What each reader makes of a file whose requests are known."""

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from harness.conditions import unequal
from harness.errors import SpecError
from harness.imports import Part, imported, read
from harness.metrics import latency
from harness.metrics.peers import TOOLS
from harness.metrics.peers.answers import take
from harness.metrics.view import RequestView
from harness.model import IssueCode, Thinking
from harness.records.layout import UNKNOWN, Outcome, Phase
from harness.summary import summarise_folder
from harness.validity import RULES, unchecked
from harness.validity.imported import NEEDS
from tests.factories import foreign

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "imports"
GUIDELLM = CAPTURES / "guidellm" / "r.json"
INFERENCE_PERF = CAPTURES / "inference-perf" / "per_request_lifecycle_metrics.json"


def taken_of(path):
    _, (taken,) = read(path)
    return taken


def test_two_chunks_more_than_tokens_are_a_role_and_a_finish_chunk(tmp_path):
    """An early role chunk ends vLLM's TTFT; the import has the first token's."""
    early = foreign.vllm()
    early["ttfts"] = [0.002] * 120
    early["mean_ttft_ms"] = 2.0
    early["itls"] = [[0.098, *gaps[1:]] for gaps in early["itls"]]
    early["mean_itl_ms"] = None
    taken = taken_of(foreign.write(tmp_path / "r.json", early))
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(100, abs=0.01)
    assert latency.tpot_ms(RequestView(taken.records)).mean() == pytest.approx(10, rel=0.02)
    assert "TTFT was computed again" in " ".join(taken.lacks)
    assert not taken.definitions


def test_a_file_of_one_request_is_not_of_several(tmp_path):
    one = taken_of(foreign.write(tmp_path / "a.json", foreign.vllm(requests=1)))
    assert one.took == "1 request: send, first chunk, gaps, tokens"
    assert "in 1 answer with two chunks more than tokens the first and last" in " ".join(one.lacks)
    assert taken_of(foreign.write_lines(tmp_path / "b.jsonl", foreign.aiperf_lines(requests=1))).took == (
        "1 request: start, first text, gaps, end, tokens"
    )
    summary = taken_of(foreign.write(tmp_path / "s.json", foreign.vllm_summary(requests=1)))
    assert summary.took == "figures of 1 answer"


def test_one_chunk_more_than_tokens_may_be_either(tmp_path):
    """Then nobody can tell what the first chunk held, and the figure keeps the tool's meaning."""
    early = foreign.vllm()
    early["itls"] = [gaps[1:] for gaps in early["itls"]]
    early["mean_itl_ms"] = None
    taken = taken_of(foreign.write(tmp_path / "r.json", early))
    assert set(taken.definitions) == {"ttft_ms", "ttft_service_ms", "tpot_ms", "itl_ms"}


def test_failed_requests_stay_failed(tmp_path):
    document = foreign.vllm()
    document["errors"][3] = "Service Unavailable"
    document["output_lens"][3], document["ttfts"][3], document["itls"][3] = 0, 0.0, []
    document = foreign.answered(document, 119) | {"mean_itl_ms": None, "mean_ttft_ms": None}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert np.count_nonzero(np.isinf(latency.of_metric(RequestView(taken.records), "ttft_ms"))) == 1
    assert taken.records.errors[3] == "Service Unavailable"


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        ("aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected", Outcome.TRUNCATED),
        ("aiohttp.client_exceptions.ClientOSError: [Errno None] Can not write request body", Outcome.RESET),
        ("TimeoutError", Outcome.TIMEOUT),
        ("ValueError: a: b", Outcome.HTTP_ERROR),
    ],
)
def test_a_failed_request_ended_as_the_last_line_of_its_traceback_says(tmp_path, raised, outcome):
    """vllm bench serve keeps the whole traceback: each failure was an HTTP error, `Traceback (most`."""
    document = foreign.vllm()
    document["errors"][3] = f'Traceback (most recent call last):\n  File "/x.py", line 1, in post\n{raised}\n'
    document["output_lens"][3], document["ttfts"][3], document["itls"][3] = 0, 0.0, []
    document = foreign.answered(document, 119) | {"mean_itl_ms": None, "mean_ttft_ms": None}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert taken.records.errors[3] == raised
    assert taken.records.requests["outcome"][3] == outcome


def test_prompts_that_a_dataset_did_not_have_are_no_failures(tmp_path):
    counted = foreign.vllm_summary(num_prompts=1000, failed=0, max_concurrency=None)
    taken = taken_of(foreign.write(tmp_path / "r.json", counted))
    assert (taken.answered, taken.failed, taken.planned, taken.load.slots) == (120, 0, 120, 120)


def test_failures_of_a_summary_are_those_that_it_counts_or_the_prompts_without_an_answer(tmp_path):
    counted = foreign.vllm_summary(num_prompts=1000, failed=3)
    taken = taken_of(foreign.write(tmp_path / "r.json", counted))
    assert (taken.failed, taken.planned) == (3, 123)
    taken = taken_of(foreign.write(tmp_path / "r.json", foreign.vllm_summary(num_prompts=125)))
    assert (taken.failed, taken.planned) == (5, 125)


def of_sglang():
    of = foreign.vllm_summary() | {"dataset_name": "random-ids", "total_output_tokens_retokenized": 1}
    return {key: value for key, value in of.items() if key != "mean_itl_ms"}


def test_a_median_of_a_summary_is_its_p50(tmp_path):
    of = foreign.vllm_summary()
    taken = taken_of(foreign.write(tmp_path / "r.json", of))
    assert taken.reported["ttft_ms.p50"] == of["median_ttft_ms"]


@pytest.mark.parametrize("of", [foreign.vllm(), foreign.vllm_summary(), of_sglang()])
def test_a_cap_sets_a_rate_apart_and_its_load_is_not_known(tmp_path, of):
    for most in (4, 64):
        file = foreign.write(tmp_path / "r.json", of | {"request_rate": 50.0, "max_concurrency": most})
        taken = taken_of(file)
        assert (taken.load.kind, taken.load.value, taken.variant) == ("rate", 50, f"max{most}")
        assert not taken.load_known
        assert f"at most {most} requests in flight" in taken.lacks[-1]
    free = taken_of(foreign.write(tmp_path / "r.json", of | {"request_rate": 50.0, "max_concurrency": None}))
    assert (free.variant, free.load_known) == ("", True)


def test_a_capped_rate_whose_sends_are_known_says_how_many_left(tmp_path):
    of = foreign.vllm()
    of["start_times"] = [100.0 + index / 20 for index in range(len(of["start_times"]))]
    capped = of | {"request_rate": 50.0, "max_concurrency": 4}
    taken = taken_of(foreign.write(tmp_path / "r.json", capped))
    assert taken.lacks[-1] == "the load: with at most 4 requests in flight, 20/s of 50/s were sent"
    summary = foreign.vllm_summary() | {"request_rate": 50.0, "max_concurrency": 4}
    taken = taken_of(foreign.write(tmp_path / "r.json", summary))
    assert taken.lacks[-1].endswith("in flight, fewer than 50/s may have been sent")


def test_a_cap_of_aiperf_sets_a_rate_apart_too(tmp_path):
    phase = {"kind": "profiling", "type": "poisson", "rate": 50.0, "concurrency": 4}
    latency = {"unit": "ms", "avg": 100.0}
    about = {"aiperf_version": "0.13.0", "request_count": {"avg": 120.0}, "time_to_first_token": latency,
             "input_config": {"phases": [phase]}}  # fmt: skip
    summary = foreign.write(tmp_path / "profile_export_aiperf.json", about)
    lines = foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines())
    for file in (summary, lines):
        taken = taken_of(file)
        assert (taken.load.kind, taken.variant, taken.load_known) == ("rate", "max4", False)


def test_a_cap_in_a_report_sets_a_rate_apart_too(tmp_path):
    load = {"standardized": {"tool": "vllm-benchmark", "rate_qps": 50.0, "concurrency": 4}}
    latency = {"time_to_first_token": {"units": "ms", "mean": 100.0}}
    results = {"request_performance": {"aggregate": {"latency": latency}}}
    report = {"version": "0.2", "run": {}, "scenario": {"load": load}, "results": results}
    taken = taken_of(foreign.write(tmp_path / "r.json", report))
    assert (taken.load.kind, taken.variant, taken.load_known) == ("rate", "max4", False)


@pytest.mark.parametrize(
    ("named", "given", "meaning"),
    [("", None, "0.32"), ("0.32.0", None, "0.32"), ("0.33.0", None, "0.33"), ("main", None, "0.32"),
     ("unknown", "0.33.0", "0.33")],
)  # fmt: skip
def test_a_report_has_the_meaning_of_the_version_that_measured(tmp_path, named, given, meaning):
    load = {"standardized": {"tool": "vllm-benchmark", "tool_version": named, "concurrency": 4}}
    latency = {"time_to_first_token": {"units": "ms", "mean": 100.0}}
    results = {"request_performance": {"aggregate": {"latency": latency}}}
    report = {"version": "0.2", "run": {}, "scenario": {"load": load}, "results": results}
    _, (taken,) = read(foreign.write(tmp_path / "r.json", report), given)
    assert taken.definitions["ttft_ms"].startswith(f"vllm bench serve {meaning}: ")


def test_a_ramp_of_rates_is_refused(tmp_path):
    ramp = {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 100}
    with pytest.raises(SpecError, match=r"a ramp of rates \('linear'\), which is not read"):
        read(foreign.write(tmp_path / "r.json", foreign.vllm_summary(max_concurrency=None) | ramp))


def test_a_ramp_of_rates_of_guidellm_is_refused_and_one_of_streams_is_read(tmp_path):
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    strategy = benchmark["config"]["strategy"] = benchmark["config"]["strategy"] | {"rampup_duration": 2.0}
    assert taken_of(foreign.write(tmp_path / "r.json", document)).load.slots == 4
    strategy |= {"type_": "constant", "rate": 8.0}
    with pytest.raises(SpecError, match=r"a ramp of rates \(of 2 s\), which is not read"):
        read(foreign.write(tmp_path / "r.json", document))


def test_several_lines_are_several_runs(tmp_path):
    """As `--append-result` and SGLang write them."""
    path = foreign.write_lines(tmp_path / "r.jsonl", [foreign.vllm(seed) for seed in (1, 2)])
    _, taken = read(path)
    assert len(taken) == 2


def test_a_file_is_known_by_what_stands_in_it(tmp_path):
    assert taken_of(foreign.write(tmp_path / "notes.csv", foreign.vllm())).tool == "vllm bench serve"
    path = foreign.write_lines(tmp_path / "a.json", foreign.aiperf_lines())
    assert taken_of(path).tool == "aiperf"


LLAMA = {"build_commit": "abc", "build_number": 5000, "model_filename": "models/m.gguf", "n_prompt": 0,
         "n_gen": 128, "avg_ts": 100.0, "samples_ts": [99.0, 100.0, 101.0]}  # fmt: skip


def test_repetitions_of_llama_bench_are_repeats(tmp_path):
    prompt = LLAMA | {"n_prompt": 512, "n_gen": 0, "avg_ts": 768.0, "samples_ts": [512.0, 1024.0]}
    deep = LLAMA | {"n_depth": 64, "samples_ts": [100.0]}
    _, taken = read(foreign.write(tmp_path / "r.json", [LLAMA, prompt, deep]))
    assert [one.variant for one in taken] == ["tg128"] * 3 + ["pp512"] * 2 + ["tg128-d64"]
    assert taken[1].reported == {"output_tokens_per_s": 100.0, "tpot_ms.mean": 10.0, "tpot_ms.p50": 10.0}
    assert taken[4].reported == {"input_tokens_per_s": 1024.0, "ttft_ms.mean": 500.0, "ttft_ms.p50": 500.0}
    one, other = taken[0].definitions, taken[3].definitions
    assert not set(one.values()) & set(other.values()), "two tests are not the same work"


def test_a_speed_of_prompt_and_answer_together_is_divided(tmp_path):
    both = LLAMA | {"n_prompt": 384, "n_gen": 128, "avg_ts": 512.0, "samples_ts": [512.0]}
    taken = taken_of(foreign.write(tmp_path / "r.json", [both]))
    assert taken.reported == {
        "input_tokens_per_s": 384.0,
        "output_tokens_per_s": 128.0,
        "e2e_ms.mean": 1000.0,
        "e2e_ms.p50": 1000.0,
    }


def test_a_mean_of_llama_bench_that_is_not_of_its_repetitions(tmp_path):
    with pytest.raises(SpecError, match="avg_ts is 90, and its records give 100"):
        read(foreign.write(tmp_path / "r.json", [LLAMA | {"avg_ts": 90.0}]))


def test_csv_of_llama_bench_has_the_mean_alone(tmp_path):
    path = tmp_path / "r.txt"
    path.write_text(
        "build_commit,build_number,model_filename,n_prompt,n_gen,avg_ns,avg_ts\n"
        '"abc","5000","m.gguf","0","128","1280000000","100.5"\n'
    )
    taken = taken_of(path)
    assert taken.reported == {"output_tokens_per_s": 100.5, "tpot_ms.mean": 10.0}
    assert "its repetitions" in taken.lacks


def test_rules_without_what_they_need_are_named():
    class File:
        facts = ("answers", "outcomes")

    assert unchecked(None) == []
    left = set(RULES) - set(unchecked(File()))
    assert left == {IssueCode.CLIENT_UNVERIFIED, IssueCode.FAILED_REQUESTS, IssueCode.TOO_FEW_SAMPLES}
    assert set(NEEDS) <= set(RULES)


def test_the_tool_would_say_of_the_import_what_its_file_says(tmp_path):
    """With the chunks without text that it counts."""
    document = foreign.vllm()
    _, (taken,) = read(foreign.write(tmp_path / "r.json", document))
    answers = take(taken.records, None, "chat")
    figures = TOOLS["vllm"].compute(answers)
    assert figures["TTFT"].values.mean() == pytest.approx(document["mean_ttft_ms"], abs=1e-3)
    assert figures["ITL"].values.mean() == pytest.approx(document["mean_itl_ms"], abs=1e-3)
    assert figures["output"] == pytest.approx(document["output_throughput"], rel=1e-3)


def test_latencies_of_sglang_are_computed_again_and_its_rates_are_its_own(tmp_path):
    """Its requests have no time of sending; a rate without a limit is no JSON in its file."""
    of = foreign.vllm()
    of["itls"] = [gaps[1:-1] for gaps in of["itls"]]
    del of["start_times"], of["mean_itl_ms"]
    of["server_info"] = {"model_path": "m"}
    of |= {"dataset_name": "random-ids", "total_output_tokens_retokenized": 1, "request_rate": float("inf")}
    taken = taken_of(foreign.write(tmp_path / "r.jsonl", of))
    assert (taken.tool, taken.level, taken.load.slots) == ("sglang bench_serving", "answers", foreign.SLOTS)
    assert taken.model == "m"
    assert set(taken.records.requests["prompt_tokens"]) == {16}
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(100, abs=3)
    assert latency.tpot_ms(RequestView(taken.records)).mean() == pytest.approx(10, abs=0.2)
    assert set(taken.reported) == {"output_tokens_per_s", "requests_per_s", "input_tokens_per_s"}
    assert set(taken.definitions) == set(taken.reported)


@pytest.mark.parametrize(("backend", "gap_ms"), [("sglang", 80.0), ("sglang-oai", 10.0)])
def test_a_gap_that_sglang_divided_by_the_tokens_of_its_chunk_is_one_gap(tmp_path, backend, gap_ms):
    """Of its own protocol: 32 tokens in chunks of 8, the first with the first token, a chunk each 80 ms."""
    gaps = [0.01] * 8 + [0.0100001] * 8 + [0.01] * 8
    of = foreign.vllm_summary() | {"dataset_name": "random-ids", "total_output_tokens_retokenized": 1}
    of |= {"backend": backend, "input_lens": [16] * 120, "output_lens": [32] * 120, "ttfts": [0.1] * 120,
           "itls": [gaps] * 120, "mean_ttft_ms": 100.0, "mean_itl_ms": None}  # fmt: skip
    view = RequestView(taken_of(foreign.write(tmp_path / "r.json", of)).records)
    assert np.median(latency.of_metric(view, "itl_ms")) == pytest.approx(gap_ms, rel=1e-3)
    per_token_ms = 10.0 if backend == "sglang" else 240 / 31  # whose first tokens are not known
    assert np.median(latency.tpot_ms(view)) == pytest.approx(per_token_ms, rel=1e-3)


@pytest.mark.parametrize("most", [None, 5])
def test_all_requests_of_guidellm_are_the_load_that_has_no_limit(tmp_path, most):
    """Those that failed or were cut off at the end were in flight as well."""
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["config"]["strategy"] = {"type_": "throughput", "max_concurrency": most}
    requests = benchmark["requests"]
    requests["incomplete"] = [requests["successful"].pop() for _ in range(3)]
    benchmark["metrics"] = {}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert taken.load.value == (most or len(requests["successful"]) + 3)


@pytest.mark.parametrize(
    ("said", "slots"),
    [
        ({"dataset_name": "mooncake", "backend": "sglang"}, None),
        ({"dataset_name": "mooncake", "backend": "sglang-oai"}, 4),
        ({"request_rate": "trace", "max_concurrency": None}, None),
    ],
)
def test_a_replay_of_sglang_has_no_load(tmp_path, said, slots):
    """Its backend of OpenAI's API leaves the times of a trace aside."""
    text = (CAPTURES / "sglang.detail" / "r.json").read_text().replace("Infinity", '"inf"')
    taken = taken_of(foreign.write(tmp_path / "r.json", json.loads(text) | said))
    assert (taken.load.slots, taken.load_known) == (slots, slots is not None)


def test_a_replay_of_guidellm_has_its_times_and_no_load(tmp_path):
    """Timestamps of a trace may be seconds or milliseconds: `time_scale` alone is no pace."""
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["config"]["strategy"] = {"type_": "trace", "time_scale": 0.001, "schedule_turn": "timestamp"}
    for request in benchmark["requests"]["successful"]:
        request["info"]["timings"]["targeted_start"] = request["info"]["timings"]["request_start"] - 0.002
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert (taken.load.kind, taken.load_known) == ("unknown", False)
    rows = taken.records.requests
    assert (rows["sent_ns"] - rows["intended_ns"]).tolist() == pytest.approx([2e6] * len(rows), abs=1000)


def test_a_request_of_guidellm_that_was_never_sent_hides_no_other(tmp_path):
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    requests = benchmark["requests"]
    unsent, _ = requests["errored"] = [requests["successful"].pop() for _ in range(2)]
    unsent["info"]["timings"] = {}
    benchmark["metrics"] = {}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert taken.planned == len(taken.records.requests) == len(requests["successful"]) + 1
    assert "the start of 1 request not sent" in taken.lacks


def test_a_request_whose_end_guidellm_did_not_see_is_missed(tmp_path):
    """Of 40 requests that a server answered, a file of a replay had 39."""
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    benchmark["scheduler_state"] = {"created_requests": 13, "processing_requests": 1}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert "1 request whose end it did not see" in taken.lacks


def test_figures_of_vllm_are_of_the_model_that_the_file_names(tmp_path):
    assert taken_of(foreign.write(tmp_path / "r.json", foreign.vllm_summary())).model == "m"


def test_why_a_request_of_guidellm_failed_is_kept(tmp_path):
    document = json.loads(GUIDELLM.read_text())
    (benchmark,) = document["benchmarks"]
    failed = benchmark["requests"]["successful"].pop()
    failed["info"]["error"] = "the server is full"
    benchmark["requests"]["errored"], benchmark["metrics"] = [failed], {}
    records = taken_of(foreign.write(tmp_path / "r.json", document)).records
    assert [why for why in records.errors if why] == ["the server is full"]


def test_the_version_that_the_user_gives_decides_what_a_first_chunk_is(tmp_path):
    """Of 0.33 the first chunk holds text; one chunk more than tokens is then the finish chunk."""
    of = foreign.vllm()
    of["itls"] = [gaps[1:] for gaps in of["itls"]]
    of["mean_itl_ms"] = None
    file = foreign.write(tmp_path / "r.json", of)
    assert "ttft_ms" in taken_of(file).definitions
    _, (new,) = read(file, "0.33.1")
    assert (new.version, new.definitions) == ("0.33.1", {})
    assert not [one for one in new.lacks if one.startswith("the version")]
    assert latency.tpot_ms(RequestView(new.records)).mean() == pytest.approx(10, rel=0.02)
    _, (old,) = read(file, "0.32.0")
    assert "ttft_ms" in old.definitions


def test_times_of_the_server_itself_show_a_file_of_0_33(tmp_path):
    of = foreign.vllm_summary() | {"server_ttfts": [0.1] * 120}
    file = foreign.write(tmp_path / "r.json", of)
    assert "0.33" in taken_of(file).definitions["ttft_ms"]
    with pytest.raises(SpecError, match="server_ttfts"):
        read(file, "0.32")


def test_a_version_that_contradicts_the_file_is_an_error(tmp_path):
    lines = foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines())
    foreign.write(tmp_path / "profile_export_aiperf.json", {"aiperf_version": "0.13.0"})
    with pytest.raises(SpecError, match=r"is of aiperf 0\.13\.0"):
        read(lines, "0.12.0")


ROW = {"hw": "h100", "tp": 8, "conc": 64, "model": "m", "framework": "vllm", "precision": "fp8",
       "tput_per_gpu": 1000.0, "output_tput_per_gpu": 100.0, "mean_ttft": 0.5, "median_ttft": 0.4,
       "p99_ttft": 1.2, "mean_tpot": 0.01, "median_intvty": 100.0}  # fmt: skip


def test_rows_of_inferencex_are_in_seconds_and_per_gpu(tmp_path):
    rows = [ROW | {"input_tput_per_gpu": 900.0}, ROW | {"conc": 128, "is_multinode": True}]
    rows.append(ROW | {"pp": 2, "pcp_size": 3})
    _, (one, two, three) = read(foreign.write(tmp_path / "r.json", rows))
    assert (one.variant, one.load.slots, two.load.slots) == ("vllm-h100-fp8-tp8", 64, 128)
    assert one.reported["ttft_ms.p50"] == pytest.approx(400)
    assert one.reported["output_tokens_per_s"] == pytest.approx(800)
    assert one.reported["input_tokens_per_s"] == pytest.approx(7200)
    assert three.reported["output_tokens_per_s"] == pytest.approx(6 * 800)
    assert "output_tokens_per_s" not in two.reported
    assert "of how many GPUs" in " ".join(two.lacks)


GROUPS = {
    "prefill_num_workers": 2,
    "prefill_tp": 4,
    "decode_tp": 8,
    "decode_ep": 8,
    "decode_dp_attention": True,
}


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"isl": 1024, "osl": 1}, "tp8-1024x1"),
        ({"isl": 1024, "osl": 8192}, "tp8-1024x8192"),
        ({"tp": 4}, "tp4"),
        ({"ep": 8}, "tp8-ep8"),
        ({"pp": 2, "dcp_size": 4, "pcp_size": 1}, "tp8-pp2-dcp4"),
        ({"dp_attention": "true"}, "tp8-dpa-true"),
        ({"dp_attention": "false", "spec_decoding": "none", "ep": 1}, "tp8"),
        ({"isl": 16, "osl": 16, "spec_decoding": "mtp"}, "tp8-16x16-mtp"),
        ({"tp": None, **GROUPS}, "prefill-x2-prefill-tp4-decode-tp8-decode-ep8-decode-dpa-true"),
    ],
)
def test_rows_of_inferencex_that_differ_in_work_or_setup_are_no_repeats(tmp_path, change, label):
    taken = taken_of(foreign.write(tmp_path / "r.json", ROW | change))
    assert taken.variant == f"vllm-h100-fp8-{label}"


FAILED = [
    ({"type": "ClientConnectorError", "message": "refused"}, False, Outcome.CONNECT_FAILED),
    ({"type": "ClientPayloadError", "message": "cut"}, False, Outcome.TRUNCATED),
    ({"type": "TimeoutError", "message": ""}, False, Outcome.TIMEOUT),
    ({"type": "SomeError", "message": "broken stream"}, False, Outcome.HTTP_ERROR),
    ({"type": None, "message": None}, False, Outcome.HTTP_ERROR),
    ({"type": "Service Unavailable", "code": 503}, False, Outcome.HTTP_ERROR),
    ({"type": "RequestCancellationError"}, True, Outcome.CANCELLED),
    ({"type": "RequestCancellationError", "code": 499}, True, Outcome.CANCELLED),
    ({"type": "InvalidInferenceResultError"}, False, Outcome.EMPTY),
    (None, True, Outcome.CANCELLED),
    (None, False, Outcome.EMPTY),
]


@pytest.mark.parametrize(("error", "cancelled", "outcome"), FAILED)
def test_an_error_of_aiperf_is_no_empty_answer(tmp_path, error, cancelled, outcome):
    lines = foreign.aiperf_lines(requests=6)
    del lines[2]["metrics"]["time_to_first_token"]
    lines[2]["error"], lines[2]["metadata"]["was_cancelled"] = error, cancelled
    taken = taken_of(foreign.write_lines(tmp_path / "r.jsonl", lines))
    assert taken.records.requests["outcome"][2] == outcome


def test_users_of_aiperf_who_hang_up_are_no_failures(tmp_path):
    """0.13.0 stamps both times of such a request when it has hung up: too late by the wait."""
    lines = foreign.aiperf_lines(requests=6)
    about = lines[2]["metadata"]
    about |= {"was_cancelled": True, "credit_issued_ns": about["request_start_ns"]}
    about["request_start_ns"] += 50_000_000
    about["request_end_ns"] = about["request_start_ns"] + 50_000_000
    lines[2] |= {"metrics": {}, "error": {"type": "RequestCancellationError", "code": 499}}
    file = foreign.write_lines(tmp_path / "profile_export.jsonl", lines)
    phase = {"kind": "profiling", "type": "concurrency", "concurrency": 4}
    phase["cancellation"] = {"rate": 20.0, "delay": 0.05}
    foreign.write(tmp_path / "profile_export_aiperf.json", {"input_config": {"phases": [phase]}})
    taken = taken_of(file)
    row = taken.records.requests[2]
    assert (row["outcome"], row["phase"]) == (Outcome.ABANDONED, Phase.IMPATIENT)
    assert row["end_ns"] - row["sent_ns"] == pytest.approx(50e6, abs=1000)
    assert row["sent_ns"] == pytest.approx(
        about["credit_issued_ns"] - lines[0]["metadata"]["request_start_ns"], abs=1000
    )
    assert (taken.load.abandonment.share, taken.load.abandonment.after_s) == (0.2, 0.05)


@pytest.mark.parametrize(("hung_up", "failed"), [(20, 5), (99, 0)])
def test_users_who_hang_up_are_no_failures_of_a_summary_of_aiperf(tmp_path, hung_up, failed):
    """0.13.0 counts them as errors, with their cause."""
    phase = {"kind": "profiling", "type": "concurrency", "concurrency": 4}
    causes = [{"error_details": {"code": 499, "type": "RequestCancellationError"}, "count": hung_up}]
    summary = {
        "aiperf_version": "0.13.0",
        "time_to_first_token": {"unit": "ms", "avg": 100.0},
        "request_count": {"avg": 75.0},
        "error_request_count": {"avg": 25.0},
        "error_summary": [*causes, {"error_details": {"code": 500, "type": None}, "count": 5}],
        "input_config": {"phases": [phase | {"cancellation": {"rate": 20.0, "delay": 0.05}}]},
    }
    taken = taken_of(foreign.write(tmp_path / "s.json", summary))
    counts = taken.requests
    assert (counts.ok, counts.failed, counts.abandoned, counts.due) == (75, failed, 25 - failed, 100)
    assert taken.failed == failed
    summary["input_config"] = {"phases": [phase]}
    assert taken_of(foreign.write(tmp_path / "s.json", summary)).failed == 25


@pytest.mark.parametrize(
    "cancellation", [{"rate": 500, "delay": 1}, {"rate": 9, "delay": -1}, {"rate": 9, "delay": 1e300}]
)
def test_shares_and_waits_of_aiperf_that_cannot_be_are_nobody_s(tmp_path, cancellation):
    phase = {"kind": "profiling", "type": "concurrency", "concurrency": 1, "cancellation": cancellation}
    foreign.write(tmp_path / "profile_export_aiperf.json", {"input_config": {"phases": [phase]}})
    file = foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines(requests=6))
    assert not taken_of(file).load.abandonment


MLPERF = {"version": "0.4", "git_sha": None, "n_samples_issued": 400, "n_samples_completed": 400,
          "n_samples_failed": 4, "duration_ns": 10**10, "state": "complete", "complete": True,
          "ttft": {"avg": 1e8, "median": 9e7, "percentiles": {"50": 9e7, "99.0": 2e8}}, "tpot": {},
          "latency": {}, "qps": 40.0, "tps": 640.0,
          "run_config": {"load_pattern": {"type": "concurrency", "target_concurrency": 4}}}  # fmt: skip


@pytest.mark.parametrize(("unit", "of_ms"), [("ms", 1), ("sec", 1e-3), ("us", 1e3)])
def test_a_mean_of_aiperf_is_that_of_the_answers_after_its_warm_up(tmp_path, unit, of_ms):
    lines = foreign.aiperf_lines(requests=6)
    lines[0]["metadata"]["benchmark_phase"] = "warmup"
    lines[0]["metrics"]["time_to_first_token"]["value"] = 200.0
    times = [line["metrics"]["time_to_first_token"]["value"] for line in lines]
    file = foreign.write_lines(tmp_path / "profile_export.jsonl", lines)
    for own, wrong in ((times[1:], None), (times, "time_to_first_token")):
        latency = {"unit": unit, "avg": sum(own) / len(own) * of_ms}
        foreign.write(tmp_path / "profile_export_aiperf.json", {"time_to_first_token": latency})
        if wrong is None:
            assert taken_of(file).planned == 5
        else:
            with pytest.raises(SpecError, match=wrong):
                taken_of(file)


def test_failures_of_a_summary_of_aiperf_were_planned_too(tmp_path):
    about = {"aiperf_version": "0.13.0", "request_count": {"avg": 115.0}, "error_request_count": {"avg": 5.0},
             "time_to_first_token": {"unit": "ms", "avg": 100.0}}  # fmt: skip
    taken = taken_of(foreign.write(tmp_path / "profile_export_aiperf.json", about))
    assert (taken.answered, taken.failed, taken.planned) == (115, 5, 120)


@pytest.mark.parametrize("counted", [{}, {"request_count": {"avg": 0.0}}])
def test_a_summary_of_aiperf_without_any_answer_says_so(tmp_path, counted):
    about = {"aiperf_version": "0.13.0", "error_request_count": {"avg": 6.0}} | counted
    with pytest.raises(SpecError, match="has no answer: 6 requests failed"):
        read(foreign.write(tmp_path / "profile_export_aiperf.json", about))


def test_a_file_says_neither_its_api_nor_what_was_reasoning(tmp_path):
    source, taken = read(GUIDELLM)
    folder, records = imported([Part("server", source, one) for one in taken], tmp_path)
    (found,) = summarise_folder(folder).cells
    assert (found.conditions.api, found.conditions.thinking) == (None, None)
    known = replace(found.conditions, api="responses", thinking=Thinking(asked=True, seen=True))
    own = replace(found, label="own", imported=None, conditions=known)
    assert {difference.code for difference in unequal([found, own])} == {"client"}
    assert summarise_folder(folder, written=records) == summarise_folder(folder)


def test_records_that_were_just_written_are_not_read_again(tmp_path):
    source, taken = read(foreign.write(tmp_path / "r.json", foreign.vllm()))
    folder, records = imported([Part("server", source, one) for one in taken], tmp_path)
    whole = summarise_folder(folder)
    for stored in folder.path.glob("cells/*/*.parquet"):
        stored.unlink()
    assert summarise_folder(folder, written=records) == whole
    assert not summarise_folder(folder).cells


def test_guidellm_counts_pieces_where_the_server_counts_no_tokens(tmp_path):
    document = json.loads(GUIDELLM.read_text())
    lack = "the server's count of tokens: each piece of text is taken for one"
    assert lack not in taken_of(GUIDELLM).lacks
    document["benchmarks"][0]["requests"]["successful"][0]["output_metrics"]["total_tokens"] = None
    assert lack in taken_of(foreign.write(tmp_path / "r.json", document)).lacks


def test_cached_tokens_are_read_where_a_file_has_them(tmp_path):
    lines = foreign.aiperf_lines(requests=6)
    for line in lines[1:]:
        line["metrics"]["usage_prompt_cache_read_tokens"] = {"value": 12, "unit": "tokens"}
    taken = taken_of(foreign.write_lines(tmp_path / "r.jsonl", lines))
    assert taken.records.requests["cached_tokens"].tolist() == [UNKNOWN] + [12] * 5
    entries = json.loads(INFERENCE_PERF.read_text())
    usage = entries[1]["info"]["response_metrics"]["server_usage"]
    usage["prompt_tokens_details"] = {"cached_tokens": 7}
    entries[2]["info"]["response_metrics"]["server_usage"]["prompt_tokens_details"] = None
    taken = taken_of(foreign.write(tmp_path / "per_request_lifecycle_metrics.json", entries))
    assert taken.records.requests["cached_tokens"][:3].tolist() == [0, 7, UNKNOWN]


def test_a_file_of_aiperf_without_gaps_has_no_arrivals(tmp_path):
    """Of an answer of one chunk nothing is missing; a failed request says nothing of arrivals or counts."""
    lines = foreign.aiperf_lines(requests=6)
    del lines[1]["metrics"]["time_to_first_token"], lines[1]["metrics"]["usage_completion_tokens"]
    lines[1]["error"] = {"type": "TimeoutError"}
    del lines[2]["metrics"]["inter_chunk_latency"]
    lines[2]["metrics"]["request_latency"] = lines[2]["metrics"]["time_to_first_token"]
    taken = taken_of(foreign.write_lines(tmp_path / "r.jsonl", lines))
    assert "arrivals" in taken.facts
    assert not any("count of tokens" in lack for lack in taken.lacks)
    del lines[3]["metrics"]["inter_chunk_latency"]
    taken = taken_of(foreign.write_lines(tmp_path / "r.jsonl", lines))
    assert "arrivals" not in taken.facts
    assert "gaps" not in taken.took
    assert any("inter_chunk_latency" in lack for lack in taken.lacks)


@pytest.mark.parametrize(
    "document",
    [
        foreign.vllm() | {"total_output_tokens": "many"},
        of_sglang() | {"random_output_len": "as the data set", "latencies": None, "start_times": [None]},
        MLPERF | {"duration_ns": "1 s"},
    ],
)
def test_what_nobody_reads_may_be_anything(tmp_path, document):
    taken_of(foreign.write(tmp_path / "r.json", document))


def test_metrics_of_aiperf_that_nobody_reads_may_be_anything(tmp_path):
    lines = foreign.aiperf_lines(requests=6)
    lines[0]["metadata"]["credit_issued_ns"] = "never"
    lines[0]["metrics"]["tool_calls"] = {"value": {"a": 1}, "unit": "calls"}
    taken_of(foreign.write_lines(tmp_path / "r.jsonl", lines))


def test_summaries_of_mlperf_are_in_nanoseconds(tmp_path):
    taken = taken_of(foreign.write(tmp_path / "r.json", MLPERF))
    assert (taken.tool, taken.load.slots) == ("MLPerf endpoints", 4)
    assert (taken.answered, taken.failed) == (396, 4)
    assert {path: taken.reported[path] for path in ("ttft_ms.mean", "ttft_ms.p50", "ttft_ms.p99")} == {
        "ttft_ms.mean": 100.0, "ttft_ms.p50": 90.0, "ttft_ms.p99": 200.0}  # fmt: skip


def test_what_failed_is_subtracted_where_it_counts_as_completed(tmp_path):
    apart = MLPERF | {"n_samples_completed": 396}
    taken = taken_of(foreign.write(tmp_path / "r.json", apart))
    assert (taken.answered, taken.failed) == (396, 4)


def test_a_run_of_mlperf_that_did_not_end_is_refused(tmp_path):
    file = foreign.write(tmp_path / "r.json", MLPERF | {"complete": False, "state": "interrupted"})
    with pytest.raises(SpecError, match="did not end"):
        read(file)


def test_rules_on_slots_need_a_load_that_the_file_names(tmp_path):
    """Of an open loop the most that were in flight are no slots, of which some would be idle."""
    taken = taken_of(foreign.write_lines(tmp_path / "profile_export.jsonl", foreign.aiperf_lines()))
    assert not taken.load_known
    assert (taken.records.requests["intended_ns"] == UNKNOWN).all()


def test_a_load_that_the_file_names_is_one(tmp_path):
    taken = taken_of(foreign.write(tmp_path / "r.json", foreign.vllm()))
    assert taken.load_known
    assert (taken.records.requests["intended_ns"] != UNKNOWN).all()
