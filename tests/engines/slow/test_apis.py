"""Turns that a server keeps, and constraints, in the other APIs of real engines: minutes on two cores."""

import pytest

from tests.engines.runs import VLLM, cells_of
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
        asked = (
            "--requests",
            "12",
            "--output-tokens",
            "8",
            "--set",
            f"request.kept_turns={str(kept).lower()}",
        )
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
