"""What is made of Docker's answers, and whose a container is: no Docker needed."""

import os
import platform
import re
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from docker.context import ContextAPI
from docker.errors import APIError, ImageNotFound, NotFound
from requests import ReadTimeout

from harness.engines.start.containers import compose_launch, compose_tool, daemon, images, owners
from harness.engines.start.containers.container import Container, container_facts
from harness.engines.start.containers.daemon import PROJECT, Daemon, NotOfferedError
from harness.engines.start.containers.keeper import KEEP
from harness.engines.start.orphans import born
from harness.errors import SetupError
from harness.spec.backend_refs import load_backend
from tests.factories.containers import RUNNING, FakeDaemon, started


class FakeKeeper:
    def __init__(self, ending=None):
        self.ending = ending

    def exited(self):
        return self.ending

    def stop(self):
        self.ending = "exit code 0"


def contained(tmp_path, state, keeper=None):
    (tmp_path / "drained").touch()
    daemon = FakeDaemon(c=({PROJECT: "p"}, state)) if state else FakeDaemon()
    return Container(keeper or FakeKeeper(), daemon, "p", tmp_path), daemon


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ({"Status": "running"}, None),
        ({"Status": "created"}, None),
        ({"Status": "exited", "ExitCode": 3}, "exit code 3"),
        ({"Status": "exited", "ExitCode": 139}, "killed by SIGSEGV (exit code 139)"),
        ({"Status": "exited", "ExitCode": 200}, "exit code 200"),
        (
            {"Status": "exited", "ExitCode": 137, "OOMKilled": True},
            "killed for lack of memory (exit code 137)",
        ),
        (
            {"Status": "exited", "ExitCode": 128, "Error": "runc: no such device: unknown"},
            "it could not be started: runc: no such device",
        ),
    ],
)
def test_how_a_container_ended_is_one_sentence(tmp_path, state, sentence):
    container, _daemon = contained(tmp_path, {**RUNNING, **state})
    assert container.exited() == sentence


def test_before_it_is_made_only_its_keeper_can_fail(tmp_path):
    assert contained(tmp_path, None)[0].exited() is None
    container, _daemon = contained(tmp_path, None, FakeKeeper("exit code 1"))
    assert container.exited() == "Compose did not bring it up (exit code 1)"


def test_a_dead_keeper_is_told_from_a_dead_container(tmp_path):
    container, _daemon = contained(tmp_path, RUNNING, FakeKeeper("killed by SIGKILL"))
    assert container.exited() == "its keeper died (killed by SIGKILL)"


def test_one_that_was_stopped_did_not_die(tmp_path):
    container, daemon = contained(tmp_path, RUNNING)
    with container:
        assert container.exited() is None
    daemon.here.clear()
    assert container.exited() == "stopped"


def test_what_its_keeper_left_is_removed_and_what_is_to_stay_is_not(tmp_path):
    container, daemon = contained(tmp_path, RUNNING)
    container.stop()
    assert daemon.removed == ["p"]
    (tmp_path / KEEP).touch()
    container.stop()
    assert daemon.removed == ["p"]


def stays(*_project, **_grace):
    raise SetupError("cannot be stopped: permission denied", where="container c of p")


def test_a_container_that_stays_is_an_error(tmp_path):
    container, daemon = contained(tmp_path, RUNNING)
    daemon.remove_project = stays
    with pytest.raises(SetupError, match=r"container c of p: cannot be stopped"), container:
        pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, SetupError("ended while loading")])
def test_the_error_that_ends_a_start_comes_before_a_container_that_stays(tmp_path, error):
    container, daemon = contained(tmp_path, RUNNING)
    daemon.remove_project = stays
    with pytest.raises((KeyboardInterrupt, SetupError)) as caught, container:
        raise error
    assert "cannot be stopped" not in str(caught.value)


def refusing(error):
    """A daemon with one container of project p, which it does not stop."""
    daemon = Daemon.__new__(Daemon)
    daemon.host, daemon.client = None, MagicMock()
    daemon.client.api.containers.return_value = [{"Id": "0123456789abcdef", "Labels": {}}]
    daemon.client.api.stop.side_effect = error
    return daemon


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (APIError("500", explanation="permission denied"), "permission denied"),
        (ReadTimeout("Read timed out. (read timeout=75)"), "Read timed out"),
    ],
)
def test_a_container_that_docker_does_not_stop_is_named_with_what_to_do(error, why):
    with pytest.raises(SetupError, match=why) as caught:
        refusing(error).remove_project("p", grace_s=15)
    assert caught.value.where == "container 0123456789ab of p"
    assert "`docker rm -f 0123456789ab`" in caught.value.hint


@pytest.mark.parametrize("status", [404, 409])
def test_a_container_that_is_being_removed_is_no_error(status):
    refusal = NotFound if status == 404 else APIError
    assert refusing(refusal("refused", SimpleNamespace(status_code=status))).remove_project("p", grace_s=15)


def daemon_without(error):
    """A daemon that has no image, and whose registry answers so."""
    daemon = Daemon.__new__(Daemon)
    daemon.host, daemon.client = None, MagicMock()
    daemon.client.api.inspect_image.side_effect = ImageNotFound("no such image")
    daemon.client.api.inspect_distribution.side_effect = error
    return daemon


def test_only_a_registry_that_has_answered_refuses_an_image():
    refused = APIError("404", SimpleNamespace(status_code=404), "manifest unknown")
    with pytest.raises(NotOfferedError, match="manifest unknown"):
        daemon_without(refused).offered("x:1")
    silent = APIError("500", SimpleNamespace(status_code=500), "no such host")
    with pytest.raises(SetupError, match="no such host") as caught:
        daemon_without(silent).offered("x:1")
    assert not isinstance(caught.value, NotOfferedError)
    definition = load_backend("vllm")
    images.check_offered(daemon_without(silent), definition, "cuda")
    with pytest.raises(SetupError, match="cannot be pulled: manifest unknown"):
        images.check_offered(daemon_without(refused), definition, "cuda")


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("write /var/lib/docker/x: no space left on device", "free space on Docker's disk"),
        ("Head nvcr.io: unauthorized: authentication required", "log in to its registry with `docker login`"),
        ("toomanyrequests: You have reached your pull rate limit", "log in to its registry"),
        ("manifest unknown", "use a local one with BENCH_IMAGE_VLLM=NAME"),
    ],
)
def test_a_pull_that_fails_says_what_helps(why, remedy):
    docker = SimpleNamespace(image=lambda _name: None, pull=lambda _name: iter([{"error": why}]))
    with pytest.raises(SetupError) as caught:
        images.ensure_image(docker, load_backend("vllm"), "cuda", lambda _line: None)
    assert why in caught.value.what
    assert caught.value.hint.startswith(remedy)


def test_an_image_without_a_date_is_found(monkeypatch):
    """Docker leaves out `Created` where an image has none, as those of reproducible builds."""
    found = SimpleNamespace(image=lambda _name: {"Id": "sha256:1"})
    monkeypatch.setenv("BENCH_IMAGE_VLLM", "mine:1")
    image = images.ensure_image(found, load_backend("vllm"), "cuda", print)
    assert image == images.FoundImage("mine:1", "sha256:1", None, None, overridden=True)


def silent(*_given):
    raise SetupError("no Docker daemon answers")


def test_a_daemon_that_goes_away_is_an_ending(tmp_path):
    """It ends the log that its keeper reads: then the file is there, or the keeper gone."""
    container, daemon = contained(tmp_path, RUNNING)
    daemon.containers = silent
    assert container.exited() == "no Docker daemon answers"


def test_a_question_that_the_daemon_did_not_answer_is_no_ending_while_it_sends_the_log(tmp_path):
    """An engine that went on was counted as dead for good."""
    container, daemon = contained(tmp_path, RUNNING, keeper := FakeKeeper())
    (tmp_path / "drained").unlink()
    answer, daemon.inspect = daemon.inspect, silent
    assert container.exited() is None
    daemon.inspect = answer
    assert container.exited() is None
    keeper.ending, daemon.inspect = "exit code 1", silent
    assert container.exited() == "no Docker daemon answers"


def test_facts_hold_no_environment():
    attributes = {
        "Id": "abc",
        "Name": "/bench-x_1",
        "Config": {"Entrypoint": ["vllm", "serve"], "Cmd": ["m"], "Env": ["HF_TOKEN=hf_secret"]},
        "HostConfig": {
            "Memory": 0,
            "CpusetCpus": "0-3",
            "NanoCpus": 0,
            "ShmSize": 67108864,
            "IpcMode": "host",
            "Runtime": "runc",
            "DeviceRequests": None,
        },
        "NetworkSettings": {
            "Networks": {"n": {"IPAddress": "172.18.0.2"}},
            "Ports": {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "1"}]},
        },
    }
    command, facts = container_facts(attributes)
    assert command == ["vllm", "serve", "m"]
    assert facts["direct_address"] == "172.18.0.2:8000"
    assert facts["memory_bytes"] is None
    assert facts["cpuset"] == "0-3"
    assert "hf_secret" not in str(facts)


def labelled(**changes):
    return {**owners.labels("vllm", keep=False), PROJECT: "p", **changes}


@pytest.mark.parametrize(
    ("labels", "removed", "remark"),
    [
        ({}, ["p"], "removed the container of vllm, which could not be stopped before"),
        (
            {"llm-servebench.born": "1"},
            ["p"],
            "removed the container of vllm, left by a bench that was killed",
        ),
        ({"llm-servebench.boot": "an earlier one"}, ["p"], "removed the container of vllm"),
        ({"llm-servebench.host": "elsewhere", "llm-servebench.born": "1"}, [], "another machine's bench"),
        ({"llm-servebench.kept": "yes", "llm-servebench.born": "1"}, [], "started with `bench up`"),
    ],
)
def test_only_what_this_harness_or_a_dead_one_of_this_machine_left_is_removed(labels, removed, remark):
    daemon = FakeDaemon(c=(labelled(**labels), RUNNING))
    remarks = owners.clear(daemon)
    assert daemon.removed == removed
    assert len(remarks) == (remark is not None)
    assert remark is None or remark in remarks[0]


def test_a_live_neighbour_is_mentioned():
    parent = os.getppid()
    labels = labelled(**{"llm-servebench.bench": str(parent), "llm-servebench.born": str(born(parent))})
    daemon = FakeDaemon(c=(labels, RUNNING))
    (remark,) = owners.clear(daemon)
    assert f"another bench (pid {parent}) runs vllm" in remark
    assert "its work adds to what is measured" in remark  # by `bench up` there may be none
    assert daemon.removed == []


def test_what_runs_is_found_by_engine_and_by_its_variants():
    kept = owners.labels("vllm@awq", keep=True) | {PROJECT: "q"}
    daemon = FakeDaemon(a=(labelled(), RUNNING), b=(kept, RUNNING))
    assert [one.engine for one in owners.running(daemon, "vllm")] == ["vllm", "vllm@awq"]
    (one,) = owners.running(daemon, "vllm@awq")
    assert (one.kept, one.project, one.url) == (True, "q", "http://127.0.0.1:1234")
    assert owners.running(daemon, "sglang") == []
    versions = FakeDaemon(c=started("vllm==0.11.0"), d=started("vllm==0.11.0@awq"))
    assert len(owners.running(versions, "vllm")) == len(owners.running(versions, "vllm==0.11.0")) == 2
    (one,) = owners.running(versions, "vllm==0.11.0@awq")
    assert one.engine == "vllm==0.11.0@awq"
    assert {label["llm-servebench.host"] for label, _ in daemon.here.values()} == {platform.node()}


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """`commands(docker="echo 2.30.0")`: programs that are this shell line."""

    def make(**lines):
        for name, line in lines.items():
            program = tmp_path / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\n{line}\n")
            program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return make


@pytest.mark.parametrize(
    ("lines", "argv", "version"),
    [
        ({"docker": "echo 2.30.0", "docker_compose": "echo 1.29.2"}, ("docker", "compose"), "2.30.0"),
        ({"docker": "echo 5.0.0-rc.1"}, ("docker", "compose"), "5.0.0-rc.1"),
        ({"docker": "echo v2.3; exit 0"}, ("docker", "compose"), "v2.3"),
        ({"docker": "exit 1", "docker_compose": "echo 1.29.2"}, ("docker-compose",), "1.29.2"),
        ({"docker_compose": "echo 1.29.2"}, ("docker-compose",), "1.29.2"),
    ],
)
def test_the_plugin_comes_before_the_old_command(commands, lines, argv, version):
    commands(**lines)
    tool = compose_tool.find_compose()
    assert (tool.argv, tool.version) == (argv, version)


@pytest.mark.parametrize(
    ("lines", "message"),
    [({}, "neither"), ({"docker": "exit 1", "docker_compose": "echo 1.25.0"}, "1.25.0 is too old")],
)
def test_no_usable_compose_is_one_clear_error(commands, lines, message):
    commands(**lines)
    with pytest.raises(SetupError, match=message) as caught:
        compose_tool.find_compose()
    assert "docker-compose" in caught.value.hint


def test_compose_does_not_inherit_our_pythons_settings(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert "PYTHONPATH" not in compose_tool.compose_environment()


@pytest.mark.parametrize(
    ("host", "here"),
    [
        (None, True),
        ("unix:///var/run/docker.sock", True),
        ("tcp://127.0.0.1:2375", True),
        ("tcp://gpu-box:2375", False),
        ("ssh://me@gpu-box", False),
    ],
)
def test_a_docker_elsewhere_is_refused(host, here):
    daemon = SimpleNamespace(host=host)
    if here:
        Daemon.check_here(daemon)
    else:
        with pytest.raises(SetupError, match="another machine"):
            Daemon.check_here(daemon)


def test_progress_counts_the_bytes_of_layers_that_are_known():
    layers = {}
    for status, name, detail in [
        ("Pulling from x/y", "tag", {}),
        ("Downloading", "a", {"current": 1, "total": 10}),
        ("Downloading", "b", {"current": 5}),
        ("Extracting", "a", {"current": 9, "total": 99}),
        ("Download complete", "a", {}),
        ("Pull complete", "c", {}),
    ]:
        images._note({"status": status, "id": name, "progressDetail": detail}, layers)
    assert layers == {"a": (10, 10)}


@pytest.mark.parametrize("name", ["vllm", "vllm-0.33", "My.Engine_2"])
def test_compose_keeps_the_name_of_a_project_as_it_is(name):
    assert re.fullmatch(r"bench-[a-z0-9_-]+-[0-9a-f]{8}", compose_launch._project(name))


def test_docker_is_asked_where_its_command_would_go(monkeypatch):
    contexts = {"rootless": SimpleNamespace(Host="unix:///run/user/1000/docker.sock")}
    monkeypatch.setattr(ContextAPI, "get_context", contexts.get)
    monkeypatch.setattr(ContextAPI, "get_current_context", lambda: None)
    for variable in ("DOCKER_HOST", "DOCKER_CONTEXT"):
        monkeypatch.delenv(variable, raising=False)
    assert daemon._host() is None
    monkeypatch.setenv("DOCKER_CONTEXT", "rootless")
    assert daemon._host() == "unix:///run/user/1000/docker.sock"
    monkeypatch.setenv("DOCKER_CONTEXT", "gone")
    with pytest.raises(SetupError, match="no Docker context 'gone'"):
        daemon._host()
    monkeypatch.setenv("DOCKER_HOST", "tcp://a:1")
    assert daemon._host() == "tcp://a:1"
