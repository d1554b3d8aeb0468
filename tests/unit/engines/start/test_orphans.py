"""Notes of engines in a cache that this user may only read, such as one that a group shares."""

import errno
import os
from pathlib import Path

import msgspec
import pytest

from harness.engines.start import orphans
from harness.engines.start.orphans import Note


@pytest.fixture
def note(tmp_path, monkeypatch):
    """The note of a bench that is dead, of whose engine nothing is left."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    dead = Note(label="vllm", session=1 << 30, log="/log", bench=1 << 30, bench_born=1)
    path = tmp_path / "running" / "1.json"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(dead))
    return path


def test_a_note_of_another_machine_is_left_alone(note):
    """Nodes of a cluster share the cache of a home folder."""
    theirs = msgspec.structs.replace(msgspec.json.decode(note.read_bytes(), type=Note), host="node-2")
    note.write_bytes(msgspec.json.encode(theirs))
    assert not orphans.stale()
    assert orphans.clear(print) == []
    assert note.exists()


def test_benches_of_two_machines_with_one_cache_have_notes_of_their_own(note, monkeypatch):
    with orphans.noted("vllm", 7, Path("/log")):
        monkeypatch.setattr(orphans.platform, "node", lambda: "node-2")
        with orphans.noted("vllm", 7, Path("/log")):
            assert len(list(note.parent.iterdir())) == 3
    assert list(note.parent.iterdir()) == [note]


def refused(*_given, **_options):
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_note_that_cannot_be_removed_keeps_no_engine_from_its_start(monkeypatch, note):
    monkeypatch.setattr(Path, "unlink", refused)
    assert orphans.clear(print) == []
    assert note.exists()


def test_a_note_that_cannot_be_read_is_passed_over(monkeypatch, note):
    monkeypatch.setattr(Path, "read_bytes", refused)
    assert not orphans.stale()
    assert orphans.clear(print) == []


def test_a_home_of_somebody_else_keeps_no_engine_from_its_start(monkeypatch, note):
    """HOME=/root in a container whose user is another one."""

    def closed(*_given, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "glob", closed)
    assert not orphans.stale()
    assert orphans.clear(print) == []


def test_a_note_of_a_dead_bench_is_removed(note):
    assert orphans.stale()
    assert orphans.clear(print) == []
    assert not note.exists()


def test_a_live_neighbour_is_not_said_to_measure(note):
    """It may be `bench up`, which sends no load."""
    parent = os.getppid()
    live = Note(label="vllm", session=1 << 30, log="/log", bench=parent, bench_born=orphans.born(parent))
    note.write_bytes(msgspec.json.encode(live))
    remark = f"another bench (pid {parent}) runs vllm on this machine at the same time"
    assert orphans.clear(lambda _text: None) == [f"{remark}: its work adds to what is measured"]
