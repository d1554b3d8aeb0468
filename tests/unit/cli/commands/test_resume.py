"""`bench resume`: which runs have something missing, and what a person is asked about a folder."""

import io
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.cli.commands import run_session
from harness.cli.commands.resume import _missing
from harness.cli.commands.run_session import _show, resumed
from harness.cli.main import main
from harness.errors import ExitCode, SpecError
from harness.model import as_json
from harness.store import RunFolder
from tests.bench.audit.gates import change_json, mend
from tests.factories import documents
from tests.factories.runs import SMALL, copy_of, make_run

OPTIONS = {"scenario": "fixed-length", "backends": "openai=http://203.0.113.9", "out": "results"}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("runs"), SMALL)
    folder.files.make_folder("workloads")
    folder.files.write("workloads/c2-r0.jsonl.gz", b"requests")
    folder.files.write("logs/llamacpp.log", b"started")
    mend(folder.path)
    return folder


@pytest.fixture
def run(whole_run, tmp_path, monkeypatch):
    """A copy to be changed, which this machine did not begin."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return copy_of(whole_run, tmp_path)


def begun(folder, **changes):
    change_json(folder.path / "manifest.json", lambda manifest: manifest.update(changes))
    mend(folder.path)


def test_a_whole_run_has_nothing_to_resume(run, capsys):
    assert main(["resume", str(run.path)]) == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert "nothing is missing: every cell was measured" in shown
    assert f"`bench report {run.path}` makes its table and report again" in shown
    named = run.path.rename(run.path.with_name("$(id)"))
    assert main(["resume", str(named)]) == ExitCode.USAGE
    assert f"`bench report '{named}'` makes" in capsys.readouterr().err


def test_the_command_that_goes_on_has_a_line_to_itself(monkeypatch, capsys):
    """A terminal of 80 columns wraps between words, and half a command is another one."""
    monkeypatch.setenv("COLUMNS", "80")
    path = "results/20261129T152715Z-first-look-385936"
    interrupted = SimpleNamespace(folder=SimpleNamespace(path=path), cells=[], interrupted=True)
    _show(interrupted, SimpleNamespace(json=False), None)
    assert capsys.readouterr().err.splitlines()[-1] == f"  bench resume {path}"
    interrupted.folder.path = "my results/x"
    _show(interrupted, SimpleNamespace(json=False), None)
    assert capsys.readouterr().err.splitlines()[-1] == "  bench resume 'my results/x'"


def test_a_run_whose_report_was_interrupted_says_how_to_make_it(monkeypatch, capsys):
    """Every cell was measured: there is nothing to resume, and the path was not printed yet. Two labels of
    one server have one reason for their launch.
    """

    def stopped(_folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_session, "check_machine", lambda _prepared, _say: None)
    monkeypatch.setattr(run_session.report, "build", stopped)
    once = SimpleNamespace(launch=SimpleNamespace(why="because a URL was given"))
    folder = SimpleNamespace(path="results/RUN")
    run = SimpleNamespace(folder=folder, cells=["a"], interrupted=False, execute=lambda: None)
    flags = SimpleNamespace(verbose=False, metrics_port=None, no_report=False, json=False)
    prepared = SimpleNamespace(backends=[once, once])
    code = run_session.run_and_show(prepared, lambda _ui: nullcontext(run), flags)
    shown = capsys.readouterr().err
    assert code == ExitCode.INTERRUPTED
    assert shown.endswith("; to make the report:\n  bench report results/RUN\n")
    assert shown.count("because a URL was given") == 1


def test_a_run_that_goes_on_is_left_alone(run, capsys):
    begun(run, state="running")
    with run.held():
        assert main(["resume", str(run.path)]) == ExitCode.USAGE
    assert "is still running" in capsys.readouterr().err


def test_a_run_that_another_bench_resumes_meanwhile_keeps_its_cells(run, monkeypatch):
    """Both saw that nobody held it. The later one moved the cell that the other was measuring."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    run.files.make_folder("cells/005-under-way")
    with run.held(), pytest.raises(SpecError, match="another bench"), resumed(None, run, None):
        pass
    assert "005-under-way" in run.files.children("cells")


FAILURE = {"backend": "llamacpp", "repeat": 0, "error": "no port"}
UNASKED = {"code": "agreement-missing", "text": "llamacpp: the engine died", "hint": "see its log"}
LOOKS = {"looks": [3, 5, 10], "repeats": 3}


@pytest.mark.parametrize(
    ("path", "changes", "missing"),
    [
        (None, {}, False),
        (None, {"failures": [FAILURE]}, True),
        (None, {"warnings": [UNASKED | {"backend": "llamacpp"}]}, True),
        (None, {"warnings": [UNASKED]}, False),  # of the reference, which is no backend
        ("cells/{}/cell.json", {}, True),
        ("cells/{}/events.parquet", {}, True),
        ("workloads/c2-r0.jsonl.gz", {}, True),
        ("summary.json", {}, False),  # a report makes it again
        ("logs/llamacpp.log", {}, False),
    ],
)
def test_cells_that_were_cut_short_and_engines_that_did_not_start_are_missing(run, path, changes, missing):
    manifest = documents.changed(run.read_manifest(), **changes)
    if path:
        (run.path / path.format(run.cells()[0])).unlink()
    assert _missing(run, manifest) is missing


def test_repeats_that_were_not_needed_are_not_missing(run):
    cells = [*run.cells(), "009-llamacpp-c2-r4"]
    assert _missing(run, documents.changed(run.read_manifest(), order=cells))
    stopped = documents.changed(run.read_manifest(), order=cells, stopping=LOOKS)
    assert not _missing(run, stopped)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("answer", "says"),
    [("n\n", "not resumed"), ("\n", "not resumed"), ("y\n", "has changed since this run began")],
)
def test_a_person_sees_what_a_folder_asks_for_and_decides(run, monkeypatch, answer, says):
    begun(run, state="interrupted", options=OPTIONS)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    assert main(["resume", str(run.path)]) == ExitCode.USAGE
    shown, question, after = screen.getvalue().partition("resume with them? [y/N] ")
    assert question
    assert "was not begun with these options on this machine" in shown
    assert "backends = openai=http://203.0.113.9" in shown
    assert says in after


def test_a_run_of_before_options_were_kept_cannot_be_resumed(run, capsys):
    begun(run, state="interrupted")
    assert as_json(RunFolder(run.path).read_manifest())["options"] == {}
    assert main(["resume", str(run.path)]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "manifest.json: does not say with which options it was begun" in said
    assert "hint: start a new run with `bench run`" in said
