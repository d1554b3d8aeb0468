"""A trace on the real llama.cpp: its lengths to the token, and what its requests share found in the cache."""

import subprocess
import sys

from harness.metrics.prefix import reusable
from harness.record import Outcome
from harness.store import RunFolder


def test_the_example_trace_is_replayed_to_the_token(tmp_path):
    asked = ["--scenario", "trace", "--backends", "llamacpp", "--requests", "24", "--replay-speed", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "harness", "run", *asked, "--set", "prompts.max_output_tokens=8"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode in (0, 4), done.stderr
    (path,) = (tmp_path / "results").iterdir()
    folder = RunFolder(path)
    (cell,) = folder.read_json("summary.json")["cells"]
    records, facts = folder.read_cell(cell["cell"])
    asked, rows = folder.read_asked(facts), records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert (rows["output_tokens"] == asked.numbers["max_tokens"]).all()
    assert (rows["intended_ns"] == (asked.numbers["at_ns"] - asked.numbers["at_ns"][0]) // 4).all()
    template = rows["prompt_tokens"] - asked.numbers["content_tokens"]
    assert len(set(template.tolist())) == 1, "every prompt is as long as the trace says"
    ideal, _ = reusable(asked)
    late = rows["cached_tokens"] - ideal > template[0] + 16
    assert late.mean() < 0.1, "no request finds much more than it shares"
    assert rows["cached_tokens"].sum() > 0.3 * ideal.sum()
