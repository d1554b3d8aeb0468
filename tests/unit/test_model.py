"""The typed documents: schemas that are current and say what every key means; published runs keep to them."""

import json
from pathlib import Path

import pytest

from harness.model import Summary, as_json, from_json, schema
from harness.store import RunFolder
from harness.summary import summarise_folder

PUBLISHED = [
    path.parent for path in sorted(Path(__file__).parents[2].glob("results/published/*/summary.json"))
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
    assert len(named) > 100
    assert [key for key, about in named if not about.get("description")] == []


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_figure_of_a_published_run_is_read_as_it_was_written(folder):
    written = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    read = dict(figures(as_json(RunFolder(folder).read_summary())))
    known = [(place, value) for place, value in figures(written) if place != ".schema"]
    assert len(known) > 1000
    assert [place for place, value in known if read[place] != value] == []


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda path: path.name)
def test_every_figure_of_a_published_run_comes_out_of_its_records_again(folder):
    written = RunFolder(folder).read_summary()
    again = summarise_folder(RunFolder(folder))
    made = dict(figures(as_json(again)))
    own = [(place, value) for place, value in figures(as_json(written)) if place in made]
    differing = [place for place, value in own if isinstance(value, float) and made[place] != value]
    assert differing == []
    assert from_json(as_json(again), Summary) == again
