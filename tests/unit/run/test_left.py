"""What a resumed run still asks its engines for: nothing where only its conclusion is missing."""

from types import SimpleNamespace

import pytest

from harness.model import CellResult
from harness.run.execute import Run
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from tests.factories.documents import made


def resumed(*, repeats, reason=None, without=(), lost=()):
    """A run of two servers that has all its cells but some; `reason`: that of looks, if there are any."""
    limits = {"load.concurrency": [2], "load.requests": 16}
    urls = "openai=http://127.0.0.1:9,vllm=http://127.0.0.1:8"
    prepared = prepare(RunOptions("fixed-length", urls, repeats=repeats, agreement=False, overrides=limits))
    looks = SimpleNamespace(looks=prepared.looks, reason=reason, blocks=()) if prepared.looks else None
    run = Run(prepared, None, None, SimpleNamespace(document=SimpleNamespace(stopping=looks)))
    run.cells = [
        made(
            CellResult,
            cell=cell.name,
            label=prepared.of(cell).label,
            load={"kind": "concurrency", "value": 2},
        )
        for block in prepared.plan
        for cell in block.cells
        if cell.repeat not in without
    ]
    run.lost = frozenset(cell.name for block in prepared.plan for cell in block.cells if cell.repeat in lost)
    return run


def test_a_run_that_has_every_cell_needs_no_engine():
    assert not resumed(repeats=2).left()
    assert resumed(repeats=2, without=(1,)).left()


def test_repeats_after_the_rule_stopped_need_no_engine():
    later = range(3, 50)
    assert not resumed(repeats="auto", reason="decided", without=later).left()
    assert resumed(repeats="auto", reason=None, without=later).left()
    assert resumed(repeats="auto", reason="decided", without=(1, *later)).left()


@pytest.mark.parametrize("repeat", [1, 4])
def test_lost_cells_are_measured_before_the_next_look(repeat, monkeypatch):
    run = resumed(repeats="auto", reason="decided", without=(repeat,), lost=(repeat,))
    assert run.left()
    steps = []
    monkeypatch.setattr("harness.run.execute.Stopping.steps", lambda *_: iter([]))
    monkeypatch.setattr("harness.run.execute.Stopping.__init__", lambda *_: None)
    monkeypatch.setattr(run, "_measure_lives", lambda lives, _stopping: steps.extend(lives))
    monkeypatch.setattr(run, "_cool_down", lambda _block: None)
    monkeypatch.setattr(run, "count_as_begun", lambda _lives: None)
    run._steps()
    assert [cell.repeat for block in steps for cell in block.cells] == [repeat, repeat]
