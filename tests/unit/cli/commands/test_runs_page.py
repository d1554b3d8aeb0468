"""Runs that are compared or drawn together: files of other tools among them, and none against itself."""

import shutil

import pytest

from harness import report
from harness.cli.commands import runs_page
from harness.errors import SetupError, SpecError
from tests.factories import foreign


@pytest.fixture
def files(tmp_path):
    names = ("monday", "tuesday")
    return [
        foreign.write(tmp_path / f"{name}.json", foreign.vllm(seed, requests=12))
        for seed, name in enumerate(names)
    ]


def test_a_file_is_a_run_by_its_name_and_leaves_nothing(files, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    runs = runs_page.opened([str(file) for file in files], tmp_path / "results")
    assert [run.name for run in runs] == ["monday", "tuesday"]
    assert [len(run.cells) for run in runs] == [1, 1]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_copy_of_a_file_is_that_file(files, tmp_path):
    copy = shutil.copy(files[0], tmp_path / "copy.json")
    with pytest.raises(SpecError) as caught:
        runs_page.opened([str(file) for file in (*files, copy)], tmp_path)
    assert str(caught.value) == "copy: copy.json is the same file as one of monday"


def test_a_page_that_cannot_be_written_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "page_of_several", lambda _runs, _document: "<p>é")
    runs_page.write(tmp_path / "page.html", [], None)
    assert (tmp_path / "page.html").read_bytes() == "<p>é".encode()
    with pytest.raises(SetupError, match=r"no/page\.html: cannot be written: "):
        runs_page.write(tmp_path / "no" / "page.html", [], None)
