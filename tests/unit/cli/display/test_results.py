"""What stands on standard output after a run: the first screen, everything, or a document."""

import io
import json
import sys
from unittest.mock import Mock

import pytest

from harness.cli.display.results import as_document, show
from harness.cli.display.streams import UnreadError
from harness.cli.typed import ResultForms
from tests.factories.runs import SMALL, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs"), SMALL)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def shown(capsys, run, *, json=False, verbose=False, sketch=None, draw=lambda _folder: ()):
    show(run, ResultForms(json=json, verbose=verbose), sketch, draw)
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_the_first_screen_ends_with_where_the_run_is(capsys, run):
    lines = shown(capsys, run).splitlines()
    assert any("SIMULATED" in line for line in lines)
    place = lines.index(f"run folder: {run.path}")
    assert lines[place - 1] == ""
    assert not any(line.startswith("report:") for line in lines)
    assert "\x1b" not in "".join(lines)
    report = run.path / "report.html"
    drawn = shown(capsys, run, draw=lambda _folder: [report]).splitlines()
    assert drawn == [*lines[: place + 1], f"report:     {report}", *lines[place + 1 :]]


@pytest.mark.parametrize("verbose", [False, True])
def test_the_answer_is_there_before_the_page_is_drawn(capsys, run, verbose):
    whole, parts = shown(capsys, run, verbose=verbose), []

    def draw(_folder):
        parts.append(capsys.readouterr().out)
        return ()

    parts.append(shown(capsys, run, verbose=verbose, draw=draw))
    assert "".join(parts) == whole
    assert parts[0].endswith("\n\n")
    assert parts[1].startswith(f"run folder: {run.path}\n")


def test_the_page_is_drawn_where_nobody_reads_the_answer(run, monkeypatch):
    drawn, closed = [], io.StringIO()
    monkeypatch.setattr(closed, "flush", Mock(side_effect=UnreadError))
    monkeypatch.setattr(sys, "stdout", closed)
    with pytest.raises(UnreadError):
        show(run, ResultForms(json=False, verbose=False), None, lambda folder: drawn.append(folder) or ())
    assert drawn == [run]


def test_verbose_prints_more_and_a_sketch_is_drawn_in_both(capsys, run):
    def sketch(summary, width):
        return f"drawn of {summary.run}, {width} wide"

    drawn = f"drawn of {run.run_id}, 100 wide"
    short, long = (shown(capsys, run, verbose=verbose, sketch=sketch) for verbose in (False, True))
    assert short.count(drawn) == long.count(drawn) == 1
    assert len(long) > len(short)
    assert short.index(drawn) > short.index("backend")
    assert drawn not in shown(capsys, run)


def test_the_document_is_the_summary_with_its_conclusion(capsys, run):
    document = json.loads(shown(capsys, run, json=True))
    conclusion = document.pop("conclusion")
    assert document == run.read_json("summary.json")
    assert {"orders", "next_steps"} <= conclusion.keys()
    assert json.loads(json.dumps(as_document(run)))["conclusion"] == conclusion
