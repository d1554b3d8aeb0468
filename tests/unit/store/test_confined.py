"""Nothing of a run folder leads out of it: whatever a stranger put there, the command names it and stops."""

import errno
import json
import os
import socket
import stat
import tracemalloc
from contextlib import chdir
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import ExitCode, StorageError
from harness.store import RunFolder
from harness.store.atomic import json_bytes
from harness.store.confined import MOST_BYTES, PARTIAL, Confined, UnsafeError, storage_error

OUTSIDE = b"not of the run"
PUBLISHED = Path(__file__).parents[3] / "results/published"


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "file").write_bytes(OUTSIDE)
    return path


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run" / "cells").mkdir(parents=True)
    (tmp_path / "run" / "a.json").write_bytes(b"{}")
    return Confined(tmp_path / "run")


def link(path, outside):
    path.symlink_to(outside / "file")


def dangling_link(path, outside):
    path.symlink_to(outside / "new")


def folder_link(path, outside):
    path.symlink_to(outside)


def hard_link(path, outside):
    path.hardlink_to(outside / "file")


def pipe(path, _outside):
    os.mkfifo(path)


def listening(path, _outside):
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as one:  # the path of a socket is short
        one.bind(path.name)


def hole(path, _outside):
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS = (link, dangling_link, folder_link, hard_link, pipe, listening, hole)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["x.json", "cells/x", ".x.json.partial", "cells/.hidden"])
def test_every_kind_of_foreign_entry_is_found_by_name(files, outside, kind, name):
    kind(files.root / name, outside)
    with pytest.raises(UnsafeError) as caught:
        files.check()
    assert caught.value.where == str(files.root / name)


@pytest.mark.parametrize("kind", KINDS)
def test_none_is_read_or_appended_to(files, outside, kind):
    kind(files.root / "x.json", outside)
    for act in (
        lambda: files.read("x.json"),
        lambda: files.sha256("x.json"),
        lambda: files.has("x.json"),
        lambda: files.names("*.json"),
        lambda: files.append("x.json", b"more"),
    ):
        with pytest.raises(UnsafeError, match=r"x\.json"):
            act()
    assert sorted(outside.iterdir()) == [outside / "file"]
    assert (outside / "file").read_bytes() == OUTSIDE


@pytest.mark.parametrize("kind", [link, dangling_link, hard_link, pipe, hole])
def test_what_is_written_takes_the_place_of_the_entry_and_leaves_its_target(files, outside, kind):
    kind(files.root / "x.json", outside)
    files.write("x.json", b"new")
    assert files.read("x.json") == b"new"
    assert not (files.root / "x.json").is_symlink()
    assert sorted(outside.iterdir()) == [outside / "file"]
    assert (outside / "file").read_bytes() == OUTSIDE


def test_an_append_that_fails_leaves_the_file_as_it_was(files, monkeypatch):
    """A disk that becomes full takes a part, then nothing."""
    files.append("lines", b"first\n")
    write = os.write
    room = [4]

    def until_full(descriptor, data):
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: room.pop()])

    monkeypatch.setattr(os, "write", until_full)
    with pytest.raises(StorageError, match="no space left on the disk"):
        files.append("lines", b"second\n")
    monkeypatch.undo()
    assert files.read("lines") == b"first\n"
    files.append("lines", b"third\n")
    assert files.read("lines") == b"first\nthird\n"


def test_what_is_appended_begins_a_line(files):
    files.write("lines", b"first")
    files.append("lines", b"second\n")
    assert files.read("lines") == b"first\nsecond\n"


@pytest.mark.parametrize("name", ["cells/x", "cells/deep/x"])
def test_no_folder_is_entered_through_a_link(files, outside, name):
    (files.root / "cells").rmdir()
    (files.root / "cells").symlink_to(outside)
    (outside / "deep").mkdir()
    for act in (
        lambda: files.read(name),
        lambda: files.write(name, b"x"),
        lambda: files.append(name, b"x"),
        lambda: files.make_folder(name),
        lambda: files.remove(name),
        lambda: files.move("a.json", name),
        lambda: files.names("cells/*"),
        lambda: files.children("cells"),
    ):
        with pytest.raises(UnsafeError, match="cells: is a link"):
            act()
    assert sorted(path.name for path in outside.iterdir()) == ["deep", "file"]
    assert list((outside / "deep").iterdir()) == []
    assert (files.root / "a.json").exists()


@pytest.mark.parametrize(
    "name", ["", "/etc/hosts", "..", "../outside/file", "cells/../../outside/file", "a\0b"]
)
def test_no_name_leads_out(files, outside, name):
    for act in (files.read, files.has, files.remove, files.path, lambda name: files.write(name, b"x")):
        with pytest.raises(UnsafeError, match="not the name of a file in the folder"):
            act(name)
    assert (outside / "file").read_bytes() == OUTSIDE


def test_the_partial_of_a_file_cannot_be_guessed(files, outside):
    """As it lay there in a folder of 0.1: a link of the name that was always taken."""
    (files.root / f".a.json{PARTIAL}").symlink_to(outside / "file")
    files.write("a.json", b"new")
    assert (outside / "file").read_bytes() == OUTSIDE
    assert files.read("a.json") == b"new"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(files):
    def fail():
        with files.replacing("a.json") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert files.read("a.json") == b"{}"
    assert files.children("") == ["a.json", "cells"]


def test_a_file_that_is_too_long_is_not_read(files):
    files.write("a.json", b"x" * 100)
    assert files.read("a.json", most_bytes=100) == b"x" * 100
    with pytest.raises(ValueError, match="100 bytes, more than the 99"):
        files.read("a.json", most_bytes=99)


@pytest.mark.parametrize("name", ["\x1b]0;title\x07", "a\nb", "\u202egnp.exe", "\x9b31m"])
def test_a_name_that_a_terminal_would_act_on_is_refused_and_shown_as_written(files, name):
    (files.root / name).write_bytes(b"")
    with pytest.raises(UnsafeError, match="a name that a terminal cannot show") as caught:
        files.check()
    assert str(caught.value).isprintable()


def test_a_folder_that_never_ends_is_refused(files):
    files.make_folder("/".join("abcdefghij"))
    with pytest.raises(UnsafeError, match="folders deeper than 8"):
        files.check()


def test_names_are_patterns_of_ours_and_never_of_the_folder(files):
    files.make_folder("cells/[a]")
    files.make_folder("cells/a")
    files.write("cells/[a]/cell.json", b"")
    files.write("cells/.b.json", b"")
    assert files.names("cells/*/cell.json") == ["cells/[a]/cell.json"]
    assert files.names("cells/*.json") == []
    assert files.names("nothing/*") == []
    assert files.children("cells") == [".b.json", "[a]", "a"]


def test_what_a_dead_process_left_goes(files):
    (files.root / "cells" / f".x.0123{PARTIAL}").write_bytes(b"half")
    files.remove_partials()
    assert files.children("cells") == []
    assert files.read("a.json") == b"{}"


def test_an_unnamed_file_is_nobodys(files):
    with files.unnamed("cells/x") as file:
        file.write(b"part")
        assert files.children("cells") == []
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077 == 0


def test_a_small_file_takes_no_memory_for_the_largest(files):
    tracemalloc.start()
    assert files.read("a.json") == b"{}"
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < MOST_BYTES / 100


def test_the_summary_of_six_thousand_cells_can_be_read_again():
    """What a long run has written at its end is no more than what is read at once."""
    cells = json.loads((PUBLISHED / "20261125T024149Z-single-user-270beb/summary.json").read_bytes())["cells"]
    assert 6000 * len(json_bytes(cells)) / len(cells) < MOST_BYTES


def test_a_folder_that_is_gone_is_one_error(files):
    (files.root / "a.json").unlink()
    (files.root / "cells").rmdir()
    files.root.rmdir()
    with pytest.raises(StorageError, match="cannot be written") as refused:
        files.write("a.json", b"x")
    assert refused.value.hint.startswith("its folder was removed or moved while bench wrote to it: ")


def test_a_folder_that_may_not_be_written_is_to_be_copied(tmp_path):
    hint = storage_error(PermissionError(errno.EACCES, "Permission denied"), tmp_path).hint
    assert "of a run that is there, make a copy" in hint  # --out moves none


COMMANDS = {
    "verify": [],
    "report": [],
    "resume": [],
    "compare": [],
    "claims": [],
    "export": [],
    "history": [],
    "publish": ["--to", "mlflow"],
}


@pytest.mark.parametrize("kind", [link, pipe, hard_link])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_the_folder_by_the_name_of_the_entry(tmp_path, outside, capsys, command, kind):
    folder = RunFolder.create(tmp_path, "x")
    kind(folder.path / "logs" / "engine.log", outside)
    before = sorted(path.name for path in folder.path.rglob("*"))
    code = main([command, str(folder.path), "--out", str(tmp_path), *COMMANDS[command]])
    said = capsys.readouterr().err
    assert code == ExitCode.USAGE
    assert "logs/engine.log: " in said
    assert sorted(path.name for path in folder.path.rglob("*")) == before
