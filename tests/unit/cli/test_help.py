"""`--help` fits a terminal of 80 columns, and a mistyped word gets the nearest ones."""

import re
import shlex
from pathlib import Path

import pytest

from harness.cli.display.output import printed_command
from harness.cli.flags.parsers import ADDRESSED, COMMANDS, EPILOG, command_parser
from harness.cli.main import main
from harness.errors import ExitCode


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_no_line_of_a_help_is_wider_than_the_terminal(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*([command] if command else []), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert any(line.startswith("usage:") for line in lines)


def test_help_and_page_list_every_exit_code():
    page = Path(__file__).parents[3] / "docs" / "commands.md"
    table = page.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    codes = [*ExitCode]
    assert [int(code) for code in re.findall(r"^  (\d+) ", EPILOG, re.M)] == codes
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.M)] == codes


def test_help_of_two_urls_says_for_which_of_them_a_value_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([ADDRESSED, "--help"])
    out = capsys.readouterr().out
    assert "of two URLs a value goes to both, unless the name of one is before it" in out
    assert "BACKEND=" not in out


def test_examples_keep_their_lines_and_paragraphs_are_filled(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([ADDRESSED, "--help"])
    out = capsys.readouterr().out
    assert "\n  bench http://127.0.0.1:8000\n" in out
    assert "mlx-\n" not in out


@pytest.mark.parametrize(
    ("given", "error", "hint"),
    [
        (["rnu"], "unknown command 'rnu'", "did you mean 'run'?"),
        (["run", "--conccurency", "1"], "unknown option '--conccurency'", "did you mean '--concurrency'?"),
        (["list", "sceanrios"], "argument WHAT: 'sceanrios' is not", "did you mean 'scenarios'?"),
        (["run", "--launch", "simlate"], "argument --launch: 'simlate' is not", "did you mean 'simulate'?"),
        (["run", "--launch", "zzz"], "argument --launch: 'zzz' is not", "known: attach, auto, compose"),
        (["run", "--scenario", "first-look"], "arguments are required: --backends", "`bench run --help`"),
        (["run", "--backends", "vllm"], "--scenario is required", "`bench list scenarios`"),
    ],
)
def test_a_mistake_is_one_line_and_what_to_do(given, error, hint, capsys):
    assert main(given) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert error in first
    assert hint in second


def test_a_command_is_broken_between_words_on_a_terminal_and_whole_in_a_pipe(monkeypatch):
    words = ["bench", "run", "--scenario", "first-look", "--backends", "vllm=http://127.0.0.1:8000", "a b"]
    monkeypatch.setenv("COLUMNS", "60")
    assert printed_command("the same as: ", words) == f"the same as: {shlex.join(words)}"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert printed_command("", words).startswith("bench")
    printed = printed_command("the same as: ", words)
    assert max(map(len, printed.splitlines())) <= 60
    assert len(printed.splitlines()) > 1
    assert not [line for line in printed.splitlines() if line.removesuffix(" \\").endswith("--backends")]
    assert shlex.split(printed.replace("\\\n", "").removeprefix("the same as:")) == words


@pytest.mark.parametrize("chars", [54, 55, 56, 57, 114, 115, 116, 117])
def test_a_break_is_never_alone_on_a_row_of_the_terminal(monkeypatch, chars):
    """The terminal breaks a long URL itself, so that its end may be anywhere in a row."""
    words = ["bench", "run", "--backends", "x" * chars, "--concurrency", "4", "--output-tokens", "64"]
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    printed = printed_command("the same as: ", words)
    rows = [line[start : start + 60] for line in printed.splitlines() for start in range(0, len(line), 60)]
    assert not [row for row in rows if row.strip() == "\\"]
    assert shlex.split(printed.replace("\\\n", "").removeprefix("the same as:")) == words


def test_a_first_call_names_commands_that_parse_and_fit_the_terminal(capsys):
    assert main([]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    commands = [shlex.split(line)[1:] for line in lines if line.startswith(" bench ")]
    assert ["run", "--scenario", "first-look", "--backends", "llamacpp"] in commands
    for command, *arguments in commands:
        if command in COMMANDS:
            command_parser(command).parse_args(arguments)
