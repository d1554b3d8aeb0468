"""Values that were computed of runs: found while nothing has changed, and computed again after any change."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from harness.errors import StorageError
from harness.model import Record
from harness.store import derived
from harness.store.confined import Confined
from harness.store.derived import Derived


class Value(Record, frozen=True, kw_only=True):
    number: int


@pytest.fixture(autouse=True)
def calm(tmp_path, monkeypatch):
    """Everything on this machine has been as it is for long enough."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(derived, "_TICK_NS", 0)
    monkeypatch.setattr(derived, "_LOADED_NS", 0)
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


def ask(run, number):
    """The value that is found or else computed as `number`, and whether it was computed."""
    computed = []

    def compute():
        computed.append(number)
        return Value(number=number)

    known = Derived("numbers", run.parent)
    found = known.of(Confined(run), Value, compute)
    known.write()
    return found.number, bool(computed)


def index():
    (path,) = derived._folder().glob("*.json")
    return path


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


def test_two_runs_have_values_of_their_own(run):
    other = run.parent / "other"
    shutil.copytree(run, other)
    assert [ask(run, 1), ask(other, 2)] == [(1, True), (2, True)]
    assert [ask(run, 3), ask(other, 3)] == [(1, False), (2, False)]


@pytest.mark.parametrize("setting", ["_TICK_NS", "_LOADED_NS"])
def test_nothing_is_kept_of_what_changed_a_moment_ago(run, monkeypatch, setting):
    """Its next change could have the same time."""
    monkeypatch.setattr(derived, setting, 3600 * 10**9)
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]
    assert not derived._folder().exists()


def test_nothing_is_kept_that_two_versions_of_the_code_computed(run):
    known = Derived("numbers", run.parent)
    known.of(Confined(run), Value, lambda: Value(number=1))
    other_code(run)
    known.write()
    assert not derived._folder().exists()


def wrong_value(text):
    document = json.loads(text)
    return json.dumps({**document, "values": {key: {"number": "many"} for key in document["values"]}})


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda _text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"values"', '"entries"'),
        lambda text: text.replace('"code": "', '"code": "0'),
        lambda text: json.dumps({**json.loads(text), "values": [1]}),
        lambda text: json.dumps({**json.loads(text), "values": {"a": float("nan")}}),
        lambda _text: "[" * 100_000,
        lambda _text: "\x00\ud83d".encode("utf-8", "surrogatepass").decode("latin-1"),
        wrong_value,
    ],
)
def test_a_spoilt_index_is_none(run, spoilt):
    ask(run, 1)
    index().write_text(spoilt(index().read_text()))
    assert ask(run, 2) == (2, True)
    assert ask(run, 3) == (2, False)


def test_an_index_that_is_a_link_is_not_followed(run, tmp_path):
    ask(run, 1)
    path = index()
    kept = path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(kept)
    before = kept.read_bytes()
    assert ask(run, 2) == (2, True)
    assert kept.read_bytes() == before


def test_a_cache_that_cannot_be_written_costs_only_time(run, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "code/rules.py"))
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))

    def full(path, _data):
        raise StorageError(os.strerror(errno.ENOSPC), where=str(path))

    monkeypatch.setattr(derived, "write_bytes", full)
    assert [ask(run, 1), ask(run, 2)] == [(1, True), (2, True)]


def test_of_two_processes_the_last_leaves_a_whole_index(run):
    first, last = Derived("numbers", run.parent), Derived("numbers", run.parent)
    for number, each in enumerate((first, last)):
        each.of(Confined(run), Value, lambda: Value(number=number))  # noqa: B023  # called at once
    first.write()
    last.write()
    assert ask(run, 5) == (1, False)


def test_as_many_values_and_files_are_kept_as_were_used_last(run, monkeypatch):
    monkeypatch.setattr(derived, "_MOST", 2)
    monkeypatch.setattr(derived, "_MOST_FILES", 1)
    for name in ("second", "third"):
        shutil.copytree(run, run.parent / name)
    runs = [run, run.parent / "second", run.parent / "third"]
    assert [ask(each, 1)[1] for each in (runs[0], runs[1], runs[0], runs[2])] == [True, True, False, True]
    assert len(json.loads(index().read_text())["values"]) == 2
    elsewhere = Path(shutil.copytree(run, run.parents[1] / "more/run"))
    ask(elsewhere, 1)
    assert index().name == Derived("numbers", elsewhere.parent)._path.name
