"""A cell is reported as missing where the run needed it, and not where the run ended before it."""

import json

import pytest

from harness.report.files import build_all
from tests.factories.runs import Shape, copy_of, make_run

pytestmark = pytest.mark.usefixtures("without_plots")
LOOKS = {"looks": [1, 4], "repeats": 1, "reason": "decided", "budget_s": None, "spent_s": 60.0}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    shape = Shape(repeats=1, concurrency=(1,), rates=(), requests=8, output_tokens=4)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


@pytest.fixture
def folder(whole_run, tmp_path):
    """A copy to be changed."""
    return copy_of(whole_run, tmp_path)


def table_with(folder, order, stopping):
    path = folder.path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"order": order, "stopping": stopping}))
    build_all(folder)
    return " ".join((folder.path / "table.txt").read_text().split())


def later(folder):
    """Repeats 1 to 9 of the first cell, which were never measured."""
    first = folder.cells()[0].rpartition("-r")[0]
    return [f"{first}-r{repeat}" for repeat in range(100, 109)]


def test_repeats_after_the_stop_are_not_missing(folder):
    assert "never finished" not in table_with(folder, [*folder.cells(), *later(folder)], LOOKS)


def test_a_repeat_before_the_first_look_is_missing_whatever_the_reason_to_stop(folder):
    order = [*folder.cells(), "900-gone-c1-r0"]
    assert "cell-missing: 900-gone-c1-r0 was planned and never finished" in table_with(folder, order, LOOKS)


@pytest.mark.parametrize("stopping", [None, LOOKS | {"reason": None}], ids=["fixed", "interrupted"])
def test_an_unfinished_plan_is_one_warning_with_at_most_five_names(folder, stopping):
    found = table_with(folder, [*folder.cells(), *later(folder)], stopping)
    assert found.count("cell-missing") == 1
    assert f"{later(folder)[4]} and 4 more were planned and never finished" in found
