"""`bench cluster`: what is started, and what a second machine has to do; Ray itself is never asked."""

import json
import os
from types import SimpleNamespace

import pytest

from harness.cli.main import main
from harness.cluster import local, options, placement
from harness.cluster.local import Head
from harness.errors import ExitCode


@pytest.fixture
def ray(monkeypatch, tmp_path):
    """`ray.asked` is what was started; `ray.head` what is running."""
    found = SimpleNamespace(asked=[], head=None, nodes=[])

    def up(host, port, cpus):
        found.asked.append((host, port, cpus))
        return Head(host, port, 1, 0.0)

    monkeypatch.setattr(options, "require_ray", lambda: None)
    monkeypatch.setattr(placement, "members", lambda _address: found.nodes)
    for name, answer in (("up", up), ("down", lambda: found.head), ("running", lambda: found.head)):
        monkeypatch.setattr(local, name, answer)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    return found


@pytest.mark.parametrize(("cores", "cpus"), [(16, 8), (3, 1), (1, 1), (None, 1)])
def test_load_takes_every_second_core_unless_a_number_is_given(ray, monkeypatch, cores, cpus):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert main(["cluster", "up"]) == ExitCode.OK
    assert main(["cluster", "up", "--cpus", "5", "--port", "7000"]) == ExitCode.OK
    assert ray.asked == [("127.0.0.1", 6379, cpus), ("127.0.0.1", 7000, 5)]


def test_a_cluster_of_one_machine_says_how_to_make_one_of_two(ray, capsys):
    main(["cluster", "up", "--cpus", "2"])
    assert capsys.readouterr().out.splitlines() == [
        "a cluster of this machine alone is up at 127.0.0.1:6379, 2 CPUs for load",
        "for a second machine: bench cluster down, then up --host ADDRESS",
        "measure from it:  bench run … --cluster 127.0.0.1:6379 --load-nodes 1",
    ]


def test_another_machine_gets_the_token_and_the_address(ray, capsys, tmp_path):
    main(["cluster", "up", "--cpus", "2", "--host", "192.0.2.7"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        f"  scp 192.0.2.7:{tmp_path}/token ~/.ray/auth_token",
        "  RAY_AUTH_MODE=token ray start --address=192.0.2.7:6379 --num-cpus=N",
        "measure from it:  bench run … --cluster 192.0.2.7:6379 --load-nodes 1",
    ]
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("down", "--port", "6380"), "error: --port: only applies to `bench cluster up`"),
        (("status", "--host", "192.0.2.7"), "error: --host: only applies to `bench cluster up`"),
        (("up", "--cpus", "0"), "error: --cpus: must be at least 1, not 0"),
    ],
)
def test_a_flag_without_effect_is_refused(ray, capsys, words, says):
    assert main(["cluster", *words]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [says]
    assert ray.asked == []


def test_what_is_stopped_is_named(ray, capsys):
    assert main(["cluster", "down"]) == ExitCode.OK
    assert tuple(capsys.readouterr()) == ("", "no cluster is up\n"), "as of `bench down`"
    ray.head = Head("127.0.0.1", 6379, 1, 0.0)
    assert main(["cluster", "down"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == ["127.0.0.1:6379: stopped"]


def test_each_node_has_a_line_and_no_cluster_is_an_error(ray, capsys):
    assert main(["cluster", "status"]) == ExitCode.SETUP
    assert "error: bench cluster: no cluster of `bench cluster up` is running" in capsys.readouterr().err
    ray.head = Head("192.0.2.7", 6379, 1, 0.0)
    ray.nodes = [
        {"NodeManagerAddress": "192.0.2.7", "Alive": True, "Resources": {"CPU": 1.0}},
        {"NodeManagerAddress": "192.0.2.8", "Alive": False, "Resources": {}},
    ]
    assert main(["cluster", "status"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "192.0.2.7        up    1 CPU",
        "192.0.2.8        lost  0 CPUs",
    ]
    assert main(["cluster", "status", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {
        "address": "192.0.2.7:6379",
        "nodes": [
            {"node": "192.0.2.7", "state": "up", "cpus": 1},
            {"node": "192.0.2.8", "state": "lost", "cpus": 0},
        ],
    }


@pytest.mark.parametrize("action", ["up", "down", "status"])
def test_without_ray_every_action_is_one_error(monkeypatch, capsys, action):
    monkeypatch.setattr(options, "find_spec", lambda _name: None)
    assert main(["cluster", action]) == ExitCode.SETUP
    assert capsys.readouterr().err.splitlines() == [
        "error: cluster: Ray is not installed",
        "hint: pip install './llm-servebench[ray]', where ./llm-servebench is a checkout",
    ]
