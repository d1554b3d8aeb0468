"""Temporary folders are held from their making on, whatever other benches clear meanwhile."""

import os
import tempfile

import pytest

from harness.host import scratch


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_one_that_is_held_is_not_cleared_and_is_gone_at_the_end():
    with scratch.folder("samples") as path:
        scratch.clear()
        assert path.is_dir()
    assert not path.exists()


@pytest.mark.parametrize("moment", ["open", "flock"])
def test_one_that_another_bench_cleared_before_it_was_held_is_made_again(monkeypatch, moment):
    room, whole = (os, os.open) if moment == "open" else (scratch.fcntl, scratch.fcntl.flock)
    cleared = []

    def clears_first(what, how, *others, **options):
        if not cleared:
            (path,) = scratch.Path(tempfile.gettempdir()).glob("bench-scratch-*")
            cleared.append(path)
            path.rmdir()
        return whole(what, how, *others, **options)

    monkeypatch.setattr(room, moment, clears_first)
    with scratch.folder("samples") as path:
        assert path.is_dir()
        assert path not in cleared
