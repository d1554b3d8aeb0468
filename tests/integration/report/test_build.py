"""From a folder alone, whatever state it is in."""

import errno
import os
import shutil

import pytest

from harness.errors import SpecError, StorageError
from harness.report import build
from harness.store import RunFolder
from tests.factories.runs import TWO, Shape, make_run

SMALL = Shape(concurrency=(2,), requests=6)
ALONE = Shape(TWO[:1], concurrency=(2,), requests=6)


def contents(folder):
    return {path: (folder.path / path).read_bytes() for path in sorted(relative(folder, build(folder)))}


def relative(folder, paths):
    return [path.relative_to(folder.path).as_posix() for path in paths]


@pytest.mark.usefixtures("few_plots")
def test_what_is_written(tmp_path):
    folder = make_run(tmp_path, SMALL)
    written = relative(folder, build(folder))
    assert {"table.txt", "table.md", "report.html", "plots/ttft-cdf-c2.png", "plots/ttft-cdf-c2.svg"} <= set(
        written
    )
    assert len(written) == len(set(written))
    assert all((folder.path / name).stat().st_size for name in written)


@pytest.mark.usefixtures("few_plots")
def test_a_copied_folder_gives_the_same_bytes_again(tmp_path):
    """The copy has the first report, which is written over."""
    folder = make_run(tmp_path / "here", ALONE)
    first = contents(folder)
    copy = RunFolder(tmp_path / "there" / folder.run_id)
    shutil.copytree(folder.path, copy.path)
    assert first == contents(copy)


@pytest.mark.usefixtures("few_plots")
def test_a_broken_cell_is_reported_and_the_rest_is_drawn(tmp_path):
    folder = make_run(tmp_path, SMALL)
    (folder.path / "cells" / "000-llamacpp-c2-r0" / "requests.parquet").write_bytes(b"torn")
    written = relative(folder, build(folder))
    assert any("no-prefix-cache" in name for name in written)
    assert not any("timeline-000" in name for name in written)
    for name in ("table.txt", "table.md", "report.html"):
        text = (folder.path / name).read_text(encoding="utf-8")
        assert "cell-unreadable" in text
        assert "000-llamacpp-c2-r0" in text


@pytest.mark.usefixtures("without_plots")
def test_a_missing_cell_is_reported(tmp_path):
    folder = make_run(tmp_path, SMALL)
    shutil.rmtree(folder.path / "cells" / "001-llamacpp@no-prefix-cache-c2-r0")
    build(folder)
    assert "001-llamacpp@no-prefix-cache-c2-r0 was planned" in " ".join(
        (folder.path / "table.txt").read_text(encoding="utf-8").split()
    )


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_measured_nothing_still_has_a_report(tmp_path):
    folder = make_run(tmp_path, SMALL)
    shutil.rmtree(folder.path / "cells")
    summary = folder.read_json("summary.json")
    folder.write_json("summary.json", {**summary, "cells": [], "state": "interrupted", "simulated": False})
    assert relative(folder, build(folder)) == ["table.txt", "table.md", "report.html"]
    assert "there is nothing to compare" in (folder.path / "report.html").read_text(encoding="utf-8")


def test_a_folder_that_is_no_run_is_a_users_mistake(tmp_path):
    with pytest.raises(SpecError, match=r"has no summary\.json"):
        build(RunFolder(tmp_path))


@pytest.mark.usefixtures("without_plots")
def test_pictures_of_an_earlier_report_do_not_stay(tmp_path):
    folder = make_run(tmp_path, SMALL)
    stale = folder.path / "plots" / "ttft-cdf-c64.png"
    stale.parent.mkdir()
    stale.write_bytes(b"old")
    build(folder)
    assert not stale.exists()


def test_a_full_disk_is_no_traceback(tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = make_run(tmp_path, SMALL)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="no space left"):
        build(folder)
