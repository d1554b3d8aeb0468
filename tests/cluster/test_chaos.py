"""A bad way, a frozen node, and kill -9 of everything there is.

Each is named, nothing is merged in silence, nothing is left running, and `bench resume` goes on.
"""

import json
import signal
import time
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from harness.store import RunFolder
from tests.cluster.cable import Rough
from tests.cluster.conftest import cluster
from tests.cluster.network import CLOCKS, HEAD, OTHER
from tests.cluster.runs import SMALL, TWO, cell_of, measured
from tests.waiting import until

LOAD = ["--concurrency", "4", "--requests", "300"]  # about ten seconds


def begun(machines, out, *options):
    """A run in the midst of its load."""
    machines.ledger(reset=True)
    running = machines.begin("run", *SMALL, *TWO, *LOAD, *options, "--out", out)
    received(machines, 60)
    return running


def received(machines, requests):
    until(lambda: len(machines.ledger()["records"]) > requests, f"{requests} requests", every_s=0.3)


def ended(machines, running):
    """Its exit code and what it said."""
    code = running.wait(150)
    return code, (machines.folder / "bench.log").read_text()


def run_of(machines, out):
    (run,) = (machines.folder / out).iterdir()
    return RunFolder(run)


def in_its_second_cell(machines, out):
    """The run in the midst of that one's load, and the files of the first one."""
    until(lambda: len(run_of(machines, out).cells()) == 1, "the first cell is written")
    received(machines, 400)
    run = run_of(machines, out)
    return run, files_of(run)


def files_of(run):
    return {path: path.read_bytes() for name in run.cells() for path in (run.path / "cells" / name).iterdir()}


def aside_of(run):
    """Of the first cell that was set aside: the nodes by address, and its folder."""
    place = min(run.path.glob("set-aside/*.1"))
    facts = json.loads((place / "cell.json").read_text())
    return {node["address"]: node for node in facts["nodes"]}, place


def family_of(process, *names):
    """It and its children whose name has one of `names`; all of them without any."""
    found = [process, *process.children(recursive=True)]
    return [one for one in found if not names or any(name in words_of(one) for name in names)]


def words_of(process):
    try:
        return f"{process.name()} {' '.join(process.cmdline())}"
    except psutil.NoSuchProcess:
        return ""


def crew_on(node):
    """The actor on a node, then its workers."""
    (actor,) = [one for one in node.children(recursive=True) if "ray::Node" in words_of(one)]
    return [actor, *actor.children(recursive=True)]


def left(processes):
    return [one for one in processes if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def resumed(machines, out):
    done = machines.run("resume", run_of(machines, out).path, "--no-report")
    assert done.returncode in (0, 4), done.stderr
    run = run_of(machines, out)
    assert run.read_manifest().state == "complete"
    return run


@pytest.fixture
def rough():
    with cluster(Rough(delay_ms=2, jitter_ms=1, loss=0.05)) as made:
        yield made


def test_a_way_that_is_slow_uneven_and_lossy_is_named_and_the_clocks_stay_known(rough):
    folder, _ = measured(rough, "--rate", "20", "--requests", "200", *TWO)
    records, facts = cell_of(folder)
    rows = records.requests
    assert rows["seq"].tolist() == list(range(len(rows)))
    received = np.array([record["received_ns"] for record in rough.ledger()["records"]])
    assert np.count_nonzero(received > facts.t0_monotonic_ns) == len(rows) >= 200
    assert rough.cable.lost > 0.03 * rough.cable.carried
    for node in facts.nodes:
        apart_ms = abs(node.clock_offset_ms - CLOCKS[node.address] * 1e3)
        assert apart_ms <= node.clock_uncertainty_ms + 0.1
    far = next(node for node in facts.nodes if node.address == OTHER)
    assert far.rtt_ms > 2
    assert far.clock_uncertainty_ms > 1
    (cell,) = folder.read_summary().cells
    assert "packet-loss" in [reason.code for reason in cell.validity.reasons]


def test_a_node_that_is_frozen_for_five_seconds_is_named(machines):
    running = begun(machines, "frozen")
    frozen = crew_on(machines.other)
    for one in frozen:
        one.suspend()
    time.sleep(5)
    for one in frozen:
        one.resume()
    code, said = ended(machines, running)
    assert code in (0, 4), said
    nodes, _ = aside_of(run_of(machines, "frozen"))
    assert nodes[OTHER]["longest_stall_ms"] > 4000
    assert nodes[HEAD]["longest_stall_ms"] < 1000
    assert f"node-stalled, {nodes[OTHER]['name']} ({OTHER}): " in said
    _, again = cell_of(run_of(machines, "frozen"))
    assert all(node.longest_stall_ms < 1000 for node in again.nodes)


def test_a_wall_clock_that_is_set_is_named_with_its_nodes_and_they_stay_in_step(machines):
    """Both nodes have the kernel's one wall clock; their monotonic clocks are not touched by it."""
    running = begun(machines, "clock")
    with wall_clock_ahead(0.2):
        time.sleep(1)
    code, said = ended(machines, running)
    assert code in (0, 4), said
    nodes, _ = aside_of(run_of(machines, "clock"))
    for address, node in nodes.items():
        assert abs(node["clock_step_ms"] - 200) < 20
        assert abs(node["clock_offset_ms"] - CLOCKS[address] * 1e3) < 5
        assert f"{node['name']} ({address})" in said[said.index("clock-step") :]
    _, again = cell_of(run_of(machines, "clock"))
    assert all(node.clock_step_ms < 0.1 for node in again.nodes)


@contextmanager
def wall_clock_ahead(seconds):
    def shift(by):
        time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + by)

    shift(seconds)
    try:
        yield
    finally:
        shift(-seconds)


def test_a_node_whose_process_is_killed_is_named_and_the_rest_is_kept(machines):
    running = begun(machines, "actor")
    actor, *workers = crew_on(machines.other)
    actor.send_signal(signal.SIGKILL)
    code, said = ended(machines, running)
    assert code in (0, 4), said
    nodes, place = aside_of(run_of(machines, "actor"))
    assert nodes[HEAD]["lost"] is None
    assert nodes[OTHER]["lost"]
    assert json.loads((place / "cell.json").read_text())["client"]["lost_workers"] == 1
    assert f"node-lost, {nodes[OTHER]['name']} ({OTHER}): " in said
    assert workers
    assert not left(workers)
    _, again = cell_of(run_of(machines, "actor"))  # measured again, with an actor of its own
    assert all(node.lost is None for node in again.nodes)


def test_a_coordinator_that_is_killed_leaves_no_load_and_its_run_goes_on(machines):
    running = begun(machines, "coordinator", "--repeats", "2")
    crews = [*crew_on(machines.head), *crew_on(machines.other)]
    first, kept = in_its_second_cell(machines, "coordinator")
    running.kill()
    running.wait(10)
    until(lambda: not left(crews), "the load is gone", 30)
    assert first.read_manifest().state != "complete"
    run = resumed(machines, "coordinator")
    assert len(run.cells()) == 2
    assert kept.items() <= files_of(run).items()


def test_a_raylet_that_is_killed_takes_its_node_along_and_the_run_goes_on_with_another(machines):
    running = begun(machines, "raylet")
    whole = family_of(machines.other)
    (raylet,) = family_of(machines.other, "raylet/raylet")
    raylet.send_signal(signal.SIGKILL)
    code, said = ended(machines, running)
    assert code == 3, said  # one node is left, and two were asked for
    assert "Traceback" not in said
    assert "node-lost" in said
    nodes, place = aside_of(run_of(machines, "raylet"))
    assert nodes[HEAD]["lost"] is None
    assert nodes[OTHER]["lost"]
    assert (place / "requests.parquet").stat().st_size > 0
    until(lambda: not left(whole), "the node is gone", 30)
    machines.other = machines.node(OTHER)
    _, facts = cell_of(resumed(machines, "raylet"))
    assert all(node.lost is None for node in facts.nodes)


def test_a_node_whose_network_is_gone_is_named_in_the_error_and_the_run_goes_on_with_another(machines):
    """Ray still lists it, with its CPU taken."""
    running = begun(machines, "network")
    crew, whole = crew_on(machines.other), family_of(machines.other)
    machines.cable_of(OTHER, "down")
    code, said = ended(machines, running)
    assert code == 3, said
    nodes, _ = aside_of(run_of(machines, "network"))
    assert nodes[HEAD]["lost"] is None
    assert nodes[OTHER]["lost"] == "silent for 30 s"
    assert f"lost {nodes[OTHER]['name']} ({OTHER}): silent for 30 s" in said
    machines.cable_of(OTHER, "up")
    until(lambda: not left(crew), "the load on it is gone", 60)
    machines.stop(machines.other)
    until(lambda: not left(whole), "the node is gone", 60)
    machines.other = machines.node(OTHER)
    _, facts = cell_of(resumed(machines, "network"))
    assert all(node.lost is None for node in facts.nodes)


def test_a_head_that_is_killed_ends_the_run_with_one_error_and_a_new_one_goes_on(machines):
    """Last: what the module shares is another cluster afterwards."""
    running = begun(machines, "head", "--repeats", "2")
    crews = [*crew_on(machines.head), *crew_on(machines.other)]
    _, kept = in_its_second_cell(machines, "head")
    whole = [*family_of(machines.head), *family_of(machines.other)]
    (gcs,) = family_of(machines.head, "gcs_server")
    gcs.send_signal(signal.SIGKILL)
    code, said = ended(machines, running)
    assert code == 3, said
    assert "Traceback" not in said
    assert "no cluster answers" in said
    until(lambda: not left(crews), "the load is gone")
    for node in (machines.other, machines.head):
        machines.stop(node)
    # A second head on one port is refused by what its first has left.
    until(lambda: not left(whole), "both nodes are gone", 90)
    machines.head, machines.other = machines.node(HEAD), machines.node(OTHER)
    run = resumed(machines, "head")
    assert len(run.cells()) == 2
    assert kept.items() <= files_of(run).items()
