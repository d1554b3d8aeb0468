"""`bench report --as TOOL`: what is printed, from a folder alone."""

import json
import re

import pytest

from harness.cli.main import main
from tests.factories.runs import EIGHT, TWO, Shape, copy_of, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("peers"), Shape(concurrency=(4,), repeats=2, requests=12)).path


def printed(capsys, *words):
    assert main(["report", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_both_figures_stand_beside_each_other_with_the_reason(run, capsys):
    text = printed(capsys, run, "--as", "guidellm")
    assert "as guidellm 0.8 would have reported them" in text
    assert "TPOT: (last text − send) / tokens: the time to the first token is inside" in text
    head = next(line for line in text.splitlines() if line.strip().startswith("llamacpp"))
    assert "llamacpp@no-prefix-cache" in head
    assert re.search(
        r"n/a here, TTFT p90.*: 12 samples; p90 needs 29; guidellm prints it all", " ".join(text.split())
    )


def test_a_version_is_named(run, capsys):
    assert "as vllm bench serve 0.33 would have" in printed(capsys, run, "--as", "vllm@0.33.1")
    assert main(["report", str(run), "--as", "vlm"]) == 2
    assert "error: --as: unknown tool 'vlm'" in capsys.readouterr().err


def test_nothing_is_written(run, capsys):
    before = sorted(run.rglob("*"))
    printed(capsys, run, "--as", "vllm")
    assert sorted(run.rglob("*")) == before


def test_eight_backends_stay_within_the_width(tmp_path, capsys):
    folder = make_run(tmp_path, Shape(EIGHT, concurrency=(2,), requests=8))
    text = printed(capsys, folder.path, "--as", "inference-perf")
    assert max(map(len, text.splitlines())) <= 100
    assert all(engine.label in text for engine in EIGHT)


def test_as_json(run, capsys):
    document = json.loads(printed(capsys, run, "--as", "sglang", "--json"))
    assert document["tool"].startswith("sglang")
    first = document["cells"][0]
    assert first["label"] == "llamacpp"
    assert {"name": "TTFT p50, ms"}.items() <= first["figures"][1].items()
    assert first["figures"][1]["there"] > 0


@pytest.mark.usefixtures("without_plots")
def test_two_runs_in_one_call(tmp_path, capsys):
    one = make_run(tmp_path / "a", Shape(TWO[:1], concurrency=(2,), requests=6))
    folders = [one.path, copy_of(one, tmp_path / "b").path]
    text = printed(capsys, *folders)
    assert all(str(folder / "report.html") in text for folder in folders)
