"""Where a pair gets no verdict a terminal is asked and a script gets an error, before anything begins."""

import io
import json
import sys

import pytest

from harness.cli.commands import run_session
from harness.cli.display.result import Result
from harness.cli.main import main
from harness.errors import ExitCode

RUN = ["run", "--scenario", "shared-prefix", "--backends", "vllm,ctranslate2@float32"]
SENTENCE = (
    "vllm and ctranslate2@float32: not comparable, "
    "number type: bfloat16 (vllm), float32 (ctranslate2@float32)"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Where nothing is started; the runs that would have been."""
    runs = []
    monkeypatch.setattr(
        run_session, "run_and_show", lambda prepared, *_rest: runs.append(prepared) or Result()
    )
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return runs


def typed(monkeypatch, answer):
    """What a terminal of 80 columns shows, and the exit code."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    return main(RUN), screen.getvalue()


def test_in_a_script_it_is_an_error_with_the_flag_that_makes_them_equal(begun, capsys):
    assert main(RUN) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert f"  {SENTENCE}\n" in said
    assert "hint: --engine-set dtype=bfloat16 makes them equal; --anyway measures them as they are" in said
    assert begun == []


def test_where_no_flag_makes_them_equal_one_is_to_be_left_out(begun, capsys):
    """MAX has a dtype for GPUs, and computes in float32 on a CPU."""
    assert main([*RUN[:3], "--backends", "vllm,modular-max"]) == ExitCode.USAGE
    hint = capsys.readouterr().err.partition("hint: ")[2]
    assert hint.startswith("where no flag makes them equal, leave one out of --backends; --anyway")


def test_anyway_measures_them(begun):
    assert main([*RUN, "--anyway"]) == ExitCode.OK
    assert len(begun) == 1


def test_made_equal_nothing_is_said(begun, capsys):
    assert main([*RUN, "--engine-set", "dtype=bfloat16"]) == ExitCode.OK
    assert capsys.readouterr().err == ""
    assert len(begun) == 1


@pytest.mark.parametrize(("answer", "runs"), [("y\n", 1), ("YES\n", 1), ("n\n", 0), ("\n", 0), ("", 0)])
def test_a_terminal_is_asked_and_no_is_the_default(begun, monkeypatch, answer, runs):
    code, screen = typed(monkeypatch, answer)
    assert code == (ExitCode.OK if runs else ExitCode.USAGE)
    assert len(begun) == runs
    assert SENTENCE in " ".join(screen.split())
    above, question, _ = screen.partition("measure them all the same? [y/N] ")
    assert question
    assert max(map(len, above.splitlines())) <= 80
    assert ("nothing was downloaded or started" in screen) is not runs


def test_a_dry_run_warns_in_the_same_words(begun, capsys):
    assert main([*RUN, "--dry-run"]) == ExitCode.OK
    assert f"warning: {SENTENCE}" in " ".join(capsys.readouterr().out.split())
    assert main([*RUN, "--dry-run", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["refused"] == [SENTENCE]


def test_the_engines_of_the_articles_are_equal_as_they_are(begun, capsys):
    backends = "vllm,sglang,llamacpp,transformers"
    assert main(["run", "--scenario", "shared-prefix", "--backends", backends]) == ExitCode.OK
    assert capsys.readouterr().err == ""


def test_a_shape_that_one_cannot_be_asked_for_is_known_ahead(begun, capsys):
    run = ["run", "--scenario", "structured-output", "--backends", "vllm,llamacpp"]
    assert main(run) == ExitCode.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert "vllm and llamacpp: not comparable, structured.regex could not be asked of llamacpp" in said
    equal = 'prompts.shapes=["json_schema", "choice"]'
    assert f"hint: --set '{equal}' makes them equal" in said
    assert main([*run, "--set", equal]) == ExitCode.OK
    assert capsys.readouterr().err == ""
    assert len(begun) == 1
