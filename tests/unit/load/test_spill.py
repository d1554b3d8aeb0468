"""Records through files: whole, in order, and whole up to the last row where a worker was killed."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.load.finalize import Finalized
from harness.load.spill import Spill, merge
from harness.records.layout import REQUEST_DTYPE, Outcome, empty_requests
from tests.factories.answers import CHUNKED, chunked, delta, event, head, play


def settled(seq: int, words: list[str]) -> Finalized:
    made = play([head(CHUNKED) + chunked([event(delta(word)) for word in words])])
    events = made.events.copy()
    events["seq"] = seq
    return Finalized(
        (seq, *made.row[1:3], Outcome.OK, *made.row[4:]),
        events,
        made.text,
        f"calls {seq}",
        f"reason {seq}",
        f"error {seq}",
        Outcome.OK,
        made.generated_ns,
        0,
    )


def spill(folder: Path, records: list[Finalized]) -> Path:
    folder.mkdir()
    writer = Spill(folder)
    for record in records:
        writer.add(record)
    writer.close()
    return folder


_words = st.lists(st.sampled_from(["a", "né", "😀", ""]), max_size=4)


@settings(max_examples=40)
@given(st.permutations(range(6)), st.lists(_words, min_size=6, max_size=6), st.integers(0, 6))
def test_merge_puts_every_worker_in_order(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], words: list[list[str]], cut: int
) -> None:
    root = tmp_path_factory.mktemp("spill")
    records = [settled(seq, words[seq]) for seq in order]
    folders = [spill(root / "0", records[:cut]), spill(root / "1", records[cut:])]
    merged = merge(folders, empty_requests(0), "")
    assert merged.requests["seq"].tolist() == list(range(6))
    assert list(merged.texts) == ["".join(text) for text in words]
    assert merged.texts[-1] == "".join(words[-1])
    assert merged.texts[1:3] == ["".join(text) for text in words[1:3]]
    assert merged.finish_reasons == [f"reason {seq}" for seq in range(6)]
    assert merged.errors == [f"error {seq}" for seq in range(6)]
    assert merged.events["seq"].tolist() == [seq for seq in range(6) for _ in words[seq]]


def test_missing_rows_fill_in_for_what_nobody_wrote(tmp_path: Path) -> None:
    folder = spill(tmp_path / "0", [settled(1, ["x"])])
    merged = merge([folder, tmp_path / "never-made"], empty_requests(3), "gone")
    assert merged.requests["seq"].tolist() == [0, 1, 2]
    assert merged.requests["outcome"].tolist() == [Outcome.CANCELLED, Outcome.OK, Outcome.CANCELLED]
    assert merged.errors == ["gone", "error 1", "gone"]
    assert list(merged.texts) == ["", "x", ""]


def test_a_row_cut_by_a_kill_does_not_count(tmp_path: Path) -> None:
    folder = spill(tmp_path / "0", [settled(0, ["x"]), settled(1, ["y"])])
    rows = (folder / "rows").read_bytes()
    (folder / "rows").write_bytes(rows[: -REQUEST_DTYPE.itemsize])
    merged = merge([folder], empty_requests(0), "")
    assert list(merged.texts) == ["x"]
    assert np.all(merged.events["seq"] == 0)
