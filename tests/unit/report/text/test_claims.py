"""Claims as lines of text."""

import json

from harness.cli.main import main
from harness.model import ClaimResult
from harness.report.findings.claim_words import counts
from harness.report.text.claims import terminal
from tests.factories.documents import made as filled
from tests.factories.runs import SMALL, make_run

FOUND = {
    "about": "llamacpp / vllm",
    "load": {"kind": "concurrency", "value": 1},
    "stated": [1.0, None],
    "measured": [1.2, 1.3, 1.4],
    "verdict": "reproduced",
    "why": "",
}


def entry(**changes):
    made = {
        "id": "A0-002",
        "says": "for one user llama.cpp is ahead of vLLM",
        "kind": "ratio",
        "measure": "output_tokens_per_s",
        "verdict": "reproduced",
        "why": "the whole interval fits the claim",
        "found": [FOUND],
        "stated_under": "concurrency 1",
        "differs": [],
        "conflicts": ["one user"],
    }
    return filled(ClaimResult, made, **changes)


def test_stated_and_measured_stand_beside_each_other():
    assert (
        terminal([entry(), entry(id="A1-001", verdict="contradicted")], 100)
        == """\
2 published claims are about this run: 1 reproduced and 1 contradicted.

reproduced
  A0-002  for one user llama.cpp is ahead of vLLM
          c1 llamacpp / vllm output_tokens_per_s: stated more than 1×, measured 1.30× [1.20, 1.40]
          the whole interval fits the claim
          stated under: concurrency 1
          the sources contradict each other: one user

contradicted
  A1-001  for one user llama.cpp is ahead of vLLM
          c1 llamacpp / vllm output_tokens_per_s: stated more than 1×, measured 1.30× [1.20, 1.40]
          the whole interval fits the claim
          stated under: concurrency 1
          the sources contradict each other: one user
"""
    )


def test_no_interval_is_said():
    assert "measured no interval" in terminal([entry(found=[{**FOUND, "measured": None}])], 100)


def test_what_was_left_unsaid_is_said_once():
    hardware, model = {"hardware": ["a CPU"]}, {"model": ["SmolLM2"]}
    differs = [
        "hardware not stated; here a CPU",
        "model not stated; here SmolLM2",
        "the weights are not the same",
    ]
    both = entry(differs=differs, unstated={**hardware, **model})
    text = terminal([both, entry(differs=differs[:1], unstated=hardware)], 100)
    assert "Here: hardware: a CPU; model: SmolLM2." in text
    assert "not stated: hardware and model\n          the weights are not the same\n" in text


def test_a_version_that_several_claims_are_about_is_said_once():
    versions = (["vllm 0.32"], ["llamacpp 1", "vllm 0.32"])
    text = terminal([entry(unstated={"versions": here}) for here in versions], 100)
    assert "Here: versions: vllm 0.32, llamacpp 1." in text


def test_one_and_none():
    assert counts([entry()]) == "1 published claim is about this run: 1 reproduced."
    assert counts([]).startswith("No claim")


def test_the_list_by_system(capsys):
    assert main(["claims", "--system", "ollama"]) == 0
    text = capsys.readouterr().out
    assert "A0-012  Ollama runs as fast as the llama.cpp inside it" in text
    assert "https://" in text
    assert main(["claims", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) > 331
    assert main(["claims", "--system", "nobody"]) == 2


def test_a_simulated_run_is_about_no_claim(tmp_path, capsys):
    assert main(["claims", str(make_run(tmp_path, SMALL).path)]) == 0
    assert capsys.readouterr().out.startswith("No claim in the list")


def test_a_latency_is_claimed_with_a_tool_whose_version_matters():
    text = terminal([entry(measure="ttft_ms.p50"), entry(measure="ttft_ms.p50")], 200)
    assert text.count("ttft_ms, vllm bench serve 0.32: ends at the first chunk with a choice") == 1
    assert text.count("ttft_ms, vllm bench serve 0.33: first text since the actual send") == 1
    assert "vllm bench serve" not in terminal([entry()], 200)


def test_the_list_says_so_too_and_at_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["claims"]) == 0
    text = capsys.readouterr().out
    assert "  ttft_ms, vllm bench serve 0.33: " in text
    assert "output_tokens_per_s, vllm" not in text
    assert max(map(len, text[text.index("The sources name") :].splitlines())) <= 80
