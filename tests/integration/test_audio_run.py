"""Whole runs of recordings against the scripted server, whose time for a second of audio is known."""

from statistics import median

import pytest

from harness.mockserver.process import running
from tests.integration.scripted import bench_in, only_cell, summary

LOAD = (
    "--concurrency", "1", "--set", "load.min_seconds=0", "--set", "verdict.cool_down_s=0", "--set",
    "load.warmup_requests=1", "--no-report",
)  # fmt: skip
AUDIO = ("run", "--scenario", "audio-in", "--set", "prompts.seconds=[0.5,1,2]")


@pytest.fixture(scope="module")
def transcribed(tmp_path_factory):
    """(summary, what the terminal shows) of two backends with the same timing."""
    here = tmp_path_factory.mktemp("transcribed")
    done = bench_in(
        here, *AUDIO, "--backends", "faster-whisper,truth", "--launch", "simulate", *LOAD, "--requests", "9",
        "--repeats", "3", "--no-probe",
    )  # fmt: skip
    return summary(here), done.stdout


def test_recordings_are_answered_whole_and_no_tokens_are_counted(transcribed):
    found, shown = transcribed
    for cell in found["cells"]:
        assert cell["requests"]["outcomes"] == {"ok": 9}
        assert cell["audio_s_per_s"] == pytest.approx(3.5 / 3 * cell["requests_per_s"], rel=0.2)
        assert cell["real_time_factor"]["p50"] >= 0.02  # 20 ms of each second, and the first 20 ms
        assert cell["by_kind"]["2 s"]["e2e_ms"]["mean"] >= 60
        for name in ("input_tokens_per_s", "items_per_s", "output_tokens_per_s"):
            assert cell[name] is None
            assert cell["null_reasons"][name]
        assert not [one for one in cell["validity"]["reasons"] if one["code"] == "usage-missing"]
    warned = {one["code"] for one in found["warnings"]}
    assert "approximate-lengths" not in warned  # recordings have no tokens
    assert "seconds of audio/s" in shown
    assert "TTFT" not in shown.split("verdict")[0]


def test_the_verdict_is_on_seconds_of_audio_and_on_whole_answers(transcribed):
    found, _ = transcribed
    verdicts = {one["metric"]: one["verdict"] for one in found["comparison"]}
    assert verdicts.keys() == {"audio_s_per_s", "e2e_ms.p50", "real_time_factor.p50"}
    assert "not comparable" not in verdicts.values()
    assert found["agreement"] is None


@pytest.mark.long
@pytest.mark.time
def test_the_printed_factor_is_that_of_the_servers_own_ledger(tmp_path):
    with running(ttft_ms=30, audio_ms_per_s=200, loading_s=0) as server:
        bench_in(
            tmp_path, *AUDIO, "--backends", f"truth={server.url}", *LOAD, "--requests", "24",
            "--repeats", "1", "--no-probe",
        )  # fmt: skip
        ledger = server.truth()["records"]
    cell = only_cell(tmp_path)
    measured = [one for one in ledger if one["path"] == "/v1/audio/transcriptions"][-24:]
    factors = [(one["write_ns"][0] - one["received_ns"]) / 1e6 / one["audio_ms"] for one in measured]
    assert sorted({one["audio_ms"] for one in measured}) == [500, 1000, 2000]
    assert cell["real_time_factor"]["p50"] == pytest.approx(median(factors), rel=0.03)
    assert median(factors) == pytest.approx(0.2 + 0.030, rel=0.05)  # of those of one second


@pytest.mark.parametrize(
    ("fault", "outcome"), [("truncation:every=3", "truncated"), ("malformed:every=3", "malformed")]
)
def test_what_is_no_transcript_is_a_failure(tmp_path, fault, outcome):
    bench_in(
        tmp_path, *AUDIO, "--backends", "truth", "--launch", "simulate", *LOAD, "--requests", "6",
        "--repeats", "1", "--no-probe", "--simulate-fault", f"truth@transcriptions={fault}", code=4,
    )  # fmt: skip
    cell = only_cell(tmp_path)
    assert cell["requests"]["outcomes"].keys() == {"ok", outcome}


def test_a_server_without_the_api_is_one_line(tmp_path):
    with running(ttft_ms=1, gap_ms=1, dialect="ollama") as server:
        done = bench_in(tmp_path, *AUDIO, "--backends", f"openai={server.url}", *LOAD, code=3)
    assert "no Transcriptions API: POST /v1/audio/transcriptions answered 404" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--backends", "vllm"), "backend 'vllm' has no Transcriptions API"),
        (("--backends", "truth", "--input-tokens", "64"), "unknown key 'input_tokens'"),
        (("--backends", "truth,truth@slow", "--agreement"), "transcripts are not compared"),
    ],
)
def test_what_does_not_go_with_recordings_is_one_line(tmp_path, arguments, said):
    done = bench_in(tmp_path, *AUDIO, *arguments, "--dry-run", code=2)
    assert said in done.stderr
    assert done.stderr.count("error:") == 1
