"""`bench down`: what `bench up` started, and never the container of a run that is measured."""

import io
import sys
from unittest.mock import Mock

import pytest

from harness.cli.display.streams import UnreadError
from harness.cli.main import main
from harness.engines.start.containers import daemon
from harness.errors import ExitCode
from tests.factories.containers import FakeDaemon, started


@pytest.fixture
def docker(monkeypatch):
    made = FakeDaemon(
        a=started("vllm"), b=started("vllm@eager"), c=started("sglang"), d=started("tgi", keep=False)
    )
    monkeypatch.setattr(daemon, "Daemon", lambda: made)
    return made


@pytest.mark.parametrize(
    ("names", "stopped"),
    [
        ([], ["vllm", "vllm@eager", "sglang"]),
        (["vllm"], ["vllm", "vllm@eager"]),
        (["vllm@eager"], ["vllm@eager"]),
        (["sglang", "vllm@eager"], ["sglang", "vllm@eager"]),
    ],
)
def test_those_that_were_named_are_stopped_and_without_a_name_all(docker, capsys, names, stopped):
    assert main(["down", *names]) == ExitCode.OK
    assert docker.removed == [f"project-{engine}" for engine in stopped]
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"{engine}: stopped and removed" for engine in stopped]
    assert said.err == ""


def test_what_is_not_up_is_said_and_the_others_are_stopped(docker, capsys):
    assert main(["down", "lmdeploy", "tgi", "sglang"]) == ExitCode.OK
    said = capsys.readouterr()
    assert said.err.splitlines() == ["lmdeploy is not up", "tgi is not up"]
    assert said.out == "sglang: stopped and removed\n"
    docker.here.clear()
    main(["down"])
    assert capsys.readouterr().err == "nothing is up\n"


def test_a_name_that_is_wrong_stops_none_and_what_is_named_twice_is_stopped_once(docker, capsys):
    assert main(["down", "vllm", "sglagn"]) == ExitCode.USAGE
    assert docker.removed == []
    assert main(["down", "vllm@eager", "vllm"]) == ExitCode.OK
    assert docker.removed == ["project-vllm@eager", "project-vllm"]


def test_all_are_stopped_where_nobody_reads_which(docker, monkeypatch):
    """As in `bench down | head -1`."""
    closed = io.StringIO()
    monkeypatch.setattr(closed, "flush", Mock(side_effect=UnreadError))
    monkeypatch.setattr(sys, "stdout", closed)
    assert main(["down"]) == ExitCode.UNREAD
    assert len(docker.removed) == 3
