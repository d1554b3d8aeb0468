"""What each reader makes of a file whose requests are known."""

import numpy as np
import pytest

from harness.imports import read
from harness.metrics import latency
from harness.metrics.peers import TOOLS
from harness.metrics.peers.answers import take
from harness.metrics.view import RequestView
from harness.model import IssueCode
from harness.validity import RULES, unchecked
from harness.validity.imported import NEEDS
from tests.factories import foreign


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
    document |= {"completed": 119, "mean_itl_ms": None, "mean_ttft_ms": None}
    taken = taken_of(foreign.write(tmp_path / "r.json", document))
    assert np.count_nonzero(np.isinf(latency.of_metric(RequestView(taken.records), "ttft_ms"))) == 1
    assert taken.records.errors[3] == "Service Unavailable"


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
    prompt = LLAMA | {"n_prompt": 512, "n_gen": 0, "samples_ts": [900.0, 950.0]}
    _, taken = read(foreign.write(tmp_path / "r.json", [LLAMA, prompt]))
    assert [one.variant for one in taken] == ["tg128"] * 3 + ["pp512"] * 2
    assert taken[0].reported == {"output_tokens_per_s": 99.0, "tpot_ms.mean": pytest.approx(10.1, rel=0.01)}
    assert taken[3].reported == {"input_tokens_per_s": 900.0}


def test_csv_of_llama_bench_has_the_mean_alone(tmp_path):
    path = tmp_path / "r.txt"
    path.write_text(
        "build_commit,build_number,model_filename,n_prompt,n_gen,avg_ts\n"
        '"abc","5000","m.gguf","0","128","100.5"\n'
    )
    taken = taken_of(path)
    assert taken.reported["output_tokens_per_s"] == 100.5
    assert "its repetitions" in taken.lacks


def test_rules_without_what_they_need_are_named():
    class File:
        facts = ("answers", "outcomes")

    assert unchecked(None) == []
    left = set(RULES) - set(unchecked(File()))
    assert left == {
        IssueCode.CLIENT_UNVERIFIED,
        IssueCode.FAILED_REQUESTS,
        IssueCode.TOO_FEW_SAMPLES,
    }
    assert set(NEEDS) <= set(RULES)


def test_the_tool_would_say_of_the_import_what_its_file_says(tmp_path):
    """With the chunks without text that it counts."""
    document = foreign.vllm()
    _, (taken,) = read(foreign.write(tmp_path / "r.json", document))
    answers = take(taken.records, None)
    figures = TOOLS["vllm"].compute(answers)
    assert figures["TTFT"].values.mean() == pytest.approx(document["mean_ttft_ms"], abs=1e-3)
    assert figures["ITL"].values.mean() == pytest.approx(document["mean_itl_ms"], abs=1e-3)
    assert figures["output"] == pytest.approx(document["output_throughput"], rel=1e-3)


def test_latencies_of_sglang_are_computed_again_and_its_rates_are_its_own(tmp_path):
    """Its requests have no time of sending; a rate without a limit is no JSON in its file."""
    of = foreign.vllm()
    of["itls"] = [gaps[1:-1] for gaps in of["itls"]]
    del of["start_times"], of["mean_itl_ms"]
    of |= {"dataset_name": "random-ids", "total_output_tokens_retokenized": 1, "request_rate": float("inf")}
    taken = taken_of(foreign.write(tmp_path / "r.jsonl", of))
    assert (taken.tool, taken.level, taken.load.slots) == ("sglang bench_serving", "answers", foreign.SLOTS)
    assert np.median(latency.of_metric(RequestView(taken.records), "ttft_ms")) == pytest.approx(100, abs=3)
    assert latency.tpot_ms(RequestView(taken.records)).mean() == pytest.approx(10, abs=0.2)
    assert set(taken.reported) == {"output_tokens_per_s", "requests_per_s", "input_tokens_per_s"}
    assert set(taken.definitions) == {"output_tokens_per_s", "requests_per_s"}
