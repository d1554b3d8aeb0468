"""A real engine in every API of text: lengths and counts."""

import pytest

from harness.records.layout import UNKNOWN, Outcome
from tests.engines.runs import cells_of
from tests.engines.seen import assert_recorded

APIS = ("chat", "completions", "responses", "messages")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    asked = ("--requests", "8", "--concurrency", "2", "--input-tokens", "32", "--output-tokens", "8")
    less = ("--set", "load.min_answers=8", "--set", "load.warmup_requests=2")
    here = tmp_path_factory.mktemp("apis")
    return cells_of(here, "fixed-length", ["llamacpp"], "--api", ",".join(APIS), *asked, *less)


@pytest.mark.parametrize("api", APIS)
def test_every_answer_is_read(run, api):
    folder, cells = run
    cell = cells["llamacpp" if api == "chat" else f"llamacpp@{api}"]
    records, facts = folder.read_cell(cell["cell"])
    rows = records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert (rows["prompt_tokens"] != UNKNOWN).all()
    assert (rows["output_tokens"] <= 8).all()
    if api != "messages":
        assert (rows["output_tokens"] == 8).all()
    assert facts.workload.exact_output == (api != "messages")
    assert (rows["first_text_ns"] > rows["headers_ns"]).all()


def test_a_raw_prompt_has_the_tokens_that_were_asked_for(run):
    folder, cells = run
    records, facts = folder.read_cell(cells["llamacpp@completions"]["cell"])
    asked = folder.read_requested(facts).numbers["content_tokens"]
    assert (records.requests["prompt_tokens"] == asked).all()


def test_the_same_chats_are_as_long_in_every_templated_api(run):
    folder, cells = run
    lengths = {}
    for label in ("llamacpp", "llamacpp@responses", "llamacpp@messages"):
        records, _ = folder.read_cell(cells[label]["cell"])
        lengths[label] = records.requests["prompt_tokens"].tolist()
    assert len({tuple(length) for length in lengths.values()}) == 1, lengths


def test_the_page_names_the_version_that_was_seen(run):
    assert_recorded(run[0])
