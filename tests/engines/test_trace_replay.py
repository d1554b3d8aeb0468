"""A trace on the real llama.cpp: its lengths to the token, and what its requests share found in the cache."""

import itertools

import numpy as np

from harness.metrics.prefix import reusable
from harness.records.layout import Outcome
from tests.engines.runs import bench_run


def test_the_example_trace_is_replayed_to_the_token(tmp_path):
    short = ("--requests", "24", "--replay-speed", "4", "--set", "prompts.max_output_tokens=8")
    folder, _ = bench_run(tmp_path, "trace", ["llamacpp"], *short, limit_s=400)
    (cell,) = folder.read_json("summary.json")["cells"]
    records, facts = folder.read_cell(cell["cell"])
    asked, rows = folder.read_requested(facts), records.requests
    assert (rows["outcome"] == Outcome.OK).all()
    assert (rows["output_tokens"] == asked.numbers["max_tokens"]).all()
    assert (rows["intended_ns"] == (asked.numbers["at_ns"] - asked.numbers["at_ns"][0]) // 4).all()
    template = rows["prompt_tokens"] - asked.numbers["content_tokens"]
    assert len(set(template.tolist())) == 1, "every prompt is as long as the trace says"
    found = rows["cached_tokens"]
    most = [shared_with_any(asked.shared, i) for i in range(len(asked))]
    assert (found - np.array(most) <= template[0] + 16).all(), "no request finds much more than it shares"
    ideal, _ = reusable(asked)
    assert found.sum() > 0.3 * ideal.sum()


def shared_with_any(paths, i):
    """Tokens, whichever request came first: a server may take a burst in any order."""
    return max(same_tokens(paths[i], other) for other in (*paths[:i], *paths[i + 1 :]))


def same_tokens(one, other):
    equal = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(part.tokens for part, _ in equal)
