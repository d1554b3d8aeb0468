"""What a reader of a comparison is shown about the runs in it, and that none is there twice."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import SpecError
from harness.run.keep import loaded, verified
from harness.run.keep.loaded import load_run
from tests.bench.audit.gates import change_json, mend
from tests.factories.runs import TWO, Shape, make_run


def test_a_run_whose_engine_changed_has_a_note(tmp_path):
    run = make_run(tmp_path, Shape(TWO[:1], concurrency=(1,), repeats=2, requests=2, output_tokens=2))
    cell = run.cells()[-1]
    change_json(run.cell_path(cell) / "cell.json", lambda facts: facts["identity"].update(engine_version="9"))
    mend(run.path)
    notes = load_run(str(run.path), Path()).notes
    assert notes[-1].startswith(f"{run.path}: llamacpp changed during the run: engine version ")
    assert notes[-1].endswith("engine version b11549 (r0), 9 (r1)")


def run(name, *sums):
    """With a cell for each file, by its sum; None: a cell that bench measured."""
    imported = [one and SimpleNamespace(file=f"{name}.json", sha256=one) for one in sums]
    cells = [SimpleNamespace(imported=one) for one in imported]
    return SimpleNamespace(name=name, manifest=name, cells=cells)


def test_a_copy_of_a_file_is_that_file():
    """Several cells of one run may be of one file, and those that bench measured have none."""
    different = [run("monday", "a", "a"), run("tuesday", "b"), run("ours", None), run("mine", None)]
    loaded._refuse_itself(different)
    with pytest.raises(SpecError) as caught:
        loaded._refuse_itself([*different, run("copy", "c", "a")])
    assert str(caught.value) == "copy: copy.json is the same file as one of monday"


def test_a_copy_of_a_folder_is_that_run():
    """A gate would pass whatever happened to the server. Runs without a cell are no copies."""
    monday, empty = run("monday", None, None), 2 * [run("none")]
    tuesday = SimpleNamespace(name="tuesday", manifest="monday", cells=tuple(monday.cells))
    with pytest.raises(SpecError) as caught:
        loaded._refuse_itself([*empty, monday, run("ours", None, None), tuesday])
    assert str(caught.value) == "tuesday: is a copy of monday"


def test_each_of_many_runs_is_sought_on_the_disk_once(tmp_path, monkeypatch):
    """It was compared with every run before it: a time that grows with the square of the runs."""
    sought = []
    resolve = Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda path: sought.append(path.name) or resolve(path))
    folders = [tmp_path / f"run-{number}" for number in range(9)]
    loaded._refuse_twice(folders)
    assert sought == [folder.name for folder in folders]
    with pytest.raises(SpecError, match="is the same run twice"):
        loaded._refuse_twice([*folders, tmp_path / "run-9" / ".." / "run-0"])


def test_samples_of_a_run_are_read_when_they_are_asked_for(tmp_path, monkeypatch):
    """Held for every cell of sixty large runs they were gigabytes, and no verdict needed them."""
    stored = make_run(tmp_path, Shape(TWO[:1], concurrency=(1, 2), requests=6, output_tokens=2))
    read, read_cell = [], type(stored).read_cell
    opened = load_run(str(stored.path), Path())
    monkeypatch.setattr(
        type(stored), "read_cell", lambda folder, cell: read.append(cell) or read_cell(folder, cell)
    )
    first, last = stored.cells()
    assert set(opened.samples) == {first, last}
    assert not read
    for _ in range(2):
        assert len(opened.samples[last]["ttft_ms"]) == 6
    assert read == [last]
    assert "another" not in opened.samples


def test_an_unverified_run_with_damaged_records_has_no_samples(tmp_path):
    stored = make_run(tmp_path, Shape(TWO[:1], concurrency=(1, 2), requests=6, output_tokens=2))
    (stored.cell_path(stored.cells()[0]) / "requests.parquet").write_bytes(b"damaged")
    opened = load_run(str(stored.path), Path(), unverified=True)
    assert opened.samples == {}
    assert opened.notes[0].startswith(f"NOT VERIFIED: {stored.path}: ")


def test_an_unverified_run_has_a_note_for_each_text_of_another_version(tmp_path, monkeypatch):
    """They are shown as they are stored."""
    stored = make_run(tmp_path, Shape(TWO[:1], concurrency=(1,), requests=6, output_tokens=2))
    change_json(
        stored.path / "summary.json",
        lambda each: each["cells"][0].update(state_why=each["cells"][0]["state_why"] + " at ease"),
    )
    mend(stored.path)
    monkeypatch.setattr(verified, "_is_other_version", lambda _manifest: True)
    assert verified.verify(stored).whole
    shown = load_run(str(stored.path), Path(), unverified=True)
    assert shown.summary.cells[0].state_why.endswith(" at ease")
    (note,) = shown.notes
    assert note.startswith(f"NOT VERIFIED: {stored.path}: cells[{stored.cells()[0]}].state_why: ")
