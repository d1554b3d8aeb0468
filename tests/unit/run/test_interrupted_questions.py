"""Ctrl-C while an engine answers the agreement questions: what it answered is kept, and no engine follows."""

import signal
from types import SimpleNamespace

import pytest

from harness.errors import SetupError
from harness.model import AskedBackend
from harness.run import questions
from harness.run.execute import Run
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from tests.factories.documents import made

ENGINE = SimpleNamespace(liveness=SimpleNamespace(look=lambda suspected: None))
UI = SimpleNamespace(note=lambda text: None, stage=lambda text: None)
VALUES = {"gives": "vectors", "alone": {"q": [1.0]}, "together": {}}


def _no_library(*_):
    raise SetupError("no library here")


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The run after its first engine was asked, with a signal just before `answer` returned."""

    def ask(scenario, asks, answer):
        def interrupted(*_):
            signal.raise_signal(signal.SIGINT)
            return answer()

        monkeypatch.setattr(questions, asks, interrupted)
        options = RunOptions(scenario, "vllm,llamacpp", launch="simulate", agreement=True, out=tmp_path)
        run = Run.start(prepare(options), UI)
        with run.interrupts:
            backend = run.prepared.of(run.prepared.plan[0])
            run.interrupted = run.questions.ask(backend, ENGINE, lambda: SimpleNamespace(between=None))
        return run

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(questions, "reference_values", lambda *_: {})
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


def test_a_reference_that_was_computed_later_ends_the_warning_that_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(questions, "ask_values", lambda *_: made(AskedBackend, {"values": VALUES}))
    options = RunOptions("embed-queries", "vllm,llamacpp", launch="simulate", agreement=True, out=tmp_path)
    run = Run.start(prepare(options), UI)
    of_library = {"library": made(AskedBackend, {"values": {**VALUES, "library": "library"}})}
    warned = []
    for block, computed in zip(run.prepared.plan, (_no_library, lambda *_: of_library), strict=False):
        monkeypatch.setattr(questions, "reference_values", computed)
        run.questions.ask(run.prepared.of(block), ENGINE, lambda: SimpleNamespace(between=None))
        warned.append([one.text for one in run.manifest.document.warnings if one.code == "agreement-missing"])
    assert warned == [["reference: no library here"], []]
