"""Samples of the cells of a run: how many are kept in memory, and that no figure depends on it."""

from collections import Counter

from harness.store import RunFolder
from harness.summary import run, summarise_folder
from tests.factories.runs import SMALL, make_run


def test_samples_beyond_what_is_kept_are_read_when_they_are_asked_for(tmp_path, monkeypatch):
    """Those of all cells were kept: 2.5 GB of 2,000 large ones, though few are ever asked for."""
    folder = make_run(tmp_path, SMALL)
    read, plainly, kept = Counter(), RunFolder.read_cell, []

    def counting(this, cell):
        read[cell] += 1
        return plainly(this, cell)

    monkeypatch.setattr(RunFolder, "read_cell", counting)
    whole = summarise_folder(folder)
    assert read == dict.fromkeys(folder.cells(), 1)
    sizes = [sum(values.nbytes for values in run.FolderSamples(folder)[cell].values()) for cell in read]
    monkeypatch.setattr(run, "_ROOM_BYTES", sum(sizes) - 1)
    read.clear()
    plain_keep = run.FolderSamples.keep

    def keep(pooled, cell, found):
        plain_keep(pooled, cell, found)
        kept.append(pooled._read[cell] is not None)

    monkeypatch.setattr(run.FolderSamples, "keep", keep)
    assert summarise_folder(folder) == whole
    assert kept == [True] * (len(sizes) - 1) + [False]
    monkeypatch.setattr(run, "_ROOM_BYTES", 0)
    assert summarise_folder(folder) == whole
    assert not any(kept[len(sizes) :])
