"""A disk that gets full in a run: an error in words, nothing half-written, and `bench resume` goes on."""

import pytest

from tests.integration.full import Full, has_compiler


@pytest.mark.long
@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler")
def test_what_was_measured_is_kept(tmp_path, monkeypatch):
    whole, full = tmp_path / "whole", tmp_path / "full"
    for room in (whole, full):
        room.mkdir()
    monkeypatch.chdir(whole)
    renames = [
        step for step, kind in Full(whole).places() if kind == ("RUN/cells/CELL/events.parquet", "rename")
    ]
    assert len(renames) == 2
    monkeypatch.chdir(full)
    case = Full(full)
    assert case.broken(renames[1]) == []
    assert "no space left on the disk" in case.said
