"""`bench up`: how the engine is asked for, what is printed about it, and what is refused before any start."""

import json
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from harness.cli.main import main
from harness.engines import session
from harness.engines.check import preflight
from harness.engines.start.containers import daemon
from harness.errors import ExitCode, SetupError
from harness.model import Ending
from tests.factories.containers import ENDED, FakeDaemon, started


@pytest.fixture
def docker(monkeypatch, tmp_path):
    made = FakeDaemon()
    monkeypatch.setattr(daemon, "Daemon", lambda: made)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    return made


class Engine:
    """A ready engine that ends at the third look."""

    served_name, base_url, facts = "m", "http://127.0.0.1:8100", {"log": "/cache/up-vllm.log"}

    def __init__(self, *metrics):
        self.counter_sources = metrics or (self,)
        looks = iter([None, None, Ending("died", "exit code 9")])
        self.liveness = SimpleNamespace(look=lambda: next(looks))

    def log_tail(self, lines):
        return f"the last {lines} lines"


@pytest.fixture
def asked(docker, monkeypatch):
    """The engines that were asked for. `asked.engine` is the one that starts."""
    found = SimpleNamespace(requests=[], engine=Engine(), machine=None)

    @contextmanager
    def opened(request, _say):
        found.requests.append(request)
        yield found.engine

    def checked(planned, machine):
        found.planned, found.machine = planned, machine

    monkeypatch.setattr(session, "open_engine", opened)
    monkeypatch.setattr(preflight, "require", checked)
    monkeypatch.setattr(time, "sleep", lambda _s: None)
    return found


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["vllm,sglang"], ExitCode.USAGE, "one engine without a URL can be started at a time"),
        (["vllm=http://127.0.0.1:1"], ExitCode.USAGE, "one engine without a URL can be started at a time"),
        (["vllm", "--launch", "compose", "--host", "0.0.0.0"], ExitCode.USAGE, "--host: a container is "),
        (["truth", "--launch", "process", "--host", "::1"], ExitCode.USAGE, "--host ::1: is not an IPv4"),
        (["vllm", "--gpus", "0,0"], ExitCode.USAGE, "--gpus 0,0: needs different GPUs"),
        (["vllm", "--port", "1", "--engine-set", "port=2"], ExitCode.USAGE, "--engine-set port: another"),
        (
            ["vllm@v", "--variant", "v=max_sequences=8", "--engine-set", "max_sequences=4"],
            ExitCode.USAGE,
            "--variant v: max_sequences: --engine-set sets it too",
        ),
    ],
)
def test_what_cannot_be_started_is_refused(asked, capsys, words, code, says):
    assert main(["up", *words]) == code
    assert says in capsys.readouterr().err
    assert asked.requests == []


@pytest.mark.parametrize(
    ("container", "says"),
    [
        (started("vllm"), "error: vllm: it is already up, at http://127.0.0.1:1234"),
        (started("vllm", state=ENDED), "error: vllm: it was up, and has ended"),
    ],
)
def test_a_second_container_of_an_engine_is_refused(asked, docker, capsys, container, says):
    docker.here["a"] = container
    assert main(["up", "vllm", "--launch", "compose", "--device", "cpu"]) == ExitCode.SETUP
    said = capsys.readouterr().err
    assert says in said
    assert "hint: `bench down vllm` removes it" in said
    assert asked.requests == []


def test_without_docker_the_check_of_the_machine_says_all_that_is_missing(asked, docker, monkeypatch):
    """Docker alone was reported, though the GPU was missing too."""

    def silent(*_wanted):
        raise SetupError("no Docker daemon answers")

    monkeypatch.setattr(docker, "containers", silent)
    assert main(["up", "vllm", "--launch", "compose", "--device", "cuda"]) == ExitCode.OK
    assert [planned.choice.device for planned in asked.planned.values()] == ["cuda"]


def test_a_container_stays_and_its_commands_are_printed(asked, docker, capsys):
    """A run's container, and one of a variant, are no second one."""
    docker.here |= {"a": started("vllm", keep=False), "b": started("vllm@eager")}
    words = ["--launch", "compose", "--device", "cpu", "--port", "8100", "--engine-set", "max_sequences=4"]
    assert main(["up", "vllm", *words, "--gpus", "1,0", "--gpu-wait", "30"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "vllm serves model 'm' at http://127.0.0.1:8100",
        "measure it:  bench run --scenario shared-prefix --backends vllm=http://127.0.0.1:8100",
        "its log:     bench logs vllm",
        "stop it:     bench down vllm",
    ]
    (request,) = asked.requests
    assert request.keep
    assert request.values == {"max_sequences": "4", "port": "8100"}
    assert (request.gpus, request.gpu_wait_s, request.host) == (("1", "0"), 30.0, "127.0.0.1")


def test_a_process_runs_until_it_ends_which_is_an_error_with_its_log(asked, capsys):
    """Its metrics are served elsewhere: whoever measures it has to be given that place."""
    asked.engine = Engine(SimpleNamespace(base_url="http://127.0.0.1:9100"))
    assert main(["up", "vllm@eager", "--launch", "process", "--host", "192.0.2.7"]) == ExitCode.SETUP
    said = capsys.readouterr()
    where = "vllm@eager=http://127.0.0.1:8100 --metrics-url http://127.0.0.1:9100"
    assert said.out.splitlines()[1:] == [
        f"measure it:  bench run --scenario shared-prefix --backends {where}",
        "its log:     /cache/up-vllm.log",
        "stop it:     Ctrl-C",
    ]
    assert "error: vllm@eager: ended: exit code 9\nthe last 15 lines" in said.err
    (request,) = asked.requests
    assert (request.keep, request.host, request.log_path.name) == (False, "192.0.2.7", "up-vllm@eager.log")
    assert asked.planned == {"vllm@eager": request}


def test_a_variant_of_the_command_line_is_measured_under_its_name(asked, capsys):
    """No other command line knows it: it stands there as a name for the running server."""
    words = ["--launch", "process", "--variant", "mine=/builds/llama-server --no-mmap"]
    assert main(["up", "llamacpp@mine", *words]) == ExitCode.SETUP
    assert "--backends mine=llamacpp=http://127.0.0.1:8100\n" in capsys.readouterr().out
    (request,) = asked.requests
    assert request.ref.definition.process.program == ("/builds/llama-server",)


@pytest.mark.parametrize(("launch", "code"), [("compose", ExitCode.OK), ("process", ExitCode.SETUP)])
def test_the_document_comes_when_the_engine_is_ready(asked, capsys, launch, code):
    """A process then runs on, and its end is an error: the second document."""
    asked.engine = Engine(SimpleNamespace(base_url="http://127.0.0.1:9100"))
    assert main(["up", "vllm", "--launch", launch, "--device", "cpu", "--json"]) == code
    ready, end = json.JSONDecoder().raw_decode(out := capsys.readouterr().out)
    assert ready == {
        "backend": "vllm",
        "model": "m",
        "url": "http://127.0.0.1:8100",
        "metrics_urls": ["http://127.0.0.1:9100"],
    }
    assert ("ended: exit code 9" in out[end:]) is (launch == "process")
