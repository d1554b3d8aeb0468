"""`bench import`: whose results a word names, what is said of the files, and which folders are runs."""

import os
import signal
import tempfile

import pytest

from harness.cli.commands import imports
from harness.cli.commands.imports import Found, made, results_at
from harness.cli.commands.runs_page import opened
from harness.cli.main import main
from harness.errors import ExitCode, SpecError
from harness.imports import TOOLS
from tests.factories import foreign


def named(text):
    return imports._results_named(str(text))


def test_the_help_names_every_tool():
    words = " ".join(imports.EPILOG.split()).casefold()
    missing = [tool for tool in TOOLS if tool.casefold() not in words]
    assert missing == [], "name it in EPILOG of harness/cli/commands/imports.py"


def test_a_word_is_a_file_with_or_without_the_name_of_its_backend(tmp_path):
    file = foreign.write(tmp_path / "r.json", foreign.vllm_summary())
    assert named(file) == Found("server", [file], [])
    assert named(f"vllm@eager={file}") == Found("vllm@eager", [file], [])
    odd = foreign.write(tmp_path / "a=b.json", foreign.vllm_summary())
    assert named(odd) == Found("server", [odd], []), "a file of that name is no name of a backend"


def test_of_a_folder_the_files_of_the_tool_are_taken_and_the_others_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1000")
    for round_of in ("0", "1"):
        lines = foreign.aiperf_lines(int(round_of), requests=6)
        foreign.write_lines(tmp_path / "aiperf" / round_of / "profile_export.jsonl", lines)
        foreign.write(tmp_path / "aiperf" / round_of / "inputs.json", {"data": []})
    found = named(f"vllm={tmp_path / 'aiperf'}")
    assert [path.parent.name for path in found.files] == ["0", "1"]
    assert {path.name for path in found.left_out} == {"inputs.json"}
    folder = made([found], tmp_path / "out", ["vllm=aiperf"], "0.13.0")
    assert folder.read_manifest().command == ("bench", "import", "vllm=aiperf")
    said = " ".join(capsys.readouterr().err.split())
    left_out = f"{tmp_path}/aiperf/0/inputs.json and 1 more of that name: left out: other files have"
    assert left_out in said
    assert f"{tmp_path}/aiperf/0/profile_export.jsonl and 1 more measurement: aiperf 0.13.0: " in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("absent.json", "absent.json: no such file"),
        ("vllm=absent.json", "absent.json: no such file"),
        ("empty", "empty: no result of any tool in this folder"),
        ("vllm=empty", "empty: no result of any tool in this folder"),
        ("results", "results: holds runs of bench, which need no import"),
        ("results/a", "results/a: holds runs of bench, which need no import"),
    ],
)
def test_what_holds_no_result_is_an_error_with_its_path(tmp_path, monkeypatch, text, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("manifest.json", "checksums.json"):
        foreign.write(tmp_path / "results" / "a" / name, {})
    with pytest.raises(SpecError) as caught:
        named(text)
    assert str(caught.value) == says


def test_where_a_run_is_wanted_a_run_is_no_file_of_a_tool(tmp_path):
    file = foreign.write(tmp_path / "tool" / "r.json", foreign.vllm_summary())
    unnamed = foreign.write(tmp_path / "results", foreign.vllm_summary())
    notes = tmp_path / "notes.txt"
    notes.write_text("nothing")
    for inside in ("cells", "run/cells"):
        (tmp_path / "runs" / inside).mkdir(parents=True)
    foreign.write(tmp_path / "run" / "manifest.json", {})
    of_run = foreign.write(tmp_path / "run" / "summary.json", {})
    assert results_at(str(of_run)) == Found("server", [of_run], [])
    foreign.write(tmp_path / "run" / "checksums.json", {})
    assert results_at(str(file)) == Found("server", [file], [])
    assert results_at(str(tmp_path / "tool")) == Found("server", [file], [])
    assert results_at(str(unnamed)) == Found("server", [unnamed], []), "by what stands in it"
    of_cell = foreign.write(tmp_path / "run" / "cells" / "0" / "cell.json", {})
    of_run_too = (of_cell, of_cell.parent, tmp_path / "run" / "cells")
    for other in ("run", "run/vllm"):
        beside = foreign.write(tmp_path / other / "vllm-c4.json", foreign.vllm_summary())
        assert results_at(str(beside)) == Found("server", [beside], []), "another tool's, kept with the run"
    assert results_at(str(beside.parent)) == Found("server", [beside], [])
    history = foreign.write(tmp_path / "history" / "runs.jsonl", {}).parent
    for path in (notes, of_run, *of_run_too, tmp_path / "run", tmp_path / "runs", history, tmp_path / "no"):
        assert results_at(str(path)) is None


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["monday/out/r.json", "tuesday/out/r.json"], ["monday", "tuesday"]),
        (["a/r.json", "b/r.json", "b/c.json"], ["a", "b", "c"]),
        (["a/r.json", "a/b/r.json"], ["a", "b"]),
        (["monday.json", "tuesday.json"], ["monday", "tuesday"]),
        (["a/x/r.json", "a/y/r.json", "b/x/r.json"], ["a-x", "a-y", "b-x"]),
        (["x/r.json", "x/r.yaml"], ["r", "r (2)"]),
    ],
)
def test_files_of_one_name_are_compared_by_the_folders_that_tell_them_apart(tmp_path, files, names):
    paths = [
        str(foreign.write(tmp_path / file, foreign.vllm_summary(number))) for number, file in enumerate(files)
    ]
    assert [run.name for run in opened(paths, tmp_path)] == names


def test_folders_with_long_names_tell_files_apart(tmp_path):
    folders = [f"{first}/{'é' * 100}{second}" for first in ("a" * 100, "b" * 100) for second in "xy"]
    paths = [
        str(foreign.write(tmp_path / folder / "r.json", foreign.vllm_summary(number)))
        for number, folder in enumerate(folders)
    ]
    assert len({run.name for run in opened(paths, tmp_path)}) == 4


@pytest.mark.parametrize("words", [["compare"], ["report", "--as", "vllm"]])
def test_a_job_that_is_stopped_leaves_no_imported_run(words, tmp_path, monkeypatch, capsys):
    """CI runners and `timeout` send SIGTERM."""
    file = foreign.write(tmp_path / "r.json", foreign.vllm_summary())
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    left = []

    def stopped(*_):
        left.extend(temporary.iterdir())
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("harness.imports.imported", stopped)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # else it would end the tests
    try:
        assert main([*words, str(file)]) == ExitCode.INTERRUPTED
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "interrupted" in capsys.readouterr().err
    assert left
    assert not list(temporary.iterdir())
