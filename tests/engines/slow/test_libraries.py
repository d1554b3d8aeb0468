"""Engines that are libraries, really run behind bench's shim, which is told with what it adds."""

import re

import pytest

from harness.probe import examine
from tests.engines.runs import cells_of

pytestmark = pytest.mark.engine

SMALL = ("--requests", "4", "--input-tokens", "32", "--output-tokens", "8", "--set", "load.warmup_requests=1")


@pytest.mark.parametrize(
    ("name", "concurrency"), [("openvino-genai", "2"), ("ctranslate2", "1"), ("mistralrs-library", "2")]
)
def test_a_library_answers_and_every_output_says_what_it_is(name, concurrency, tmp_path):
    folder, cells = cells_of(tmp_path, "fixed-length", [name], *SMALL, "--concurrency", concurrency)
    cell = cells[name]
    assert cell["requests"]["ok"] == 4
    assert cell["output_tokens"]["total"] == 4 * 8
    assert cell["output_tokens"]["source"] == "usage"
    (warning,) = [one for one in folder.read_json("summary.json")["warnings"] if one["code"] == "library"]
    assert re.search(r"a library behind bench's shim, [+-]\d+ µs/token", warning["text"])
    engine = folder.read_json("manifest.json")["backends"][name]["engine"]
    assert warning["text"] == f"{name}: {engine['known'][0]}"
    assert "bench&#x27;s shim" in (folder.path / "report.html").read_text()


def test_openvino_is_as_declared(start):
    with start("openvino-genai") as engine:
        found = examine(engine)
    differ = [(one.topic, one.seen) for one in found.mismatches]
    assert [one for one in differ if one[0] not in ("tokens per event", "events sent")] == []
    assert next(one.holds for one in found.findings if one.topic == "3 streams at once")


def test_mistralrs_is_as_declared_and_counts_the_prompt_as_others_do(start):
    with start("mistralrs-library") as engine:
        probed = examine(engine)
    assert not probed.mismatches
    assert next(one.holds for one in probed.findings if one.topic == "3 streams at once")
    (counted,) = [one.seen for one in probed.findings if one.topic == "prompt tokens"]
    assert counted == "34 (user), 24 (system + user)"  # as transformers serve and mlx-lm


def test_ctranslate2_is_as_declared_and_says_that_it_computes_in_another_type(start):
    with start("ctranslate2") as engine:
        probed = examine(engine)
        computes_in = engine.info()["compute_type"]
    (setting,) = [finding for finding in probed.findings if finding.topic == "setting dtype"]
    as_asked = computes_in == "bfloat16"
    assert (setting.declared, setting.seen, setting.holds) == ("bfloat16", computes_in, as_asked)
    assert [finding for finding in probed.mismatches if finding is not setting] == []
