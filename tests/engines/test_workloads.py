"""Chats in turns on the real engines: what is carried on and reused."""

import pytest

from harness.records.layout import Outcome
from tests.engines.runs import VLLM, assert_computed_again, cells_of

ENGINES = ("llamacpp", VLLM)


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    small = ["--concurrency", "2", "--requests", "12", "--output-tokens", "12", "--set", "prompts.turns=3"]
    return cells_of(tmp_path_factory.mktemp("chats"), "shared-prefix", ENGINES, *small)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_turn_is_asked_with_the_answers_before_it(chats, engine):
    folder, cells = chats
    records, facts = folder.read_cell(cells[engine]["cell"])
    rows, asked = records.requests, folder.read_requested(facts).numbers
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


def test_what_was_asked_lets_all_be_computed_again(chats):
    assert_computed_again(chats[0], "answers", "prefix_cache_ideal_by_block")
