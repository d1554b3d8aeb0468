"""Documents of format 1 say what they said, under today's names."""

import json
import shutil
import typing
from pathlib import Path

import msgspec
import pytest

from harness.model import CellFacts, Record, Summary
from harness.model.schema import RUN_FORMAT
from harness.store import RunFolder
from harness.store.migration import RENAMED, upgraded
from tests.factories.runs import TWO, Shape, make_run

COUNTS = "cells.*.answers.*.*"  # tables without a type of their own
PLACES = [(kind, place) for kind, places in RENAMED.items() for place in places if place != COUNTS]


def record_at(kind, place):
    """The type of what lies there."""
    for step in place.split("."):
        hint = kind if step == "*" else typing.get_type_hints(kind)[step]
        kind = next(one for one in types_in(hint) if issubclass(one, Record))
    return kind


def types_in(hint):
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for below in typing.get_args(hint):
        yield from types_in(below)


def older(value, place, names):
    """As format 1 wrote it."""
    if not isinstance(value, dict | list):
        return value
    if not place:
        return {names.get(key, key): item for key, item in value.items()}
    if place[0] == "*" and isinstance(value, list):
        return [older(item, place[1:], names) for item in value]
    if place[0] == "*":
        return {key: older(item, place[1:], names) for key, item in value.items()}
    below = value.get(place[0])
    return value if below is None else {**value, place[0]: older(below, place[1:], names)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), Shape(TWO, repeats=3, requests=8, output_tokens=4))


@pytest.mark.parametrize(
    ("kind", "place"), PLACES, ids=[f"{kind.__name__}:{place}" for kind, place in PLACES]
)
def test_every_new_name_is_one_of_the_type_and_no_old_one_is(kind, place):
    keys = {field.encode_name for field in msgspec.structs.fields(record_at(kind, place))}
    names = RENAMED[kind][place]
    assert set(names.values()) <= keys
    assert not set(names) & keys


def test_a_run_that_was_written_in_format_1_reads_as_the_one_of_today(made, tmp_path):
    cell = made.cells()[0]
    old = RunFolder(tmp_path)
    old.cell_path(cell).mkdir(parents=True)
    for kind, name in ((Summary, "summary.json"), (CellFacts, f"cells/{cell}/cell.json")):
        written = made.read_json(name)
        for place, names in RENAMED[kind].items():
            written = older(written, place.split("."), {new: key for key, new in names.items()})
        assert written != made.read_json(name)
        (old.path / name).write_text(json.dumps({**written, "schema": 1}), encoding="utf-8")
        assert upgraded({**written, "schema": 1}, kind) == made.read_json(name)
    assert old.read_summary() == made.read_summary()
    for name in ("requests", "events"):
        shutil.copy(made.cell_path(cell) / f"{name}.parquet", old.cell_path(cell))
    assert old.read_cell(cell)[1] == made.read_cell(cell)[1]
    old.write_summary(old.read_summary())
    assert old.read_json("summary.json") == made.read_json("summary.json")


def test_counts_of_every_check_and_kind_get_the_new_name():
    counts, refusals = {"told": True, "asked": 3}, {"no such schema": 2}
    old = {"schema": 1, "cells": [{"answers": {"structured": {"regex": counts}, "refusals": refusals}}]}
    (cell,) = upgraded(old, Summary)["cells"]
    assert cell["answers"] == {
        "structured": {"regex": {"constrained": True, "asked": 3}},
        "refusals": refusals,
    }


@pytest.mark.parametrize("document", [{"cells": 3}, {"cells": [None, {"slo": []}]}, {"noise": {"*": 1}}])
def test_what_has_another_shape_is_left_for_the_check(document):
    assert upgraded({"schema": 1, **document}, Summary) == {"schema": RUN_FORMAT, **document}


def test_the_published_runs_of_format_1_are_still_there():
    """Without one, the tests of reading them would say nothing."""
    cells = Path(__file__).parents[3].glob("results/published/*/cells/*/cell.json")
    assert any(json.loads(path.read_text(encoding="utf-8"))["schema"] == 1 for path in cells)
