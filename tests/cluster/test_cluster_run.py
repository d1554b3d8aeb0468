"""Two nodes of a real Ray cluster, 3,007 s apart by their clocks, load one server of known timing."""

import json

import numpy as np
import psutil
import pytest

from tests.cluster.network import CLIENT_PORT, CLOCKS, HEAD, TTFT_MS
from tests.cluster.runs import SMALL, TWO, cell_of, measured


@pytest.mark.parametrize("load", [["--rate", "20"], ["--concurrency", "4"]], ids=["open", "closed"])
def test_both_nodes_send_one_schedule(machines, load):
    folder, _ = measured(machines, *load, "--requests", "200", *TWO, out=load[0].strip("-"))
    records, facts = cell_of(folder)
    rows, t0_ns = records.requests, facts.t0_monotonic_ns
    # Without the requests that made sure that the server answers.
    received = np.sort([record["received_ns"] for record in machines.ledger()["records"]]) - t0_ns
    received = received[received > 0]
    # Every request exactly once, half of them from either node.
    assert rows["seq"].tolist() == list(range(len(rows)))
    assert len(received) == len(rows) >= 200
    assert (rows["outcome"] == 0).all()
    assert abs(np.count_nonzero(rows["worker"] == 0) - len(rows) / 2) <= len(rows) * 0.1
    # The server's clock is that of bench: what the nodes say of their sends must be so there.
    apart_ms = (received - np.sort(rows["sent_ns"])) / 1e6
    assert np.abs(apart_ms).max() < 25
    assert abs(np.median(apart_ms)) < 5
    ttft_ms = (rows["first_text_ns"] - rows["sent_ns"]) / 1e6
    for worker in (0, 1):
        assert TTFT_MS - 1 < np.median(ttft_ms[rows["worker"] == worker]) < TTFT_MS + 10
    nodes = {node.address: node for node in facts.nodes}
    assert nodes.keys() == CLOCKS.keys()
    for address, node in nodes.items():
        assert abs(node.clock_offset_ms - CLOCKS[address] * 1e3) < 5
        assert node.clock_uncertainty_ms < 5
        assert abs(node.start_skew_ms) < 5
        assert node.pings >= 200
        assert node.lost is None


def test_bench_may_be_no_node_itself(machines):
    by_client = ["--cluster", f"ray://{HEAD}:{CLIENT_PORT}", "--load-nodes", "2"]
    folder, _ = measured(machines, "--rate", "20", "--requests", "100", *by_client, out="client")
    records, facts = cell_of(folder)
    assert (records.requests["outcome"] == 0).all()
    assert {node.address for node in facts.nodes} == CLOCKS.keys()
    assert all(abs(node.clock_offset_ms - CLOCKS[node.address] * 1e3) < 5 for node in facts.nodes)


def test_one_node_and_two_say_the_same_of_a_server(machines):
    load = ["--concurrency", "4", "--requests", "160", "--repeats", "5", *TWO[:2], "--load-nodes"]
    one, two = (measured(machines, *load, nodes, out=f"aa{nodes}")[0].path for nodes in "12")
    compared = machines.run("compare", one, two, "--json")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    (pair,) = json.loads(compared.stdout)["pairs"]
    verdicts = {finding["metric"]: finding["verdict"] for finding in pair["findings"]}
    assert pair["refused"] is None
    rate = verdicts.pop("output_tokens_per_s")
    assert verdicts == dict.fromkeys(["ttft_ms.p50", "tpot_ms.p50", "e2e_ms.p50"], "same"), pair["findings"]
    assert rate in ("same", "not enough runs")  # other work on the machine between the two runs moves it


def test_the_doctor_places_every_send_by_the_servers_one_ledger(machines):
    done = machines.run("doctor", "--quick", "--json", *TWO)
    assert done.returncode in (0, 4), done.stderr
    light = json.loads(done.stdout)["loads"][0]
    assert light["errors"]["ttft_ms"]["p50"] < 1
    assert len(light["nodes"]) == 2
    for on in light["nodes"]:
        least, median, _ = on["before_ms"]
        assert on["requests"] == 160
        assert -on["node"]["clock_uncertainty_ms"] - 0.1 < least
        assert median < 2


@pytest.mark.parametrize(
    ("options", "env", "says"),
    [
        (["--cluster", f"{HEAD}:1", "--load-nodes", "2"], {}, "no cluster answers"),
        ([*TWO[:2], "--load-nodes", "3"], {}, "3 nodes"),
        ([*TWO, "--workers-per-node", "9"], {}, "9 free CPU"),
        (TWO, {"RAY_AUTH_TOKEN_PATH": "/nonexistent", "RAY_AUTH_MODE": "token"}, "token"),
    ],
    ids=["unreachable", "too few nodes", "too few CPUs", "no token"],
)
def test_what_keeps_a_run_out_is_one_clear_error(machines, options, env, says):
    done = machines.run("run", *SMALL, "--rate", "20", "--requests", "200", *options, "--out", "bad", **env)
    assert done.returncode == 3, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert says in line
    assert "Traceback" not in done.stderr


def test_a_local_cluster_comes_up_is_shown_and_leaves_nothing(machines):
    up = machines.run("cluster", "up", "--port", "6400", "--cpus", "1")
    assert up.returncode == 0, up.stderr
    pid = json.loads((machines.folder / "cache" / "cluster.json").read_text())["pid"]
    family = psutil.Process(pid).children(recursive=True)
    try:
        status = machines.run("cluster", "status")
        assert "127.0.0.1" in status.stdout, status.stderr
        assert machines.run("cluster", "up", "--port", "6401").returncode == 3
    finally:
        down = machines.run("cluster", "down")
    assert down.returncode == 0, down.stderr
    assert not [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert machines.run("cluster", "status").returncode == 3
