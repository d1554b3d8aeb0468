"""Two engines loaded at once: what stops one of them is recorded as its own failure."""

import os
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.errors import SetupError
from harness.run.execute import Run
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare

UI = SimpleNamespace(note=lambda text: None, stage=lambda text: None)


@pytest.mark.parametrize("refuses", [0, 1])
def test_an_engine_that_is_not_ready_is_blamed_and_its_partner_is_still_loaded(
    tmp_path, monkeypatch, refuses
):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    options = RunOptions("fixed-length", "vllm,sglang", launch="simulate", pairing="duet", out=tmp_path)
    run = Run.start(prepare(options), UI)
    loaded = []

    def ready(cell, *_):
        if cell.backend == refuses:
            raise SetupError("no prompts")

    def load(cell, *_):
        loaded.append(cell.backend)
        raise SetupError("connection refused")

    monkeypatch.setattr(run, "workloads_of", lambda *_: None)
    monkeypatch.setattr(run, "_ready", ready)
    monkeypatch.setattr(run, "_load", load)
    engine = SimpleNamespace(end_as_error=lambda label: nullcontext())
    blocks = [next(b for b in run.prepared.plan if b.backend == backend) for backend in (0, 1)]
    assert run._duet(blocks, {0: engine, 1: engine}) == {0, 1}
    assert loaded == [1 - refuses]
    labels = run.prepared.labels
    assert [(one.backend, one.error) for one in run.manifest.document.failures] == [
        (labels[refuses], "no prompts"),
        (labels[1 - refuses], "connection refused"),
    ]
