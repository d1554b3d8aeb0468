"""Runs that are compared or drawn together: no file of a tool against itself, and a page that is written."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import report
from harness.cli.commands import runs_page
from harness.errors import SetupError, SpecError


def run(name, *sums):
    """With a cell for each file, by its sum; None: a cell that bench measured."""
    imported = [one and SimpleNamespace(file=f"{name}.json", sha256=one) for one in sums]
    return SimpleNamespace(name=name, cells=[SimpleNamespace(imported=one) for one in imported])


def test_a_copy_of_a_file_is_that_file():
    """Several cells of one run may be of one file, and those that bench measured have none."""
    different = [run("monday", "a", "a"), run("tuesday", "b"), run("ours", None), run("mine", None)]
    runs_page._refuse_itself(different)
    with pytest.raises(SpecError) as caught:
        runs_page._refuse_itself([*different, run("copy", "c", "a")])
    assert str(caught.value) == "copy: copy.json is the same file as one of monday"


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


def test_each_of_many_runs_is_sought_on_the_disk_once(tmp_path, monkeypatch):
    """It was compared with every run before it: a time that grows with the square of the runs."""
    sought = []
    resolve = Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda path: sought.append(path.name) or resolve(path))
    monkeypatch.setattr(
        "harness.run.keep.loaded.load_run",
        lambda name, *_, **__: SimpleNamespace(folder=SimpleNamespace(path=tmp_path / name), notes=()),
    )
    monkeypatch.setattr("harness.run.keep.loaded.comparable", lambda runs: [])
    runs_page.opened([f"run-{number}" for number in range(9)], tmp_path)
    assert [name for name in sought if name.startswith("run-")] == [f"run-{number}" for number in range(9)]
    with pytest.raises(SpecError, match="is the same run twice"):
        runs_page.opened(["run-0", "run-1", "run-0"], tmp_path)
