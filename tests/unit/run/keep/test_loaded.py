"""What a reader of a comparison is shown about the runs in it."""

from pathlib import Path

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
