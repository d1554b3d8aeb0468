"""Samples through the files between the sampler and the run."""

import numpy as np

from harness.sampling.spill import NAMES, ROWS, Spill
from harness.sampling.watcher import read_spill


def spilled(folder, *samples):
    spill = Spill(folder)
    for sample in samples:
        spill.put(*sample)
    spill.close()


def test_each_series_comes_back_in_order_of_time_on_the_clock_of_the_cell(tmp_path):
    spilled(tmp_path, ("a.x", 2.0, 1_200), ("b.y", 7.0, 1_100), ("a.x", 1.0, 1_050))
    found = read_spill(tmp_path, t0_ns=1_000).series
    assert list(found) == ["a.x", "b.y"]
    np.testing.assert_array_equal(found["a.x"].at_ns, [50, 200])
    np.testing.assert_array_equal(found["a.x"].values, [1.0, 2.0])
    np.testing.assert_array_equal(found["b.y"].at_ns, [100])


def test_a_row_that_a_kill_tore_is_left_out(tmp_path):
    spilled(tmp_path, ("a", 1.0, 10), ("a", 2.0, 20))
    rows = tmp_path / ROWS
    rows.write_bytes(rows.read_bytes()[:-3])
    np.testing.assert_array_equal(read_spill(tmp_path, 0).series["a"].values, [1.0])


def test_a_series_that_was_named_and_never_written_is_none(tmp_path):
    spilled(tmp_path, ("a", 1.0, 10))
    with (tmp_path / NAMES).open("a", encoding="utf-8") as names:
        names.write("b\n")
    assert list(read_spill(tmp_path, 0).series) == ["a"]


def test_a_sampler_that_never_wrote_leaves_no_series(tmp_path):
    assert list(read_spill(tmp_path, 0).series) == []


def test_nothing_is_on_disk_before_it_is_flushed_and_all_of_it_after(tmp_path):
    spill = Spill(tmp_path)
    spill.put("a", 1.0, 10)
    assert (tmp_path / ROWS).stat().st_size == 0
    spill.flush()
    assert list(read_spill(tmp_path, 0).series) == ["a"]
    spill.close()
