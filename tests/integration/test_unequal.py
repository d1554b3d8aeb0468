"""Conditions that differ between two servers are found in a run, and no verdict is given over them."""

import json

import pytest

from harness.mockserver import running
from tests.integration.scripted import bench, define

TIMING = {"ttft_ms": 200, "gap_ms": 20}  # slow: a cell that the client spoils is measured again
SMALL = (
    *("--scenario", "fixed-length", "--concurrency", "4", "--requests", "8", "--output-tokens", "8"),
    *("--set", "verdict.cool_down_s=0", "--set", "load.warmup_requests=0"),
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))

    def run(first, second, *more):
        """What is unequal by code, and the comparison's findings."""
        with running(**TIMING) as one, running(**TIMING | second) as other:
            backends = f"{first}={one.url},{second.get('dialect', first)}={other.url}"
            what = (*SMALL, "--backends", backends, "--repeats", "1", *more)
            done = bench("run", *what, "--no-agreement", "--no-probe", "--json", "--no-report", code=(0, 4))
        summary = json.loads(done.stdout)
        return {entry["code"]: entry for entry in summary["unequal"]}, summary["comparison"]

    return run


def test_twins_are_equal(run):
    found, _ = run("vllm", {})
    assert found == {}


def test_another_template_is_found_by_its_prompt_tokens_and_decides(run):
    found, comparison = run("vllm", {"chars_per_token": 3})
    assert found["prompt-tokens"]["matters"]
    assert comparison
    assert all("prompt tokens of the same chats" in json.dumps(finding) for finding in comparison)


@pytest.mark.long
def test_an_engine_that_merges_tokens_has_no_gaps_to_compare(run):
    found, comparison = run("vllm", {"tokens_per_event": 4})
    assert found["tokens-per-event"]["metrics"] == ["itl_ms"]
    refused = {finding["metric"] for finding in comparison if "tokens per event" in json.dumps(finding)}
    assert refused <= {"itl_ms"}


@pytest.mark.long
def test_what_only_some_engines_can_be_told_is_told(run):
    found, _ = run("vllm", {"dialect": "tgi"})
    assert not found["length-forced"]["matters"]
    assert found["length-forced"]["text"] == "length of answers forced: yes (vllm), no (tgi)"
    assert not found["cache-state"]["matters"]  # one does not say what was cached


def measured(backends, repeats):
    quick = ("--no-agreement", "--no-probe", "--no-report", "--json")
    what = ("run", *SMALL, "--backends", backends, "--repeats", str(repeats), *quick)
    return json.loads(bench(*what).stdout)


def test_settings_of_engines_that_are_started_are_told(here):
    file = define("calm", ttft_ms="{ttft_ms}")
    text = file.read_text().replace("max_sequences = 8", "max_sequences = 8, ttft_ms = 200")
    file.write_text(f'{text}[variants.slow]\ndescription = "slower"\nvalues = {{ ttft_ms = 220 }}\n')
    found = {entry["code"]: entry for entry in measured("calm,calm@slow", repeats=1)["unequal"]}
    entry = found["unclassified value ttft_ms"]
    assert (entry["text"], entry["matters"]) == ("value ttft_ms: 200 (calm), 220 (calm@slow)", False)


@pytest.mark.long
def test_a_run_with_other_threads_is_refused_by_a_comparison(here, monkeypatch):
    define("calm", ttft_ms=200)
    names = []
    for threads in ("2", "1"):  # the engine inherits it, and its record says so
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        names.append(measured("calm", repeats=3)["run"])
    text = bench("compare", *names, code=1).stdout
    assert "differs: CPU threads: 2 | 1" in text
    assert "refused: CPU threads: 2 | 1; --force compares all the same" in text
    assert "not comparable" in text
    assert "not comparable" not in bench("compare", *names, "--force").stdout
