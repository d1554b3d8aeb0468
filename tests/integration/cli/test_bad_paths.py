"""A path that is not what a command needs is one clear error: never a traceback, never a changed file."""

import os

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from tests.long import others_long

NAMES = {
    "empty": "",
    "root": "/",
    "here": ".",
    "above": "..",
    "absolute": "/no/such/run",
    "file": "/etc/passwd",
    "below-a-file": "/etc/passwd/run",
    "folder-without-manifest": "empty-folder",
    "glob": "*",
    "open-bracket": "[",
    "double-glob": "**",
    "long": "x" * 5000,
    "nul": "a\0b",
    "newline": "a\nb",
    "surrogate": "a\udce4b",  # bytes that are not UTF-8, as the shell hands them over
}
READING = {
    "compare": ["compare", "{}"],
    "compare-two": ["compare", "{}", "{}"],
    "report": ["report", "{}"],
    "report-as": ["report", "{}", "--as", "vllm"],
    "resume": ["resume", "{}"],
    "claims": ["claims", "{}"],
    "history": ["history", "{}"],
    "nightly": ["nightly", "{}"],
    "query-run": ["query", "select 1", "--run", "{}"],
    "query-out": ["query", "select 1", "--out", "{}"],
    "validate": ["validate", "{}"],
    "scenario": ["run", "--scenario", "{}", "--backends", "truth", "--dry-run"],
    "scenario-file": ["run", "--scenario", "{}.toml", "--backends", "truth", "--dry-run"],
    "backend-file": ["run", "--scenario", "fixed-length", "--backends", "{}.toml", "--dry-run"],
    "trace": ["run", "--trace", "{}", "--backends", "truth", "--dry-run"],
    "prices": ["run", "--scenario", "fixed-length", "--backends", "truth", "--prices", "{}", "--dry-run"],
    "model": ["run", "--scenario", "fixed-length", "--backends", "llamacpp", "--model", "{}/", "--dry-run"],
    "model-file": [
        *("run", "--scenario", "fixed-length", "--backends", "llamacpp"),
        *("--model", "{}.gguf", "--dry-run"),
    ],
}
WRITING = {
    "compose": ["compose", "--write", "{}"],
    "history": ["history", "{run}", "--out", "{}"],
    "run": ["run", "--scenario", "fixed-length", "--backends", "truth", "--out", "{}"],
}
NOT_WRITABLE = ("file", "below-a-file", "long", "nul")


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    (tmp_path / "empty-folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_error(capsys):
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("error: ")]) == 1
    assert max(map(len, lines)) < 500
    return lines


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_what_cannot_be_read_is_one_error(command, name, capsys):
    assert main([word.format(name) for word in command]) in (ExitCode.USAGE, ExitCode.SETUP)
    one_error(capsys)


def is_quick(command, name):
    """Whether the case is: `bench compose` takes a second to find out."""
    return command != "compose" or name == "below-a-file"


CASES = [(command, name) for command in WRITING for name in NOT_WRITABLE]


@pytest.mark.parametrize(("command", "name"), [*others_long(CASES, is_quick)])
def test_where_nothing_can_be_written_is_one_error(command, name, capsys):
    words = [word.format(NAMES[name], run="/no/such/run") for word in WRITING[command]]
    assert main(words) in (ExitCode.USAGE, ExitCode.SETUP)
    one_error(capsys)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_folder_of_runs_that_is_none_has_no_runs(name, capsys):
    assert main(["list", "runs", "--out", name]) in (ExitCode.OK, ExitCode.USAGE)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES, ids=NAMES)
def test_a_dry_run_needs_no_folder_of_runs_but_room_for_one(name, capsys):
    words = ["run", "--scenario", "fixed-length", "--backends", "truth", "--dry-run", "--out", NAMES[name]]
    refused = name in (*NOT_WRITABLE, "surrogate") or (NAMES[name][:1] == "/" and not os.access("/", os.W_OK))
    refusal = ExitCode.USAGE if name == "surrogate" else ExitCode.SETUP  # no path that can be stored
    assert main(words) == (refusal if refused else ExitCode.OK)
    if refused:
        one_error(capsys)


def test_the_beginning_of_a_name_is_no_pattern(somewhere, capsys):
    for name in ("2026-a[1]", "2026-a1"):
        (somewhere / "results" / name).mkdir(parents=True)
    assert main(["report", "2026-a[1"]) == ExitCode.USAGE
    assert str(somewhere / "results") not in (said := capsys.readouterr().err)
    assert "results/2026-a[1]: has no manifest.json" in said
    assert main(["report", "2026"]) == ExitCode.USAGE
    assert "matches several runs: 2026-a1, 2026-a[1]" in capsys.readouterr().err


def test_a_file_is_told_from_a_missing_run(capsys):
    for name, what in (("/etc/passwd", "is a file, not the folder of a run"), ("/no/such", "no such run")):
        assert main(["compare", name]) == ExitCode.USAGE
        assert f"error: {name}: {what}" in capsys.readouterr().err


def test_a_name_with_a_line_break_is_told_in_full(capsys):
    main(["compare", "a\nb\x1b[31m"])
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert "\\x1b[31m" in said


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 100_000, '{"schema": 1}', '{"schema": 1, "run": []}', "\ufeff"]
)
def test_a_manifest_of_any_content_is_one_error(text, somewhere, capsys):
    (somewhere / "empty-folder" / "manifest.json").write_text(text)
    assert main(["resume", "empty-folder"]) == ExitCode.USAGE
    one_error(capsys)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "\ufeff", ""])
def test_a_model_folder_of_any_content_is_one_error(text, somewhere, capsys):
    (somewhere / "empty-folder" / "config.json").write_text(text)
    what = ("--scenario", "fixed-length", "--backends", "vllm", "--model", "empty-folder/", "--dry-run")
    assert main(["run", *what]) == ExitCode.USAGE
    one_error(capsys)


def test_a_folder_that_may_not_be_read_is_one_error(somewhere, capsys, monkeypatch):
    def refused(*_arguments, **_named):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_text", refused)  # root may read everything
    assert main(["report", "empty-folder"]) == ExitCode.USAGE
    one_error(capsys)
