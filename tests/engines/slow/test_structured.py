"""Structured output on the real engines: what they obey."""

import pytest

from tests.engines.runs import VLLM, assert_computed_again, cells_of

ENGINES = ("llamacpp", VLLM)


@pytest.fixture(scope="module")
def structured(tmp_path_factory):
    small = ["--concurrency", "2", "--requests", "32", "--output-tokens", "80", "--anyway"]
    return cells_of(tmp_path_factory.mktemp("structured"), "structured-output", ENGINES, *small)


def test_what_was_asked_lets_all_be_computed_again(structured):
    assert_computed_again(structured[0], "answers", "prefix_cache_ideal_by_block")


@pytest.mark.parametrize("engine", ENGINES)
def test_constrained_answers_are_valid_and_free_ones_of_a_small_model_are_not(structured, engine):
    cell = structured[1][engine]
    answers = cell["answers"]["structured"]
    assert set(answers) == {"free", "json_schema", "regex", "choice"}
    constrained = {shape for shape in answers if answers[shape]["constrained"]}
    assert constrained == {"json_schema", "choice"} | (
        {"regex"} if engine == VLLM else set()
    )  # llama.cpp has no field
    assert cell["structured_valid_rate"] > 0.9
    assert (answers["free"]["rate"] or 0.0) < cell["structured_valid_rate"]
    assert cell["constraint"]["first_uses"] >= 6
    assert cell["constraint"]["first_use_ttft_ms"] > 0
