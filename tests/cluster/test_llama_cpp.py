"""Real llama.cpp on the head's machine, loaded from one node and from both."""

import json

import pytest

from harness.engines.provide.install import install_engine
from harness.engines.provide.models import ensure_weights
from harness.engines.start.launch_choice import resolve_launch, track_of
from harness.host import paths
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import choose_model
from tests.cluster.network import BIN, HEAD
from tests.cluster.runs import TWO, measured

PORT = 8420
# One thread for the engine: the nodes and bench share two cores with it.
SERVE = ("--launch", "process", "--host", HEAD, "--port", PORT, "--engine-set", "threads=1")
LOAD = ("--rate", "2.5", "--requests", "80", "--repeats", "3")


@pytest.fixture(scope="module")
def llama_cpp(machines):
    """Its URL. What it needs is fetched before, since the namespaces have no way out."""
    (ref,) = parse_backend_list("llamacpp")
    name, model = choose_model(None)
    environment = install_engine(ref.definition, print)
    ensure_weights(
        name, model, track_of(ref, resolve_launch(ref, "process"), name, model), environment, print
    )
    cache = f"BENCH_CACHE={paths.cache_dir()}"
    machines.start("llamacpp", HEAD, "env", cache, BIN / "bench", "up", "llamacpp", *SERVE)
    machines.wait_until_said("llamacpp", "serves model")
    return f"llamacpp=http://{HEAD}:{PORT}"


def test_one_node_and_two_say_the_same_of_a_real_engine(machines, llama_cpp):
    runs = {}
    for nodes in "12":
        out = f"llama{nodes}"
        load = (*LOAD, "--backends", llama_cpp, *TWO[:2], "--load-nodes", nodes)
        runs[nodes], _ = measured(machines, *load, out=out, timeout=400)
    for cell in runs["2"].cells():
        records, facts = runs["2"].read_cell(cell)
        assert records.requests["seq"].tolist() == list(range(len(records.requests)))
        assert (records.requests["outcome"] == 0).all()
        assert len(facts.nodes) == 2
    reasons = [reason.code for cell in runs["2"].read_summary().cells for reason in cell.validity.reasons]
    assert "node-differs" not in reasons
    # A real engine on a shared machine varies by more than the 5% that are the default.
    both = (runs["1"].path, runs["2"].path)
    compared = machines.run("compare", *both, "--floor", "15", "--json")
    (pair,) = json.loads(compared.stdout)["pairs"]
    assert pair["refused"] is None
    verdicts = {finding["metric"]: finding["verdict"] for finding in pair["findings"]}
    # The rate that was asked for decides the throughput.
    assert verdicts.pop("output_tokens_per_s") == "not comparable"
    # Other work on the machine may keep "same" from being shown, but must not make a difference.
    assert set(verdicts.values()) <= {"same", "not enough runs"}, pair["findings"]
