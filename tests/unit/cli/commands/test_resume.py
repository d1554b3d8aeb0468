"""`bench resume`: which runs have something missing, and what a person is asked about a folder."""

import io
import json
import shutil
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from harness.cli.commands import run_session
from harness.cli.commands.resume import _missing
from harness.cli.commands.run_session import resumed
from harness.cli.display.result import put
from harness.cli.main import main
from harness.cli.typed import RunOutput
from harness.errors import ExitCode, SpecError, StorageError
from harness.model import as_json
from harness.store import RunFolder
from tests.bench.audit.gates import change_json, mend
from tests.factories import documents
from tests.factories.runs import SMALL, copy_of, edit_summary, make_run

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


@pytest.fixture
def ended(monkeypatch):
    """Runs `bench run` from the end of its last cell on. Two labels of one engine have one reason for their
    launch; a running server has one that nobody needs."""

    def code(folder, *, cells=("a",), interrupted=False, as_json=False):
        monkeypatch.setattr(run_session, "check_machine", lambda _prepared, _say: None)
        once = SimpleNamespace(launch=SimpleNamespace(why="it runs on the CPU", mode="process"))
        given = SimpleNamespace(launch=SimpleNamespace(why="because a URL was given", mode="attach"))
        run = SimpleNamespace(folder=folder, cells=cells, interrupted=interrupted, execute=lambda: None)
        flags = RunOutput(verbose=False, metrics_port=None, no_report=False, json=as_json)
        prepared = SimpleNamespace(backends=[once, given, once])
        result = run_session.run_and_show(prepared, lambda _ui: nullcontext(run), flags)
        put(result, as_json=as_json)
        return result.code

    return code


@pytest.mark.parametrize(
    ("path", "quoted"),
    [
        ("results/20261129T152715Z-first-look-385936", "results/20261129T152715Z-first-look-385936"),
        ("my results/x", "'my results/x'"),
    ],
)
def test_the_command_that_goes_on_has_a_line_to_itself(ended, monkeypatch, capsys, path, quoted):
    """A terminal of 80 columns wraps between words, and half a command is another one."""
    monkeypatch.setenv("COLUMNS", "80")
    code = ended(SimpleNamespace(path=path), cells=(), interrupted=True)
    assert code == ExitCode.INTERRUPTED
    assert capsys.readouterr().err.splitlines()[-1] == f"  bench resume {quoted}"


def test_a_narrow_terminal_does_not_break_that_command(ended, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "40")
    ended(SimpleNamespace(path="my results/20261129T152715Z-first-look-385936"), cells=(), interrupted=True)
    *_, kept, to, command = screen.getvalue().splitlines()
    assert command == "  bench resume 'my results/20261129T152715Z-first-look-385936'"
    assert f"{kept} {to.strip()}".endswith("interrupted, not measured; to measure the rest:")


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_terminal_shows_the_command_once(ended, run, monkeypatch, on_terminal):
    """It stood below the table and again at the end. Where the table goes to a file, the end has it too."""
    edit_summary(run, state="interrupted")
    table, errors = Terminal() if on_terminal else io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", table)
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setattr(run_session.report, "build", lambda _folder: [])
    assert ended(run, interrupted=True) == ExitCode.INTERRUPTED
    command = f"bench resume {run.path}"
    assert " ".join(table.getvalue().replace("\\\n", "").split()).count(command) == 1
    assert errors.getvalue().count(command) == (0 if on_terminal else 1)
    assert "interrupted: what was measured is kept" in errors.getvalue()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_whose_report_was_interrupted_says_how_to_make_it(ended, run, monkeypatch, capsys, as_json):
    """Every cell was measured: there is an answer, and nothing to resume."""
    answered = []

    def stopped(_folder):
        answered.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    monkeypatch.setattr(run_session.report, "build", stopped)
    assert ended(run, as_json=as_json) == ExitCode.INTERRUPTED
    shown = capsys.readouterr()
    assert shown.err.endswith(f"; to make the report:\n  bench report {run.path}\n")
    if as_json:
        assert answered == [""]
        assert json.loads(shown.out)["run"] == run.run_id
    else:
        assert "SIMULATED" in answered[0]
        assert f"run folder: {run.path}" in shown.out
        assert "report: " not in shown.out


def test_a_reason_of_two_backends_is_printed_once(ended, run, monkeypatch, capsys):
    monkeypatch.setattr(run_session.report, "build", lambda _folder: [])
    ended(run, interrupted=True)
    shown = capsys.readouterr().err
    assert (shown.count("it runs on the CPU"), shown.count("because a URL was given")) == (1, 0)


def test_a_report_that_finds_no_room_leaves_the_answer(ended, run, monkeypatch, capsys):
    def full(folder):
        raise StorageError("no space left on the disk", where=f"{folder.path}/plots", hint="choose another")

    monkeypatch.setattr(run_session.report, "build", full)
    with pytest.raises(StorageError) as failed:
        ended(run)
    assert f"`bench report {run.path}` makes the report" in failed.value.hint
    assert str(failed.value) == f"{run.path}/plots: no space left on the disk"
    shown = capsys.readouterr().out
    assert shown.index("SIMULATED") < shown.index(f"run folder: {run.path}")
    with pytest.raises(StorageError):
        ended(run, as_json=True)
    assert capsys.readouterr().out == ""  # the error is the document


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


def test_an_invalid_cell_is_measured_and_only_a_new_run_measures_it_again(run, capsys):
    cells = run.read_json("summary.json")["cells"]
    for cell in cells[:2]:
        cell["validity"]["verdict"] = "INVALID"
    change_json(run.path / "summary.json", lambda summary: summary.update(cells=cells))
    mend(run.path)
    assert main(["resume", str(run.path)]) == ExitCode.USAGE
    assert "hint: only a new run measures 2 INVALID cells again; `bench report" in capsys.readouterr().err


def test_cells_before_the_first_look_are_missing_where_an_engine_died(run):
    """Each is needed for the look; the repeats after it are only those that it asked for."""
    order, stored = [*run.cells(), "009-llamacpp-c2-r2", "010-llamacpp-c2-r3"], run.read_manifest()
    for repeats, missing in ((3, True), (2, False), (0, False)):
        stopped = documents.changed(stored, order=order, stopping=LOOKS | {"repeats": repeats})
        assert _missing(run, stopped) is missing
    in_blocks = documents.changed(stored, order=order, stopping=LOOKS | {"blocks": [4, 4, 4]})
    assert not _missing(run, in_blocks)


def test_a_cell_that_was_measured_after_the_first_look_and_lost_is_missing(run):
    (first, *_), stored = run.cells(), run.read_manifest()
    in_blocks = documents.changed(stored, stopping=LOOKS | {"blocks": [4, 4, 4]})
    assert not _missing(run, in_blocks)
    shutil.rmtree(run.path / "cells" / first)
    assert _missing(run, in_blocks)


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
