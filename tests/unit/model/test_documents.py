"""The typed documents: schemas that are current and say what every key means; published runs keep to them."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from harness.model import (
    CellFacts,
    DeclaredVerdict,
    ScenarioTables,
    Summary,
    as_json,
    from_json,
    schema,
)
from harness.spec.scenario import Scenario, Verdict
from harness.store import RunFolder
from harness.summary import summarise_folder

PUBLISHED = [
    path.parent for path in sorted(Path(__file__).parents[3].glob("results/published/*/summary.json"))
]


def figures(value, place=""):
    """Every number, word and null with its path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from figures(below, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for number, below in enumerate(value):
            yield from figures(below, f"{place}[{number}]")
    else:
        yield place, value


def properties(node):
    """Every key that the schema names, with what is said of it."""
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
        for below in node.values():
            yield from properties(below)
    elif isinstance(node, list):
        for below in node:
            yield from properties(below)


@pytest.mark.parametrize("kind", schema.DOCUMENTS)
def test_the_schema_is_made_from_the_types(kind):
    stale = "stale: run python -m harness.model.schema"
    assert schema.path(kind).read_text(encoding="utf-8") == schema.text(kind), stale


@pytest.mark.parametrize("kind", schema.DOCUMENTS)
def test_the_schema_says_what_every_key_means(kind):
    named = list(properties(schema.schema(kind)))
    assert len(named) > 8
    assert [key for key, about in named if not about.get("description")] == []


def documents(folder):
    """Each that has a type, as it is read."""
    run = RunFolder(folder)
    yield "summary.json", run.read_summary()
    yield "manifest.json", run.read_manifest()
    for cell in run.cells():
        name = f"cells/{cell}/cell.json"
        yield name, from_json(run.read_json(name), CellFacts)
    if run.has("workload.json"):
        yield "workload.json", run.read_cards()
    for path in folder.glob("probe-*.json"):
        yield path.name, run.read_probe(path.stem.removeprefix("probe-"))


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_document_of_a_published_run_is_read_as_it_was_written(folder):
    for name, document in documents(folder):
        written = json.loads((folder / name).read_text(encoding="utf-8"))
        read = dict(figures(as_json(document)))
        known = [(place, value) for place, value in figures(written) if place != ".schema"]
        assert len(known) > 10
        assert [place for place, value in known if place not in read or read[place] != value] == [], name


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_figure_of_a_published_run_comes_out_of_its_records_again(folder):
    written = RunFolder(folder).read_summary()
    again = summarise_folder(RunFolder(folder))
    made = dict(figures(as_json(again)))
    own = [(place, value) for place, value in figures(as_json(written)) if place in made]
    differing = [place for place, value in own if isinstance(value, float) and made[place] != value]
    assert differing == []
    assert from_json(as_json(again), Summary) == again


def test_a_manifest_keeps_every_table_of_a_scenario():
    """It is converted by name: what its type lacks would be lost without a word."""
    assert {field.name for field in fields(Scenario)} == set(ScenarioTables.__struct_fields__)
    assert {field.name for field in fields(Verdict)} == set(DeclaredVerdict.__struct_fields__)
