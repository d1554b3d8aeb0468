import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import msgspec
import pytest

from harness.engines.provide.shared_folders import built, completed
from harness.errors import SetupError


class Facts(msgspec.Struct):
    size: int


def silent(line):
    pass


def build_one(folder):
    (folder / "content").write_text("x")
    return Facts(1)


def test_an_entry_is_built_once_and_its_facts_are_kept(tmp_path):
    folder, calls = tmp_path / "deep" / "entry", []

    def build(target):
        calls.append(target)
        return build_one(target)

    assert completed(folder, Facts) is None
    for _ in range(2):
        assert built(folder, "it", build, Facts, silent) == Facts(1)
    assert calls == [folder]
    assert completed(folder, Facts) == Facts(1)
    built(folder, "it", build, Facts, silent, force=True)
    assert len(calls) == 2


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SetupError("no")])
def test_what_was_interrupted_is_not_there(tmp_path, interruption):
    folder = tmp_path / "entry"

    def breaks(target):
        build_one(target)
        raise interruption

    with pytest.raises(type(interruption) if isinstance(interruption, Exception) else interruption):
        built(folder, "it", breaks, Facts, silent)
    assert not folder.exists()


def test_leftovers_of_a_killed_build_are_removed(tmp_path):
    folder = tmp_path / "entry"
    folder.mkdir()
    (folder / "half").write_text("x")
    assert completed(folder, Facts) is None
    built(folder, "it", build_one, Facts, silent)
    assert not (folder / "half").exists()


def test_a_marker_cut_off_by_a_crash_does_not_count(tmp_path):
    folder = tmp_path / "entry"
    built(folder, "it", build_one, Facts, silent)
    marker = next(folder.glob(".*"))
    marker.write_text(marker.read_text()[:5])
    assert completed(folder, Facts) is None


def test_a_folder_whose_removal_was_broken_off_does_not_count(tmp_path, monkeypatch):
    """The process may be killed while it clears the folder to build it again."""
    folder = tmp_path / "entry"
    built(folder, "it", build_one, Facts, silent)

    def broken_off(path, **_options):
        (path / "content").unlink()
        raise SystemExit

    monkeypatch.setattr(shutil, "rmtree", broken_off)
    with pytest.raises(SystemExit):
        built(folder, "it", build_one, Facts, silent, force=True)
    assert completed(folder, Facts) is None


def test_an_environment_whose_python_was_removed_is_built_again(tmp_path):
    """A newer system, or a cache that another image mounts, has no such Python."""
    folder, python = tmp_path / "entry", tmp_path / "python3.11"
    python.touch()

    def linked(target):
        (target / "bin").mkdir()
        (target / "bin" / "python").symlink_to(python)
        return build_one(target)

    built(folder, "it", linked, Facts, silent)
    assert completed(folder, Facts) == Facts(1)
    python.unlink()
    assert completed(folder, Facts) is None


def test_a_folder_that_may_not_be_entered_holds_nothing(tmp_path, monkeypatch):
    """HOME=/root in a container whose user is another one: `bench list` ended in `permission denied`."""
    built(tmp_path / "entry", "it", build_one, Facts, silent)

    def closed(path, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for call in ("stat", "read_bytes"):
        monkeypatch.setattr(Path, call, closed)
    assert completed(tmp_path / "entry", Facts) is None


def test_two_builders_do_not_race(tmp_path):
    """A lock of a file is held by who opened it, so that threads meet it as processes do."""
    started, go_on, said = Event(), Event(), []

    def build(_folder):
        started.set()
        go_on.wait(20)
        return Facts(2)

    def say(line):
        said.append(line)
        go_on.set()  # the first may finish once the second has found the lock taken

    with ThreadPoolExecutor() as pool:
        first = pool.submit(built, tmp_path / "entry", "it", build, Facts, silent)
        assert started.wait(20)
        assert built(tmp_path / "entry", "it", build_one, Facts, say) == Facts(2)
    assert first.result() == Facts(2)
    assert said == ["waiting for another bench that prepares it"]


def test_a_full_or_forbidden_disk_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError) as caught:
        built(tmp_path / "file" / "entry", "the model", shutil.rmtree, Facts, silent)
    assert "the model cannot be stored" in str(caught.value)
    assert "BENCH_CACHE" in caught.value.hint
