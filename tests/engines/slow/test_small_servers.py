"""Engines that are one TOML file and nothing else: transformers serve and mlx-lm, really run."""

import pytest

from tests.engines.capture import of, shapes, stored
from tests.engines.runs import bench_run

pytestmark = pytest.mark.engine

LABELS = ("transformers", "mlx-lm")
REQUESTS = 3  # mlx-lm needs seconds for a token on a small CPU


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The JSON file of a name in the folder of one run of both."""
    small = ("--repeats", "1", "--no-agreement", "--concurrency", "1", "--requests", str(REQUESTS))
    short = ("--input-tokens", "32", "--output-tokens", "4", "--set", "load.warmup_requests=1")
    folder, _ = bench_run(tmp_path_factory.mktemp("small"), "fixed-length", LABELS, *small, *short)
    return lambda name: folder.read_json(f"{name}.json")


def test_both_answer_every_request(run):
    cells = {cell["label"]: cell for cell in run("summary")["cells"]}
    assert set(cells) == set(LABELS)
    for cell in cells.values():
        assert cell["requests"]["ok"] == REQUESTS
        assert 0 < cell["output_tokens"]["total"] <= 4 * REQUESTS
        assert cell["output_tokens"]["source"] == "usage"
        assert not cell["simulated"]


def test_they_serve_the_same_weights_and_count_the_same_prompt(run):
    cells = run("summary")["cells"]
    assert {cell["track"] for cell in cells} == {"bf16-from-q4_1"}
    assert len({cell["workload_sha256"] for cell in cells}) == 1


def test_their_definitions_hold(run):
    for label in LABELS:
        assert run("manifest")["backends"][label]["engine"]["package_version"]
        findings = run(f"probe-{label}")["findings"]
        assert [one for one in findings if one["holds"] is False] == [], label


def test_transformers_answers_as_captured(start):
    with start("transformers") as engine:
        assert shapes(of(engine)["answers"]) == shapes(stored("transformers")["answers"])
