"""What is left of a cell once it is summarised."""

import gc
import weakref

from harness.summary import summarise_view, view_of
from tests.factories.runs import Shape, make_run


def test_a_summarised_cell_leaves_the_memory_without_the_collector(tmp_path):
    """Its events would otherwise be there while those of the next cell are read."""
    folder = make_run(tmp_path, Shape(concurrency=(1,), repeats=1, requests=8))
    (cell, *_) = folder.cells()
    records, facts = folder.read_cell(cell)
    view = view_of(records, facts, folder.read_requested(facts), folder.read_telemetry(cell))
    gc.collect()
    gc.disable()
    try:
        summarise_view(view)
        there = weakref.ref(view)
        del view
        assert there() is None
    finally:
        gc.enable()
