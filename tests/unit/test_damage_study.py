"""`python -m tests.bench.damage_study` goes on in a folder in which it was interrupted."""

import json

from tests.bench.damage_study import _complete


def test_only_a_run_that_came_to_its_end_is_not_measured_again(tmp_path):
    for state in ("running", "interrupted", "failed", "complete", "invalid"):
        (tmp_path / state).mkdir()
        (tmp_path / state / "summary.json").write_text(json.dumps({"state": state}))
    assert sorted(folder.name for folder in _complete(tmp_path)) == ["complete", "invalid"]
