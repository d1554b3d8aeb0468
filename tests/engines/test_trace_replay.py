"""A trace on the real llama.cpp: its lengths to the token, and what its requests share found in the cache."""

from runs import bench_run

from harness.metrics.prefix import reusable
from harness.record import Outcome


def test_the_example_trace_is_replayed_to_the_token(tmp_path):
    short = ("--requests", "24", "--replay-speed", "4", "--set", "prompts.max_output_tokens=8")
    folder, _ = bench_run(tmp_path, "trace", ["llamacpp"], *short, limit_s=400)
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
