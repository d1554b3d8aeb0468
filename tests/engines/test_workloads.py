"""Chats in turns and structured output on the real engines: what is carried on, reused and obeyed."""

import pytest
from runs import bench_run

from harness.model import as_json
from harness.record import Outcome
from harness.summary import summarise_folder

# Compiled, it starts minutes later: test_vllm.py starts it so, once.
VLLM = "vllm@eager"
ENGINES = ("llamacpp", VLLM)


def run(here, scenario, *flags):
    """One run of both engines from `here`: its folder, and its cells by engine."""
    once = ("--repeats", "1", "--profile", "cpu", "--no-agreement")
    folder, _ = bench_run(here, scenario, ENGINES, *once, *flags, limit_s=600)
    return folder, {cell["label"]: cell for cell in folder.read_json("summary.json")["cells"]}


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    small = ["--concurrency", "2", "--requests", "12", "--output-tokens", "12", "--set", "prompts.turns=3"]
    return run(tmp_path_factory.mktemp("chats"), "shared-prefix", *small)


@pytest.fixture(scope="module")
def structured(tmp_path_factory):
    small = ["--concurrency", "2", "--requests", "32", "--output-tokens", "80"]
    return run(tmp_path_factory.mktemp("structured"), "structured-output", *small)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_turn_is_asked_with_the_answers_before_it(chats, engine):
    folder, cells = chats
    records, facts = folder.read_cell(cells[engine]["cell"])
    rows, asked = records.requests, folder.read_asked(facts).numbers
    assert (rows["outcome"] == Outcome.OK).all()
    assert len(rows) == len(asked)
    assert asked["turn"].max() == 2
    for later in range(1, len(rows)):
        if asked["turn"][later]:
            before = rows[later - 1]
            assert rows["sent_ns"][later] > before["end_ns"]
            known = before["prompt_tokens"] + before["output_tokens"] + asked["content_tokens"][later]
            # A few tokens of the template around it; the texts of a model this small may split anew.
            assert abs(rows["prompt_tokens"][later] - known) < 24


@pytest.mark.parametrize("engine", ENGINES)
def test_a_later_turn_finds_its_history_in_the_cache(chats, engine):
    cell = chats[1][engine]
    assert cell["by_turn"]["3"]["cached_share"] > 0.7
    ideal = cell["prefix_cache_ideal_by_block"]
    assert 0.5 < cell["prefix_cache_hit_rate"] <= ideal["1"] + 0.02
    assert ideal["128"] < ideal["16"] < ideal["1"]


def test_what_was_asked_lets_all_be_computed_again(chats, structured):
    for folder, _cells in (chats, structured):
        summary = folder.read_json("summary.json")
        again = as_json(summarise_folder(folder))
        assert [cell["answers"] for cell in again["cells"]] == [cell["answers"] for cell in summary["cells"]]
        assert [c["prefix_cache_ideal_by_block"] for c in again["cells"]] == [
            c["prefix_cache_ideal_by_block"] for c in summary["cells"]
        ]


@pytest.mark.parametrize("engine", ENGINES)
def test_constrained_answers_are_valid_and_free_ones_of_a_small_model_are_not(structured, engine):
    cell = structured[1][engine]
    answers = cell["answers"]["structured"]
    assert set(answers) == {"free", "json_schema", "regex", "choice"}
    told = {shape for shape in answers if answers[shape]["told"]}
    assert told == {"json_schema", "choice"} | (
        {"regex"} if engine == VLLM else set()
    )  # llama.cpp has no field
    assert cell["structured_valid_rate"] > 0.9
    assert (answers["free"]["rate"] or 0.0) < cell["structured_valid_rate"]
    assert cell["constraint"]["first_uses"] >= 6
    assert cell["constraint"]["first_use_ttft_ms"] > 0
