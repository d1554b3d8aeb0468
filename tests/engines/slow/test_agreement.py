"""The agreement questions put to real engines of different weights: minutes each on a small machine."""

from tests.engines.runs import VLLM, bench_run

BACKENDS = (VLLM, "llamacpp")


def test_answers_are_compared_and_other_weights_answer_otherwise(tmp_path):
    short = ("--repeats", "1", "--concurrency", "2", "--requests", "8", "--output-tokens", "8")
    folder, _ = bench_run(tmp_path, "shared-prefix", BACKENDS, *short)
    found = folder.read_json("summary.json")["agreement"]
    assert tuple(found["backends"]) == BACKENDS
    for backend in found["backends"].values():
        assert backend["unloaded"]["asked"] == backend["saturated"]["asked"] == 58
        assert backend["unloaded"]["faults"]["failed"] == backend["saturated"]["faults"]["failed"] == 0
        assert backend["unloaded"]["by_kind"]["facts"]["right"] >= 4
    same = {(pair["a"], pair["b"]): pair["same_text"] for pair in found["pairs"]}
    assert all(pair["prompt_tokens_equal"] == 58 for pair in found["pairs"])
    assert same[VLLM, "llamacpp"] < 50
