"""The documents of a run are what their schemas say: as written, as published, as read from elsewhere."""

import copy
import json
import shutil
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import CellFacts, Plan
from harness.model.schema import DOCUMENTS
from harness.store import RunFolder
from harness.store.history import append_history
from harness.store.migration import upgraded
from harness.verdicts.history_lines import entries
from tests.factories.runs import TWO, Shape, make_run
from tests.schemas import fault, schema

PUBLISHED = sorted(Path(__file__).parents[3].glob("results/published/*/manifest.json"))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Has every key that a run of made-up engines can have."""
    return make_run(tmp_path_factory.mktemp("runs"), Shape(TWO, repeats=3, requests=8, output_tokens=4))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Two cells, for commands that compute every figure of it again."""
    shape = Shape(TWO, concurrency=(1,), requests=6, output_tokens=4)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


@pytest.fixture
def summary(made):
    return copy.deepcopy(made.read_json("summary.json"))


def undescribed(value, node, where="", defs=None):
    """Keys that a table with named keys has and the schema does not name."""
    defs = defs or node["$defs"]
    node = next((one for one in node.get("anyOf", ()) if "$ref" in one), node)
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in node:
        for key, below in value.items():
            if key in node["properties"]:
                yield from undescribed(below, node["properties"][key], f"{where}.{key}", defs)
            else:
                yield f"{where}.{key}"
    elif isinstance(value, list):
        items = node.get("prefixItems") or [node.get("items", {})] * len(value)
        for below, item in zip(value, items, strict=True):
            yield from undescribed(below, item, f"{where}[]", defs)


@cache
def check_definition(text):
    Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_schema_is_one(kind):
    """Definitions are schemas of their own, and several documents have the same."""
    own = {key: node for key, node in schema(kind).items() if key != "$defs"}
    Draft202012Validator.check_schema(own)
    for definition in schema(kind)["$defs"].values():
        check_definition(json.dumps(definition))


def test_every_key_that_is_written_is_described(summary):
    assert fault(summary, "summary") is None
    assert set(undescribed(summary, schema("summary"))) == set()


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.parent.name)
def test_published_runs_keep_to_it(path):
    run = RunFolder(path.parent)
    assert set(undescribed(run.read_json("manifest.json"), schema("manifest"))) == set()
    plan = upgraded(run.read_json("plan.json"), Plan)
    assert fault(plan, "plan") is None
    assert set(undescribed(plan, schema("plan"))) == set()
    for cell in run.read_summary().cells:
        facts = upgraded(run.read_json(f"cells/{cell.cell}/cell.json"), CellFacts)
        assert set(undescribed(facts, schema("cell"))) == set()


def test_a_dry_run_and_the_history_keep_to_theirs(made, tmp_path, capsys):
    words = ["run", "--scenario", "fixed-length", "--backends", "truth", "--dry-run", "--json"]
    assert main([*words, "--out", str(tmp_path)]) == ExitCode.OK
    planned = json.loads(capsys.readouterr().out)
    assert fault(planned, "dry-run") is None
    assert set(undescribed(planned, schema("dry-run"))) == set()
    kept = tmp_path / "runs.jsonl"
    assert append_history(kept, entries(made.read_manifest(), made.read_summary())) > 0
    for line in kept.read_text(encoding="utf-8").splitlines():
        assert fault(json.loads(line), "history") is None
        assert set(undescribed(json.loads(line), schema("history"))) == set()


def test_a_key_that_is_not_known_is_no_fault(summary):
    summary["later"] = summary["cells"][0]["later"] = 1
    assert fault(summary, "summary") is None


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda one: one.update(cells=3), "cells: Expected 'array', got 'int'"),
        (lambda one: one["cells"][1].pop("validity"), "cells[1]: Object missing required field 'validity'"),
        (lambda one: one["cells"][0].update(ttft_ms="x"), "cells[0].ttft_ms: Expected 'object', got 'str'"),
        (
            lambda one: one["cells"][0]["load"].update(kind="waves"),
            "cells[0].load.kind: Invalid enum value 'waves'",
        ),
    ],
    ids=["no list", "a key less", "another type", "a word too many"],
)
def test_what_is_wrong_is_named_in_one_line(small, change, where, tmp_path, capsys):
    summary = small.read_json("summary.json")
    change(summary)
    changed = RunFolder(tmp_path)
    changed.write_json("manifest.json", small.read_json("manifest.json"))
    changed.write_json("summary.json", summary)
    assert main(["compare", str(small.path), str(changed.path)]) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"{tmp_path}/summary.json: not what this version writes: {where}" in error
    assert "hint: `bench report` derives it again" in error


@pytest.mark.parametrize("change", [lambda one: one.clear(), lambda one: one.update(scenario=3)])
def test_a_manifest_that_is_none_is_told_by_every_command(small, change, tmp_path, capsys):
    manifest = small.read_json("manifest.json")
    change(manifest)
    changed = RunFolder(tmp_path / "changed")
    changed.path.mkdir()
    changed.write_json("manifest.json", manifest)
    changed.write_json("summary.json", small.read_json("summary.json"))
    here = ["--out", str(tmp_path)]
    commands = (
        ["compare", str(small.path), "changed"],
        ["report", "changed"],
        ["history", "changed"],
        ["resume", "changed"],
    )
    for command in commands:
        assert main([*command, *here]) == ExitCode.USAGE
        assert "changed/manifest.json: not what this version writes: " in capsys.readouterr().err
    assert main(["list", "runs", *here]) == ExitCode.OK
    assert "unreadable" in capsys.readouterr().out


@pytest.mark.usefixtures("without_plots")
def test_a_cell_that_is_none_costs_nothing_but_itself(small, tmp_path, capsys):
    changed = tmp_path / "changed"
    shutil.copytree(small.path, changed)
    first, *_ = sorted(changed.glob("cells/*/cell.json"))
    first.write_text('{"schema": 1}', encoding="utf-8")
    assert main(["report", str(changed)]) == ExitCode.OK
    assert "cell.json: not what this version writes" in " ".join(capsys.readouterr().out.split())
    cells = RunFolder(changed).read_summary().cells
    assert {cell.cell for cell in cells} == {*small.cells()} - {first.parent.name}
