"""Runs that are compared or drawn together: a page that is written."""

import pytest

from harness import report
from harness.cli.commands import runs_page
from harness.errors import SetupError, SpecError


def test_a_page_that_cannot_be_written_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "page_of_several", lambda _runs, _document: "<p>é")
    runs_page.write(tmp_path / "page.html", [], None)
    assert (tmp_path / "page.html").read_bytes() == "<p>é".encode()
    with pytest.raises(SetupError, match=r"no/page\.html: cannot be written: No such file"):
        runs_page.write(tmp_path / "no" / "page.html", [], None)


def test_a_page_replaces_no_file_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "page_of_several", lambda _runs, _document: "<p>")
    for name in ("manifest.json", "checksums.json"):
        (tmp_path / name).write_text("kept")
    with pytest.raises(SpecError, match=r"--html .*manifest\.json: would be a file of the run"):
        runs_page.write(tmp_path / "manifest.json", [], None)
    assert (tmp_path / "manifest.json").read_text() == "kept"
