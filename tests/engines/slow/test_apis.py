"""Kept turns, constraints, budgets, vectors and scores in the APIs of real engines: minutes on two cores."""

from math import exp

import pytest

from harness.records.layout import EventKind
from tests.engines.runs import VLLM, bench_run, cells_of
from tests.engines.seen import assert_recorded

APIS = ("chat", "completions", "responses", "messages")
SHORT = ("--concurrency", "2", "--set", "load.min_seconds=0")


@pytest.mark.parametrize("backend", [VLLM, "sglang"])
def test_every_api_answers(tmp_path, backend):
    asked = ("--requests", "16", "--input-tokens", "64", "--output-tokens", "16", "--api", ",".join(APIS))
    folder, cells = cells_of(tmp_path, "fixed-length", [backend], *asked, *SHORT)
    assert len(cells) == 4
    for cell in cells.values():
        assert cell["requests"]["outcomes"] == {"ok": 16}
    assert_recorded(folder)


@pytest.mark.parametrize("backend", [VLLM, "sglang"])
def test_kept_turns_have_the_prompts_of_turns_that_are_sent_whole(tmp_path, backend):
    lengths = {}
    for kept in (True, False):
        here = tmp_path / str(kept)
        here.mkdir()
        kept_turns = ("--set", f"request.kept_turns={str(kept).lower()}")
        asked = ("--requests", "12", "--output-tokens", "8", *kept_turns)
        folder, cells = cells_of(here, "shared-prefix", [f"{backend}@responses"], *asked, *SHORT)
        (cell,) = cells.values()
        assert cell["requests"]["outcomes"] == {"ok": 12}
        records, facts = folder.read_cell(cell["cell"])
        turns = folder.read_requested(facts).numbers["turn"][records.requests["seq"]]
        lengths[kept] = sorted(zip(turns.tolist(), records.requests["prompt_tokens"].tolist(), strict=True))
    assert lengths[True] == lengths[False]


@pytest.mark.parametrize(
    ("entry", "constrained"),
    [
        ("llamacpp@responses", {"json_schema", "choice"}),
        ("llamacpp@messages", set()),
        (f"{VLLM}@responses", {"json_schema", "regex", "choice"}),
        (f"{VLLM}@messages", {"json_schema"}),
        ("sglang@responses", {"json_schema"}),
        ("sglang@messages", {"json_schema"}),
    ],
)
def test_constraints_hold_where_the_definition_says_so(tmp_path, entry, constrained):
    """The probe asks for each shape that is declared; what is not declared is not claimed."""
    folder, cells = cells_of(tmp_path, "structured-output", [entry], "--requests", "12", *SHORT)
    (cell,) = cells.values()
    assert cell["requests"]["ok"] == cell["requests"]["planned"]
    shapes = {name.removeprefix("structured.") for name in cell["conditions"]["unsupported"]}
    assert {"json_schema", "regex", "choice"} - shapes == constrained
    probed = folder.read_probe(entry)
    held = {
        one.topic.removeprefix("structured: ")
        for one in probed.findings
        if one.holds and "structured" in one.topic
    }
    assert held >= constrained
    assert not [one for one in probed.mismatches if one.topic.startswith("structured")]


def test_a_budget_ends_the_thought(tmp_path):
    load = ("--requests", "6", "--concurrency", "1", "--output-tokens", "64")
    apis = ("chat", "responses", "messages")
    folder, cells = cells_of(
        tmp_path,
        "thinking",
        ["llamacpp@open-thinking"],
        *load,
        *("--api", ",".join(apis), "--set", "load.warmup_requests=1", "--set", "request.thinking_budget=4"),
    )
    for cell in cells.values():
        events = folder.read_cell(cell["cell"])[0].events
        counts = {kind: int((events["kind"] == kind).sum()) for kind in (EventKind.REASONING, EventKind.TEXT)}
        assert 0 < counts[EventKind.REASONING] <= 4 * 6 < counts[EventKind.TEXT], cell["label"]


def test_scores_of_two_engines_rank_as_the_models_own_library_does(tmp_path):
    short = ("--requests", "6", "--concurrency", "1", "--set", "load.min_seconds=0", "--no-report")
    once = ("--repeats", "1", "--profile", "cpu")
    folder, shown = bench_run(tmp_path, "rerank-top-100", [VLLM, "llamacpp"], *once, *short)
    summary = folder.read_json("summary.json")
    values = summary["agreement"]["values"]
    assert (values["gives"], values["reference"]) == ("scores", "transformers")
    assert len(values["pairs"]) == 5
    assert all(pair["alike"] and pair["least"] > 0.99 for pair in values["pairs"]), values["pairs"]
    for cell in summary["cells"]:
        assert cell["requests"]["ok"] == 6
        assert cell["items_per_s"] == pytest.approx(20 * cell["requests_per_s"])
        assert "random weights" in cell["quantisation"]
    assert "rank correlation" in shown
    logits = folder.read_answers()[1]["llamacpp@rerank"].values.alone
    chances = folder.read_answers()[1][f"{VLLM}@rerank"].values.alone
    assert all(
        chance == pytest.approx(1 / (1 + exp(-logit)), abs=0.01)
        for name, found in logits.items()
        for logit, chance in zip(found, chances[name], strict=True)
    )


def test_vectors_of_two_engines_are_those_of_the_models_own_library(tmp_path):
    short = ("--requests", "16", "--concurrency", "1", "--set", "load.min_seconds=0", "--no-report")
    once = ("--repeats", "1", "--profile", "cpu")
    folder, shown = bench_run(tmp_path, "embed-queries", [VLLM, "llamacpp"], *once, *short)
    summary = folder.read_json("summary.json")
    values = summary["agreement"]["values"]
    assert values["reference"] == "transformers"
    between = {(pair["a"], pair["b"]): pair for pair in values["pairs"]}
    assert len(between) == 5, between.keys()
    assert all(pair["alike"] and pair["least"] > 0.999 for pair in between.values()), between
    assert set(values["normalised"].values()) == {True}
    assert set(values["too_long"].values()) == {"refused"}
    for cell in summary["cells"]:
        assert cell["requests"]["ok"] == 16
        assert cell["input_tokens_per_s"] == pytest.approx(18 * cell["items_per_s"])
    assert "cosine" in shown
