"""Temporary folders are held from their making on, whatever other benches clear meanwhile."""

import os
import stat
import tempfile

import pytest

from harness.host import scratch


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_one_that_is_held_is_the_users_alone_is_not_cleared_and_is_gone_at_the_end(tmp_path):
    with scratch.folder("samples") as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (path / "a").mkdir()
        scratch.clear()
        assert path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_scratch_of_the_dead_is_cleared_and_nothing_else(tmp_path):
    (tmp_path / "bench-scratch-load-dead" / "0").mkdir(parents=True)
    (tmp_path / "elsewhere" / "kept").mkdir(parents=True)
    (tmp_path / "bench-scratch-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "bench-scratch-file").write_text("")
    scratch.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("bench-scratch-file", "bench-scratch-link", "elsewhere")
    ]
    assert (tmp_path / "elsewhere" / "kept").exists()


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
