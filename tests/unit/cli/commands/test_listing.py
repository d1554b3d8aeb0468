"""`bench list` on a terminal of 80 columns: a row per engine, and no word broken."""

import json
from shutil import rmtree

import pytest

from harness.cli.commands import listing
from harness.cli.main import main
from harness.host.paths import definitions
from harness.spec.models import load_models
from harness.store import RunFolder
from tests.bench.audit.gates import change_json
from tests.factories.runs import TWO, Shape, edit_summary, make_run


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def listed(capsys, *words):
    assert main(["list", *words]) == 0
    return capsys.readouterr().out


def test_an_engine_is_one_row_with_the_number_of_its_variants(capsys):
    every = [row["name"] for row in json.loads(listed(capsys, "backends", "--json"))["backends"]]
    lines = listed(capsys, "backends").splitlines()
    rows = [line.split() for line in lines if not line.startswith(" ")]  # no second line of a row
    found = {row[0]: row[1] for row in rows}
    assert "@" not in "".join(found)
    assert found["vllm"] == str(sum(name.startswith("vllm@") for name in every))


def test_every_variant_has_a_row_with_v(capsys):
    every = [row["name"] for row in json.loads(listed(capsys, "backends", "--json"))["backends"]]
    names = [line.split(" ")[0] for line in listed(capsys, "backends", "-v").splitlines()[1:]]
    assert [name for name in names if name] == every


def test_a_sentence_stands_below_its_row_where_its_column_would_be_too_narrow(capsys, monkeypatch):
    lines = listed(capsys, "scenarios").splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("few-shot "))
    assert lines[row + 1].startswith("    The same solved examples before every short question")
    assert lines[0].split() == ["name", "load", "requests"]
    assert max(map(len, lines)) <= 80
    monkeypatch.setenv("COLUMNS", "140")
    assert listed(capsys, "scenarios").splitlines()[0].split() == ["name", "load", "requests", "purpose"]


def test_the_cards_of_scenarios_keep_to_the_width(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"name": "a", "purpose": "One word after another, and all of them on lines. " * 4, "cards": {}}]
    monkeypatch.setitem(listing._LISTS, "scenarios", lambda _arguments: rows)
    first, *below = listed(capsys, "scenarios", "-v").splitlines()
    assert first == "a"
    assert len(below) > 1
    assert max(map(len, below)) <= 80
    assert all(line.startswith(" " * 6) for line in below[1:])


def test_the_loads_of_a_scenario_are_as_they_were_given(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = definitions("workloads")["soak"].read_text(encoding="utf-8")
    (tmp_path / "workloads").mkdir()
    mine = tmp_path / "workloads" / "mine.toml"
    shipped = shipped.replace('"soak"', '"mine"', 1)
    mine.write_text(shipped.replace("rate = [1]", "rate = [1000.25, 1000.254]"), encoding="utf-8")
    rows = {row["name"]: row for row in json.loads(listed(capsys, "scenarios", "--json"))["scenarios"]}
    assert rows["mine"]["load"] == "rate 1000.25,1000.254/s"


def test_several_sentences_of_a_row_have_their_names(capsys):
    lines = listed(capsys, "issues").splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("node-lost "))
    assert [line.split()[0] for line in lines[row + 1 : row + 3]] == ["about:", "hint:"]


def test_a_code_of_two_meanings_has_a_row_for_each(capsys):
    rows = json.loads(listed(capsys, "issues", "--json"))["issues"]
    meanings = [row["about"] for row in rows if row["name"] == "answers-differ"]
    assert len(meanings) == 2
    assert "right more often" in meanings[0]
    assert "vectors" in meanings[1]


@pytest.mark.parametrize("what", ["backends", "models", "suites"])
def test_eighty_columns_are_enough_and_words_stay_whole(capsys, monkeypatch, what):
    narrow = listed(capsys, what)
    assert max(map(len, narrow.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "1000")
    assert set(narrow.split()) == set(listed(capsys, what).split())


@pytest.fixture
def runs(tmp_path):
    """One that is complete, one that its process left, and one that cannot be read."""
    shape = Shape(TWO[:1], concurrency=(2,), requests=4, output_tokens=2)
    for name in ("a", "b", "c"):
        make_run(tmp_path / "made", shape).path.rename(tmp_path / name)
    change_json(tmp_path / "b" / "manifest.json", lambda manifest: manifest.update(state="running"))
    change_json(tmp_path / "c" / "manifest.json", lambda manifest: manifest.pop("scenario"))
    (tmp_path / "no-run").mkdir()
    return tmp_path


def test_a_run_that_nobody_holds_was_killed_and_one_that_cannot_be_read_is_named(capsys, runs):
    def states():
        rows = json.loads(listed(capsys, "runs", "--out", str(runs), "--json"))["runs"]
        return {row["run"]: (row["state"], row["scenario"], row["backends"]) for row in rows}

    whole = ("complete", "shared-prefix", "llamacpp")
    found = states()
    assert (found["a"], found["b"]) == (whole, ("killed", *whole[1:]))
    assert found["c"][:2] == ("unreadable", "")
    assert "c/manifest.json" in found["c"][2]
    assert len(found) == 3
    with RunFolder(runs / "b").held():
        assert states()["b"] == ("running", *whole[1:])
    (runs / "b" / "summary.json").unlink()
    edit_summary(RunFolder(runs / "a"), state="invalid")
    assert states()["a"] == ("invalid", *whole[1:])


@pytest.mark.parametrize("summary", ['{"state": 3}', "{", '{"a": ' + 100_000 * "[", ""])
def test_a_summary_that_cannot_be_read_leaves_a_run_the_state_of_its_manifest(capsys, runs, summary):
    """The list reads its state alone: what else is wrong with it, `bench verify` says."""
    (runs / "a" / "summary.json").write_text(summary)
    rows = json.loads(listed(capsys, "runs", "--out", str(runs), "--json"))["runs"]
    assert {row["run"]: row["state"] for row in rows}["a"] == "complete"


def test_without_a_run_that_is_said(capsys, tmp_path):
    assert listed(capsys, "runs", "--out", str(tmp_path)) == f"no runs in {tmp_path}\n"


def test_every_metric_has_its_unit_and_the_direction_that_is_better(capsys):
    rows = {row["name"]: row for row in json.loads(listed(capsys, "metrics", "--json"))["metrics"]}
    assert {key: rows["ttft_ms"][key] for key in ("unit", "better", "slo")} == {
        "unit": "ms",
        "better": "lower",
        "slo": "yes",
    }
    assert (rows["output_tokens_per_s"]["better"], rows["output_tokens_per_s"]["slo"]) == ("higher", "")


def test_the_three_lists_of_a_first_look_have_their_names(capsys):
    lines = listed(capsys).splitlines()
    heads = [index for index, line in enumerate(lines) if line in ("SCENARIOS", "BACKENDS", "MODELS")]
    assert [lines[index] for index in heads] == ["SCENARIOS", "BACKENDS", "MODELS"]
    assert heads[0] == 0
    assert [lines[index - 1] for index in heads[1:]] == ["", ""]
    rows = json.loads(listed(capsys, "models", "--json"))["models"]
    marked = {row["name"] for row in rows if row["name"].endswith(" (default)")}
    assert marked == {f"{load_models().default} (default)"}


def test_the_weights_of_a_model_have_the_name_that_rows_of_cells_have(capsys):
    assert listed(capsys, "models").splitlines()[0].split() == ["name", "weights", "format", "quantisation"]
    rows = json.loads(listed(capsys, "models", "--json"))["models"]
    assert {"weights": "gguf-q4_1", "format": "gguf"}.items() <= rows[0].items()


def test_a_tuned_variant_is_listed_and_one_that_does_not_fit_says_so(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CONFIG", str(tmp_path))
    (tmp_path / "variants").mkdir()
    (tmp_path / "variants" / "vllm.toml").write_text("[other]\n")
    rows = {row["name"]: row for row in json.loads(listed(capsys, "backends", "--json"))["backends"]}
    assert rows["vllm@tuned"]["about"].startswith("unreadable: ")
    assert rows["vllm@tuned"]["start"] == rows["vllm"]["start"]
    assert "sglang@tuned" not in rows


def test_long_names_of_runs_stay_within_eighty_columns(capsys, runs):
    scenario = "questions-of-a-team-to-its-handbook"
    rmtree(runs / "c")  # whose error has a path, which stays whole
    change_json(
        runs / "a" / "manifest.json", lambda manifest: manifest["scenario"]["scenario"].update(name=scenario)
    )
    (runs / "a").rename(runs / f"20261128T110045Z-{scenario}-9d3044")
    lines = listed(capsys, "runs", "--out", str(runs)).splitlines()
    assert max(map(len, lines)) <= 80
    row = next(index for index, line in enumerate(lines) if line.startswith("20261128T110045Z-"))
    assert lines[row + 1] == f"    {scenario}"
