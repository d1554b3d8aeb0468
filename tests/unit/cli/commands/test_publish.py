"""`bench publish`: which entries and files of which runs a tracker gets."""

import json
import sys

import pytest

from harness.cli.main import main
from harness.errors import ExitCode
from harness.model import Manifest
from harness.report.exchange import trackers
from harness.store import tables
from tests.factories import documents
from tests.factories.runs import TWO, Shape, copy_of, edit_summary, make_run
from tests.factories.summaries import cell, summary


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    shape = Shape(TWO[:1], concurrency=(2,), repeats=3, requests=6, output_tokens=4)
    return make_run(tmp_path_factory.mktemp("runs"), shape)


@pytest.fixture
def tracker(monkeypatch):
    """What it was given."""
    given = []
    monkeypatch.setitem(trackers.TRACKERS, "mlflow", lambda *logged: given.append(logged))
    return given


def test_each_backend_and_load_is_an_entry_with_the_files_that_there_are(made, tracker, capsys):
    words = ["--to", "mlflow", "--at", "http://127.0.0.1:5000", "--project", "mine"]
    assert main(["publish", str(made.path), *words]) == ExitCode.OK
    assert capsys.readouterr().out == f"{made.run_id}: entries in project mine of mlflow: 1\n"
    ((logged, files, place, project),) = tracker
    assert (place, project) == ("http://127.0.0.1:5000", "mine")
    assert [path.name for path in files] == ["summary.json"]  # no report was made
    (entry,) = logged
    assert entry.name == f"{made.run_id} llamacpp concurrency 2"
    assert (entry.settings["load_value"], entry.settings["repeats"]) == (2, 3)
    low, middle, high = (entry.figures[f"ttft_ms.p50{end}"] for end in (".low", "", ".high"))
    assert low < middle < high


def test_every_run_is_published_by_its_name(made, tracker, capsys):
    words = ["--to", "mlflow", "--out", str(made.path.parent)]
    assert main(["publish", "20261120", made.run_id, *words]) == ExitCode.OK
    assert len(tracker) == len(capsys.readouterr().out.splitlines()) == 2


def test_a_run_without_a_valid_cell_is_an_error(made, tracker, tmp_path, capsys):
    """0 entries were published, with exit code 0."""
    spoiled = copy_of(made, tmp_path)
    edit_summary(spoiled, estimates=[])
    assert main(["publish", str(spoiled.path), "--to", "mlflow"]) == ExitCode.USAGE
    assert f"error: {made.run_id}: no cell is valid, so there is no figure" in capsys.readouterr().err
    assert tracker == []


def test_a_cost_has_its_currency():
    """A figure of 0.79 was dollars or euros."""
    price = {"per_hour": 3.8, "currency": "EUR", "covers": "the machine", "source": "--price-per-hour"}
    estimate = {"label": "vllm", "load": {"kind": "concurrency", "value": 4}, "runs": 1, "method": "runs"}
    estimate |= {"metric": "cost_per_million_output_tokens", "interval": [None, 0.79, None]}
    paid = summary(cell("vllm", cost={"price": price}), estimates=[estimate])
    (entry,) = trackers.entries(paid)
    assert entry.settings["currency"] == "EUR"
    (row,) = tables.cell_rows("run", paid, documents.made(Manifest))
    assert row[list(tables.CELLS).index("currency")] == "EUR"


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tracker_that_is_not_installed_is_an_error_with_its_extra(made, monkeypatch, capsys, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert main(["publish", str(made.path), "--to", name]) == ExitCode.SETUP
    assert capsys.readouterr().err.splitlines() == [
        f"error: {name} is not installed",
        f"hint: pip install './llm-servebench[{name}]', where ./llm-servebench is a checkout",
    ]


def test_a_run_that_is_not_there_is_an_error(tracker, tmp_path, capsys):
    assert main(["publish", "x", "--to", "mlflow", "--out", str(tmp_path)]) == ExitCode.USAGE
    assert "error: x: no such run" in capsys.readouterr().err
    assert tracker == []


def test_the_document_has_the_entries_of_every_run(made, tracker, capsys):
    words = ["--to", "mlflow", "--project", "mine", "--json"]
    assert main(["publish", str(made.path), *words]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {
        "to": "mlflow",
        "project": "mine",
        "runs": [{"run": made.run_id, "entries": 1}],
    }
