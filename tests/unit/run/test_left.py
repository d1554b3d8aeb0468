"""What a resumed run still asks its engines for: nothing where only its conclusion is missing."""

from types import SimpleNamespace

import pytest

from harness.model import CellResult, LoadPoint, PairVerdict
from harness.model.comparison import Looks
from harness.run.execute import Run
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.verdicts.sequential import LookResult
from tests.factories.documents import made


class Stored:
    """The part of a manifest that says where its looks are."""

    def __init__(self, looks):
        self.document = SimpleNamespace(stopping=looks)

    def write(self, stopping):
        self.document.stopping = stopping


def resumed(*, repeats, reason=None, without=(), lost=()):
    """A run of two servers that has all its cells but some; `reason`: that of looks, if there are any."""
    limits = {"load.concurrency": [2], "load.requests": 16}
    urls = "openai=http://127.0.0.1:9,vllm=http://127.0.0.1:8"
    prepared = prepare(RunOptions("fixed-length", urls, repeats=repeats, agreement=False, overrides=limits))
    looks = Looks(looks=prepared.looks, repeats=0, reason=reason, budget_s=None, spent_s=1.0)
    run = Run(prepared, None, None, Stored(looks if prepared.looks else None))
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
    assert resumed(repeats="auto", reason=None, without=(2, *later)).left()
    assert resumed(repeats="auto", reason="decided", without=(1, *later)).left()


@pytest.mark.parametrize("waits", [False, True])
def test_a_run_that_was_cut_between_its_last_cell_and_a_look_takes_the_look(waits, monkeypatch):
    """It needs its servers where the look leaves a pair open."""
    run = resumed(repeats="auto", reason=None, without=range(3, 50))
    a, b = run.prepared.labels
    pair = made(PairVerdict, a=a, b=b, load=LoadPoint("concurrency", 2), levels=None)
    monkeypatch.setattr(run, "look", lambda: LookResult(0, 0, (pair,) if waits else (), 0))
    for _ in range(2):
        assert run.left() == waits
        stopping = run.manifest.document.stopping
        assert (stopping.repeats, stopping.reason) == (3, None if waits else "decided")


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
