"""Values that were computed of runs: found while nothing has changed, and computed again after any change."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.host.paths import cache_dir
from harness.model import Record
from harness.store import RunFolder, derived
from harness.store.confined import Confined
from harness.store.database import TABLES, database
from harness.store.derived import computed_once

PUBLISHED = Path(__file__).parents[3] / "results/published/20261125T020543Z-shared-prefix-9d36a6"


class Value(Record, frozen=True, kw_only=True):
    number: int


@pytest.fixture(autouse=True)
def calm(tmp_path, monkeypatch):
    """Everything on this machine has been as it is for long enough."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(derived, "_TICK_S", 0)
    monkeypatch.setattr(derived, "_LOADED_S", 0)
    monkeypatch.setattr(derived, "_CODE", tmp_path / "code")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/rules.py").write_text("LIMIT = 1\n")


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "results/run"
    (folder / "cells/first").mkdir(parents=True)
    (folder / "summary.json").write_text('{"ttft_ms": 10}')
    (folder / "cells/first/cell.json").write_text("{}")
    return folder


def ask(run, number, names=None):
    """The value that is found or else computed as `number` in a new process, and whether it was computed."""
    computed = []

    def compute():
        computed.append(number)
        return Value(number=number)

    derived._state_of_code.cache_clear()
    derived._remove_oldest.cache_clear()
    return computed_once(Confined(run), Value, compute, names).number, bool(computed)


def kept():
    return sorted((cache_dir() / "derived").glob("*"))


def written(path, text):
    """Writes until the clock of the file system has moved on, as it has between two commands of a person."""
    before = path.stat().st_ctime_ns
    for _ in range(1_000_000):
        path.write_text(text)
        if path.stat().st_ctime_ns != before:
            return


def edited(run):
    """As long as before, and with the time of before."""
    path = run / "summary.json"
    times = path.stat()
    written(path, '{"ttft_ms": 11}')
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def touched(run):
    written(run / "cells/first/cell.json", "{}")


def replaced(run):
    """By a copy with all its times, as `cp -a` makes it."""
    shutil.copytree(run, run.parent / "copy")
    run.rename(run.parent / "old")
    (run.parent / "copy").rename(run)


def swapped(run):
    shutil.copytree(run, run.parent / "other")
    run.rename(run.parent / "old")
    run.symlink_to(run.parent / "other")


def longer(run):
    (run / "cells/first/events.parquet").write_bytes(b"")


def shorter(run):
    (run / "cells/first/cell.json").unlink()


def renamed(run):
    (run / "cells/first").rename(run / "cells/second")


def other_code(run):
    (run.parents[1] / "code/rules.py").write_text("LIMIT = 2\n")


def more_code(run):
    (run.parents[1] / "code/more.py").write_text("")


def test_what_has_not_changed_is_computed_once(run):
    assert ask(run, 1) == (1, True)
    assert ask(run, 2) == (1, False)


@pytest.mark.parametrize(
    "change",
    [edited, touched, replaced, swapped, longer, shorter, renamed, other_code, more_code],
    ids=lambda change: change.__name__,
)
def test_nothing_that_changed_has_its_former_value(run, change):
    ask(run, 1)
    change(run)
    assert ask(run, 2) == (2, True)
    assert ask(run, 3) == (2, False)


@pytest.mark.parametrize(
    ("change", "again"), [(edited, True), (touched, False), (renamed, False), (other_code, True)]
)
def test_a_value_of_named_files_changes_with_them_alone(run, change, again):
    """Of those that are missing too: `seals` comes later."""
    names = ("summary.json", "seals")
    assert ask(run, 1, names) == (1, True)
    change(run)
    assert ask(run, 2, names) == ((2, True) if again else (1, False))
    (run / "seals").touch()
    assert ask(run, 3, names) == (3, True)


def test_a_link_in_the_place_of_a_named_file_has_no_value(run):
    (run / "summary.json").rename(run.parent / "elsewhere")
    (run / "summary.json").symlink_to(run.parent / "elsewhere")
    assert [ask(run, number, ("summary.json",)) for number in (1, 2)] == [(1, True), (2, True)]


def test_a_folder_that_may_not_be_walked_has_its_value_of_named_files(run):
    (run / "away").symlink_to("/")
    assert [ask(run, number) for number in (1, 2)] == [(1, True), (2, True)]
    assert [ask(run, number, ("summary.json",)) for number in (1, 2)] == [(1, True), (1, False)]


def test_values_of_two_kinds_are_two(run):
    class Other(Record, frozen=True, kw_only=True):
        number: int

    assert ask(run, 1) == (1, True)
    assert computed_once(Confined(run), Other, lambda: Other(number=2)).number == 2


def test_rows_of_a_run_are_read_once_and_have_its_present_name(tmp_path, monkeypatch):
    """`names_apart` numbers a copy that is queried with its original."""
    copies = [tmp_path / name / PUBLISHED.name for name in ("here", "there")]
    for copy in copies:
        shutil.copytree(PUBLISHED, copy)

    def found():
        with database([RunFolder(copy) for copy in copies], None, []) as (connected, faults):
            assert faults == []
            return [connected.execute(f"select * from {table} order by all").fetchall() for table in TABLES]

    fresh, read = found(), []
    monkeypatch.setattr(RunFolder, "read_summary", lambda folder: read.append(folder))
    assert found() == fresh
    assert read == []
    assert {row[0] for row in fresh[0]} == {PUBLISHED.name, f"{PUBLISHED.name} (2)"}
    assert all(fresh)


def test_a_run_that_has_another_name_has_another_value(run):
    ask(run, 1)
    assert ask(run.rename(run.parent / "renamed"), 2) == (2, True)


def test_two_runs_have_values_of_their_own(run):
    other = run.parent / "other"
    shutil.copytree(run, other)
    assert [ask(run, 1), ask(other, 2)] == [(1, True), (2, True)]
    assert [ask(run, 3), ask(other, 3)] == [(1, False), (2, False)]


@pytest.mark.parametrize("setting", ["_TICK_S", "_LOADED_S"])
def test_nothing_is_kept_of_what_changed_a_moment_ago(run, monkeypatch, setting):
    """Its next change could have the same time."""
    monkeypatch.setattr(derived, setting, 3600)
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]
    assert not kept()


def test_code_that_is_as_it_was_before_has_no_values_of_then(run):
    """A process may have loaded parts of both."""
    ask(run, 1)
    other_code(run)
    written(run.parents[1] / "code/rules.py", "LIMIT = 1\n")
    assert ask(run, 2) == (2, True)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda _text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("number", "other"),
        lambda text: text.replace("1", '"many"'),
        lambda text: text.replace("1", "NaN"),
        lambda _text: "[1]",
        lambda _text: "[" * 100_000,
        lambda _text: "\x00\ud83d".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_a_spoilt_value_is_none(run, spoilt):
    ask(run, 1)
    (path,) = kept()
    path.write_text(spoilt(path.read_text()))
    assert ask(run, 2) == (2, True)
    assert ask(run, 3) == (2, False)


def linked(path):
    path.symlink_to(path.rename(path.with_suffix(".elsewhere")))


def hard_linked(path):
    path.with_suffix(".elsewhere").hardlink_to(path)


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def endless(path):
    os.truncate(path, 1 << 40)


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [linked, hard_linked, a_pipe, endless, a_folder], ids=lambda spoil: spoil.__name__
)
def test_only_a_plain_file_of_the_cache_is_read(run, spoil):
    ask(run, 1)
    (path,) = kept()
    spoil(path)
    assert ask(run, 2) == (2, True)
    assert spoil is a_folder or ask(run, 3) == (2, False)


def test_a_link_in_the_cache_is_not_written_through(run, tmp_path):
    ask(run, 1)
    (path,) = kept()
    elsewhere = path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert ask(run, 2) == (2, True)
    assert elsewhere.read_bytes() == before


def test_a_cache_that_cannot_be_written_costs_only_time(run, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "code/rules.py"))
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))

    def full(path, _data):
        raise StorageError(os.strerror(errno.ENOSPC), where=str(path))

    monkeypatch.setattr(derived, "write_json", full)
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]


def test_a_user_without_a_known_home_needs_no_cache(run, monkeypatch):
    """As in a container that runs as a number."""
    monkeypatch.delenv("BENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "~nobody-of-this-name/cache")
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]


def test_the_values_that_were_computed_last_are_kept(run, monkeypatch):
    monkeypatch.setattr(derived, "_MOST", 2)
    for name in ("second", "third"):
        shutil.copytree(run, run.parent / name)
    runs = [run, run.parent / "second", run.parent / "third"]
    (cache_dir() / "derived").mkdir(parents=True)
    foreign = cache_dir() / "derived/foreign.json"
    foreign.touch()
    assert [ask(each, 1)[1] for each in (*runs, runs[2], runs[1])] == [True, True, True, False, False]
    assert len(kept()) == 3
    assert foreign.exists()
    assert ask(run, 2) == (2, True)
