"""`bench compare`: the exit code of each gate, and where its lines stand. Verdicts are tested elsewhere."""

import json

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from tests.factories.runs import TWO, Engine, Shape, make_run

SLOWER = (Engine("llamacpp", "llama.cpp", 20.0, 12.0, version="b11550"), TWO[1])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Of four repeats, the later one with a slower engine; and one of a single repeat."""
    shapes = (Shape(TWO, (4,), repeats=4), Shape(SLOWER, (4,), repeats=4), Shape(TWO, (4,)))
    return [str(make_run(tmp_path_factory.mktemp("runs"), shape).path) for shape in shapes]


def compared(capsys, *words):
    code = main(["compare", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_gate_over_too_few_runs_fails_unless_that_is_accepted(runs, capsys):
    old, _new, single = runs
    words = (old, single, "--allow-missing", "llamacpp", "--allow-missing", "llamacpp@no-prefix-cache")
    assert compared(capsys, *words, "--fail-on", "slower")[0] == ExitCode.LIMIT_FAILED
    assert compared(capsys, *words, "--fail-on", "slower", "--undecided", "pass")[0] == ExitCode.OK


def test_what_is_slower_fails_whatever_is_accepted_as_undecided(runs, capsys):
    old, new, _single = runs
    words = (old, new, "--fail-on", "slower", "--undecided", "pass")
    assert compared(capsys, *words)[0] == ExitCode.LIMIT_FAILED
    assert compared(capsys, new, old, "--fail-on", "slower", "--undecided", "pass")[0] == ExitCode.OK
    swapped = compared(capsys, new, old, "--baseline", old, "--fail-on", "slower", "--undecided", "pass")
    assert swapped[0] == ExitCode.LIMIT_FAILED


def test_a_floor_above_the_difference_passes(runs, capsys):
    old, new, _single = runs
    words = (old, new, "--fail-on", "slower", "--undecided", "pass", "--floor")
    assert compared(capsys, *words, "200")[0] == ExitCode.OK
    assert compared(capsys, *words, "3")[0] == ExitCode.LIMIT_FAILED


def test_the_gate_stands_below_the_comparison_and_not_in_a_document(runs, capsys):
    old, new, _single = runs
    _code, page, _err = compared(capsys, old, new, "--fail-on", "slower", "--markdown")
    gate = page.rstrip().splitlines()
    first = next(index for index, line in enumerate(gate) if line.startswith("**gate"))
    assert gate[first].endswith("**")
    assert all(line.startswith("- ") for line in gate[first + 2 :])
    code, text, _err = compared(capsys, old, new, "--fail-on", "slower", "--json")
    document = json.loads(text)
    assert code == ExitCode.LIMIT_FAILED
    assert {"pairs", "gate", "conclusion"} <= document.keys()


def test_a_gate_on_answers_needs_questions(runs, capsys):
    code, _out, err = compared(capsys, *runs[:2], "--fail-on", "accuracy.drop")
    assert code == ExitCode.USAGE
    assert err.splitlines()[-2:] == [
        "error: --fail-on accuracy.drop: no questions were asked in these runs",
        "hint: measure them with --accuracy",
    ]
