"""Ctrl-C while an engine answers the agreement questions: what it answered is kept, and no engine follows."""

import signal
from types import SimpleNamespace

import pytest

from harness.errors import SetupError
from harness.model import AskedBackend
from harness.run import execute
from harness.run.execute import Run
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from tests.factories.documents import made

ENGINE = SimpleNamespace(exited=lambda suspected: None)
UI = SimpleNamespace(note=lambda text: None, stage=lambda text: None)
VALUES = {"gives": "vectors", "alone": {"q": [1.0]}, "together": {}}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The run after its first engine was asked, with a signal just before `answer` returned."""

    def ask(scenario, asks, answer):
        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)
            return answer()

        monkeypatch.setattr(execute, asks, interrupted)
        options = RunOptions(scenario, "vllm,llamacpp", launch="simulate", agreement=True, out=tmp_path)
        run = Run.start(prepare(options), UI)
        run.workloads = SimpleNamespace(between=None)
        with run.interrupts:
            run._agreement(run.prepared.plan[0], ENGINE)
        return run

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(execute, "reference_values", lambda *_: {})
    return ask


@pytest.mark.parametrize(
    ("scenario", "asks", "answers"),
    [("embed-queries", "ask_values", {"values": VALUES}), ("fixed-length", "ask_all", {})],
)
def test_an_interruption_after_the_last_answer_ends_the_run(asked, scenario, asks, answers):
    run = asked(scenario, asks, lambda: made(AskedBackend, answers))
    assert run.interrupted
    assert run.folder.read_answers()[1].keys() == {run.prepared.labels[0]}


def test_an_interruption_before_an_answer_that_fails_ends_the_run(asked):
    def refuse():
        raise SetupError("no vectors")

    run = asked("embed-queries", "ask_values", refuse)
    assert run.interrupted
    assert run.folder.read_answers()[1] == {}
