"""Runs that are compared or drawn together: a page that is written."""

import pytest

from harness import report
from harness.cli.commands import runs_page
from harness.cli.main import main
from harness.errors import ExitCode, SetupError, SpecError
from harness.model import RunComparison
from harness.verdicts import baseline
from tests.factories.documents import made


def test_a_page_that_cannot_be_written_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "page_of_several", lambda *_: "<p>é")
    runs_page.write(tmp_path / "page.html", [], None)
    assert (tmp_path / "page.html").read_bytes() == "<p>é".encode()
    with pytest.raises(SetupError, match=r"no/page\.html: cannot be written: No such file"):
        runs_page.write(tmp_path / "no" / "page.html", [], None)


def test_a_page_replaces_no_file_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "page_of_several", lambda *_: "<p>")
    for name in ("manifest.json", "checksums.json"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(SpecError, match=r"--html .*manifest\.json: would be a file of the run"):
        runs_page.write(tmp_path / "manifest.json", [], None)
    assert (tmp_path / "manifest.json").read_text() == "kept"


def test_a_page_of_simulated_runs_is_printed_as_one(monkeypatch, capsys):
    """The screen said how much slower an engine is that nobody had measured."""
    runs = [{"name": "monday", "simulated": True}, {"name": "tuesday", "simulated": False}]
    monkeypatch.setattr(runs_page, "opened", lambda *_: [])
    monkeypatch.setattr(baseline, "compare_runs", lambda _runs: made(RunComparison, {"runs": runs}))
    monkeypatch.setattr(runs_page, "write", lambda *_: None)
    assert main(["report", "monday", "tuesday", "--html", "page.html"]) == ExitCode.OK
    marked = [line for line in capsys.readouterr().out.splitlines() if "SIMULATED" in line]
    assert [line.split()[0] for line in marked] == ["monday"]
