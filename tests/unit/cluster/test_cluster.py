"""Load nodes: what is asked for, what keeps a run out of a cluster, and what makes a cell invalid."""

import errno
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from harness.cli.flags.parsers import command_parser
from harness.cluster import local, options
from harness.cluster.options import ClusterOptions, asked
from harness.cluster.refusals import cannot_join, cannot_place
from harness.errors import SetupError, SpecError
from harness.load.finalize import Finalized
from harness.load.spill import Spill, merge, move
from harness.metrics.view import RequestView
from harness.model import LoadNode
from harness.records.layout import EVENT_DTYPE, REQUEST_DTYPE, UNKNOWN, Outcome, empty_requests
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.validity import Evidence, judge
from tests.factories.recorded import facts, records, requested

MS = 1_000_000
ROOT = Path(__file__).resolve().parents[3]


def test_without_a_cluster_nothing_is_asked():
    assert asked(None, None, None) is None
    assert asked("auto", 2, None) == ClusterOptions("auto", 2, 1)
    assert asked("10.0.0.1:6379", 2, 3).workers == 6


@pytest.fixture
def with_ray(monkeypatch):
    monkeypatch.setattr(options, "find_spec", lambda _name: True)


@pytest.mark.parametrize("address", ["here", "ray://", "10.0.0.1", "10.0.0.1:port"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(SpecError, match=r"^--cluster: is not auto, HOST:PORT or ray://HOST:PORT"):
        asked(address, 1, None)


def test_a_plan_with_a_cluster_needs_ray(monkeypatch):
    monkeypatch.setattr(options, "find_spec", lambda _name: None)
    with pytest.raises(SetupError, match="Ray is not installed"):
        prepare(RunOptions("fixed-length", "truth", load_from=ClusterOptions("auto", 1)))


def test_a_loopback_server_is_one_of_several_nodes_on_one_machine(with_ray):
    """Whether they are on one is known when they are placed."""
    given = RunOptions("fixed-length", "openai=http://127.0.0.1:9", load_from=ClusterOptions("auto", 2))
    assert prepare(given).options.all_workers == 2


def test_several_nodes_do_not_reach_an_engine_that_bench_starts(with_ray):
    given = RunOptions("fixed-length", "vllm", launch="simulate", load_from=ClusterOptions("auto", 2))
    with pytest.raises(SpecError) as raised:
        prepare(given)
    assert raised.value.where == "--load-nodes"
    assert prepare(replace(given, load_from=ClusterOptions("auto", 1))).options.all_workers == 1


def test_workers_of_one_machine_are_not_those_of_nodes():
    with pytest.raises(SpecError) as raised:
        prepare(
            RunOptions("fixed-length", "openai=http://h:1", workers=2, load_from=ClusterOptions("auto", 2))
        )
    assert raised.value.where == "--workers"


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ((None, 2, None), "--load-nodes"),
        ((None, None, 1), "--workers-per-node"),
        (("auto", None, None), "--load-nodes"),
        (("auto", 0, None), "--load-nodes"),
        (("auto", 1, 0), "--workers-per-node"),
    ],
)
def test_half_a_request_names_the_flag(given, flag):
    with pytest.raises(SpecError) as raised:
        asked(*given)
    assert raised.value.where == flag


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RuntimeError("Token authentication is enabled but no authentication token was found"), "token"),
        (
            RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.9\n    Python: 3.9"),
            "2.9",
        ),
        (ImportError("No module named 'grpc'"), "grpc"),
        (ConnectionError("Could not find any running Ray instance.\nMore"), "running Ray instance"),
    ],
)
def test_each_trouble_is_one_line_and_a_hint(error, says):
    found = cannot_join("h:1", error)
    assert says in found.what
    assert "\n" not in found.what
    assert found.hint


def test_too_few_nodes_and_nodes_that_are_taken_are_told_apart():
    nodes = [{"Resources": {"CPU": 1.0}}, {"Resources": {"CPU": 4.0}}]
    few, taken = (
        cannot_place(ClusterOptions("a", 2, 2), nodes),
        cannot_place(ClusterOptions("a", 2, 1), nodes),
    )
    assert isinstance(few, SetupError)
    assert few.what == "has no 2 nodes with 2 free CPUs each: 2 nodes, CPUs 1, 4"
    assert taken.what == "2 nodes with 1 free CPU each: taken by other work"
    assert (taken.where, taken.hint) == ("--load-nodes", "`ray status` shows by what")
    gone = cannot_place(ClusterOptions("a", 2, 1), nodes, ["b (10.0.0.2): silent for 30 s"])
    assert gone.what == "has no 2 nodes with 1 free CPU each any more: lost b (10.0.0.2): silent for 30 s"
    assert "bench resume" in gone.hint


def node(**changes):
    return LoadNode(
        **{
            "name": "a",
            "address": "10.0.0.1",
            "kernel": "6",
            "cpus": 2,
            "workers": (0,),
            "lost": None,
            "clock_offset_ms": 3e6,
            "clock_uncertainty_ms": 0.1,
            "drift_ppm": 0.0,
            "rtt_ms": 0.2,
            "pings": 200,
            "path_rtt_ms": 0.2,
            "start_skew_ms": 0.0,
            "longest_stall_ms": 3.0,
            **changes,
        }
    )


def spread_over_two_nodes(later_ms=0):
    """Node a has worker 0, node b worker 1, whose TTFT is longer by so much."""
    rows = [
        {"sent": i * 10, "texts": [i * 10 + 100 + i % 7 + later_ms * (i % 2), i * 10 + 150]}
        for i in range(200)
    ]
    made = records(*rows)
    made.requests["worker"] = np.arange(200) % 2
    return made


def codes(nodes, later_ms=0, **load):
    load = {"load__kind": "rate", "load__value": 100, **load}
    evidence = Evidence(RequestView(spread_over_two_nodes(later_ms)), facts(nodes=nodes, planned=200, **load))
    return {str(reason.code): reason for reason in judge(evidence).reasons if reason.code.startswith("node-")}


def test_the_node_whose_wall_clock_was_set_is_named():
    nodes = (node(clock_step_ms=0.05), node(name="b", workers=(1,), clock_step_ms=200.0))
    made = facts(nodes=nodes, planned=200, client__clock_step_ms=200.0)
    found = judge(Evidence(RequestView(spread_over_two_nodes()), made)).reasons
    (reason,) = [one for one in found if one.code == "clock-step"]
    assert reason.measured == "200.000 ms, on b (10.0.0.1)"


def test_two_nodes_in_step_are_not_doubted():
    assert codes((node(), node(name="b", workers=(1,)))) == {}


def test_clocks_of_which_nothing_is_known_add_nothing_to_the_starts():
    second = {"name": "b", "workers": (1,), "clock_uncertainty_ms": None}
    for skew_ms in (0.0, 5.0):  # below the limit of 5.2 ms
        assert codes((node(clock_uncertainty_ms=None), node(**second, start_skew_ms=skew_ms))) == {}


def test_a_lost_node_is_named_and_makes_the_cell_invalid():
    found = codes((node(), node(name="b", workers=(1,), lost="its process was killed")))
    assert found.keys() == {"node-lost"}
    assert found["node-lost"].verdict == "INVALID"
    assert "b (10.0.0.1)" in found["node-lost"].measured


def test_a_node_that_stood_still_is_named_and_makes_the_cell_invalid():
    found = codes((node(), node(name="b", workers=(1,), longest_stall_ms=5000.0)))
    assert found.keys() == {"node-stalled"}
    assert found["node-stalled"].verdict == "INVALID"
    assert found["node-stalled"].measured == "b (10.0.0.1): 5.0 s"


@pytest.mark.parametrize(
    ("change", "follows"),
    [({"lost": "its process was killed"}, "too-short"), ({"longest_stall_ms": 5000.0}, "schedule-lag")],
)
def test_what_a_lost_or_stalled_node_did_not_do_in_time_is_no_second_doubt(change, follows):
    late = {"samples": 2000, "p50": 1.0, "p90": 1.0, "p95": 1.0, "p99": 900.0, "max": 5000.0}
    load = {"load": {"kind": "rate", "value": 100}, "client__send_lag_ms": late, "minimum": None}
    found = []
    for second in (node(name="b", workers=(1,)), node(name="b", workers=(1,), **change)):
        about = facts(nodes=(node(), second), **load)
        judged = judge(Evidence(RequestView(spread_over_two_nodes()), about)).reasons
        found.append({str(reason.code) for reason in judged})
    assert follows in found[0]
    assert follows not in found[1]
    assert any(code.startswith("node-") for code in found[1])


@pytest.mark.parametrize(
    "changes", [{"start_skew_ms": 6.0}, {"clock_uncertainty_ms": 6.0}, {"start_skew_ms": -6.0}]
)
def test_starts_apart_or_clocks_unknown_make_it_invalid(changes):
    found = codes((node(), node(name="b", workers=(1,), **changes)))
    assert found["node-clock"].verdict == "INVALID"


def test_what_counts_is_how_far_apart_the_starts_are():
    late = node(start_skew_ms=20.0)
    assert codes((late, node(name="b", workers=(1,), start_skew_ms=21.0))) == {}
    apart = node(name="b", workers=(1,), start_skew_ms=26.0, clock_uncertainty_ms=0.3)
    found = codes((late, apart))["node-clock"]
    assert found.measured == "starts 6.00 ms apart, clock of b known to 0.30 ms"
    assert found.limit == "5.2 ms"  # 5% of a median TTFT of 103 ms


def test_a_node_with_other_answers_is_suspect():
    found = codes((node(), node(name="b", workers=(1,))), later_ms=20)
    assert found["node-differs"].verdict == "SUSPECT"
    assert found["node-differs"].measured == "b (10.0.0.1): +20.00 ms"
    # 3.5 standard errors are 17.5 of 100 answers, which come in whole ms, 14 of a kind: 1 ms off. 0.2 + √2.
    assert found["node-differs"].limit == "1.61 ms"
    assert codes((node(path_rtt_ms=25.0), node(name="b", workers=(1,), path_rtt_ms=25.0)), later_ms=20) == {}


def test_medians_are_as_unsure_as_the_answers_between_them():
    """Medians of 120 and of 100 ms: no answer lies between, though many take 10 ms or 900."""
    times_ms = {0: [120] * 60 + [900] * 40, 1: [10] * 40 + [100] * 60}
    rows = []
    for i in range(200):
        ms = 10 * i + times_ms[i % 2][i // 2]
        rows.append({"sent": 10 * i, "texts": [ms, ms + 50]})
    made = records(*rows)
    made.requests["worker"] = np.arange(200) % 2
    given = facts(
        nodes=(node(), node(name="b", workers=(1,))), planned=200, load__kind="rate", load__value=100
    )
    reasons = judge(Evidence(RequestView(made), given)).reasons
    (found,) = (reason for reason in reasons if reason.code == "node-differs" and "b (" in reason.measured)
    assert (found.measured, found.limit) == ("b (10.0.0.1): -20.00 ms", "0.20 ms")


@pytest.mark.parametrize(("answers", "found"), [(29, set()), (30, {"node-differs"})])
def test_a_node_of_few_answers_is_not_compared(answers, found):
    made = spread_over_two_nodes(later_ms=20)
    of_b = np.flatnonzero(made.requests["worker"] == 1)
    made.requests["worker"][of_b[answers:]] = 2  # a process whose node is not known
    given = facts(
        nodes=(node(), node(name="b", workers=(1,))), planned=200, load__kind="rate", load__value=100
    )
    reasons = judge(Evidence(RequestView(made), given)).reasons
    assert {reason.code for reason in reasons if reason.measured.startswith("b (10.0.0.1): +")} == found


def mixed(later_ms=0, heavy=50):
    """Node b gets so many percent of heavy requests, whose first token takes ten times as long."""
    rows, kinds = [], []
    for i in range(400):
        share = heavy if i % 2 else 100 - heavy
        kinds.append(("heavy" if i // 2 % 100 < share else "light", {}))
        ms = 10 * i + (1000 if kinds[-1][0] == "heavy" else 100) + i % 7 + later_ms * (i % 2)
        rows.append({"sent": 10 * i, "texts": [ms, ms + 100]})
    made = records(*rows)
    made.requests["worker"] = np.arange(400) % 2
    sent = facts(nodes=(node(), node(name="b", workers=(1,))), planned=400, load__value=100)
    verdict = judge(Evidence(RequestView(made), sent, requested=requested(*kinds)))
    return {str(reason.code): reason for reason in verdict.reasons if reason.code.startswith("node-")}


def test_a_slow_node_is_found_in_a_mix_and_an_unequal_share_of_heavy_requests_is_no_slow_node():
    """The median of half heavy and half light requests lies anywhere between 100 ms and 1 s."""
    assert mixed() == {} == mixed(heavy=30)
    found = mixed(later_ms=20)["node-differs"]
    assert found.measured.startswith("b (10.0.0.1): +")
    assert found.measured.endswith("% in requests of like kind")


@pytest.mark.parametrize(("slots", "found"), [(7, set()), (8, {"node-differs"})])
def test_in_a_closed_loop_few_slots_of_a_node_differ_without_it(slots, found):
    pair = (node(), node(name="b", workers=(1,)))
    assert codes(pair, later_ms=20, load__kind="concurrency", load__value=slots).keys() == found


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_records_move_as_a_whole_and_unknown_stays(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("harness.load.spill._MOVED_AT_ONCE", at_once)
    rows = empty_requests(2)
    rows["outcome"] = Outcome.OK
    rows["seq"] = [3, 5]
    rows["intended_ns"], rows["sent_ns"], rows["connect_ns"] = [0, 10 * MS], [MS, UNKNOWN], [7, 7]
    rows["first_text_ns"] = [5 * MS, UNKNOWN]
    events = np.array([(3, 1, 1, 9, 5 * MS), (3, 1, 1, 9, 6 * MS)], EVENT_DTYPE)
    spill = Spill(tmp_path)
    for row, own in zip(rows, (events, events[:0]), strict=True):
        spill.add(Finalized(tuple(row.item()), own, "t", "", "", "", Outcome.OK, own["stamp_ns"], 0))
    spill.close()
    move(tmp_path, lambda sent: sent // MS + 100)
    moved = merge([tmp_path], empty_requests(0), "")
    assert moved.requests["sent_ns"].tolist() == [MS + 101, UNKNOWN]
    assert moved.requests["intended_ns"].tolist() == [101, 10 * MS + 110]
    assert moved.requests["first_text_ns"].tolist() == [5 * MS + 101, UNKNOWN]
    assert moved.requests["connect_ns"].tolist() == [7, 7]
    assert moved.events["stamp_ns"].tolist() == [5 * MS + 101, 6 * MS + 101]
    assert moved.requests.dtype == REQUEST_DTYPE


@pytest.mark.parametrize("name", ["slurm/load-nodes.sbatch", "kuberay/rayjob.yaml"])
def test_the_commands_of_the_deploy_files_have_only_flags_that_exist(name):
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    command = re.search(r"bench run (?:[^#]*?)(?=\n\S|\n  \w+:|\Z)", text[text.rindex("bench run") :]).group()
    flags = set(re.findall(r"(?<!\S)--[a-z-]+", command))
    known = {flag for one in command_parser("run")._actions for flag in one.option_strings}
    assert {"--cluster", "--load-nodes", "--workers-per-node"} <= flags <= known


NODE = ["raylet", "--gcs-address=192.0.2.2:6399"]


@pytest.mark.parametrize(
    ("address", "words", "environment", "found"),
    [
        ("192.0.2.2:6399", NODE, {"RAY_AUTH_MODE": "token", "HOME": "/"}, {"RAY_AUTH_MODE": "token"}),
        ("auto", NODE, {"RAY_AUTH_TOKEN_PATH": "/t"}, {"RAY_AUTH_TOKEN_PATH": "/t"}),
        ("192.0.2.2:6399", NODE, {}, {}),
        ("192.0.2.2:7000", NODE, {"RAY_AUTH_MODE": "token"}, {}),
        ("192.0.2.2:6399", None, {"RAY_AUTH_MODE": "token"}, {}),
    ],
)
def test_a_run_authenticates_as_the_node_on_its_machine_does(monkeypatch, address, words, environment, found):
    process = SimpleNamespace(info={"name": "raylet", "cmdline": words}, environ=lambda: environment)
    monkeypatch.setattr("psutil.process_iter", lambda _fields: [process])
    assert local.authentication(address) == found


def test_a_client_of_a_cluster_sends_the_token_that_it_has(monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    assert local.authentication("ray://192.0.2.2:10001") == {}
    (tmp_path / "token").touch()
    assert local.authentication("ray://192.0.2.2:10001") == {"RAY_AUTH_MODE": "token"}


def test_a_token_that_could_not_be_written_is_not_there(monkeypatch, tmp_path):
    def full(*_given, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space"):
            local.ensure_token()
    token = local.ensure_token()
    assert len(token.read_text()) == 64
    assert token.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [token]


def test_a_head_that_ends_while_it_is_stopped_is_stopped(monkeypatch, tmp_path):
    asked = []

    def ended(pid):
        asked.append(pid)
        raise psutil.NoSuchProcess(pid)

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    head = local.Head("127.0.0.1", 6379, pid=1 << 30, started=1.0)
    monkeypatch.setattr(local, "running", lambda: head)
    monkeypatch.setattr(psutil, "Process", ended)
    (tmp_path / "cluster.json").touch()
    assert local.down() == head
    assert asked == [head.pid]
    assert not (tmp_path / "cluster.json").exists()


def test_the_node_of_somebody_else_says_nothing(monkeypatch):
    def refused():
        raise psutil.AccessDenied

    process = SimpleNamespace(info={"name": "raylet", "cmdline": NODE}, environ=refused)
    monkeypatch.setattr("psutil.process_iter", lambda _fields: [process])
    assert local.authentication("auto") == {}
