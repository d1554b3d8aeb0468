"""What an engine that runs already is shown, and where."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.client.answer import NoAnswer, NoAnswerError, StatusError
from harness.engines import liveness, session
from harness.engines.provide.logged import Log
from harness.engines.session import EngineSession, _waited_for
from harness.engines.speak.access import access_behind
from harness.engines.speak.server import Server
from harness.engines.start.launch_choice import LaunchChoice
from harness.engines.start.request import EngineRequest
from harness.errors import SetupError
from harness.model import Ending
from harness.spec.backend import BackendRef
from harness.spec.backend_refs import load_backend
from harness.spec.reach import Given, Reach


@pytest.mark.parametrize(
    ("metrics_url", "shown"),
    [
        ("https://gate/metrics", True),
        ("https://GATE:443/metrics", True),
        ("http://gate/metrics", False),
        ("https://gate:9090/metrics", False),
        ("http://behind:8000/metrics", False),
    ],
)
def test_the_headers_of_a_gateway_go_to_its_own_address_alone(metrics_url, shown):
    """However its address is written. Without TLS its key would go in the clear."""
    reach = Reach(headers=(Given("X-Key", "k"),))
    ref = BackendRef(load_backend("vllm"), None, "https://gate", reach=reach)
    assert ("X-Key" in access_behind(metrics_url, ref.urls, ref.reach).headers) is shown


@pytest.mark.parametrize(
    ("given", "names", "model"),
    [("", ["qwen", "other"], "qwen"), ("", ["other", "llama"], "llama"), ("llama", ["qwen"], "llama")],
)
def test_a_running_server_is_asked_again_what_it_is(monkeypatch, given, names, model):
    """A name that was given need not be listed."""
    server = EngineSession(load_backend("vllm"), "http://h:1", given)
    server.facts = {"served_name": "llama", "server_version": "1", "info": {}, "base_url": "http://h:1"}
    server.served_name = "llama"
    monkeypatch.setattr(server, "version", lambda: "2")
    monkeypatch.setattr(server, "info", lambda: {"size": 7})
    monkeypatch.setattr(server, "model_names", lambda: names)
    server.look_again()
    found = {"served_name": model, "server_version": "2", "info": {"size": 7}, "base_url": "http://h:1"}
    assert (server.facts, server.served_name) == (found, "llama")


@pytest.mark.parametrize(
    ("second", "found"),
    [
        ((["llama"], "1", {"kv": 990, "lora": True}), ("llama", "1", {"kv": 1000, "lora": True})),
        ((["qwen"], "2", {"kv": 500}), ("llama + qwen", "1 + 2", {"kv": "1000 + 500", "lora": True})),
        (([], None, {}), ("llama", "1", {"kv": 1000, "lora": True})),  # 503 at this moment, the same else
        (([], None, {"kv": 1000, "lora": False}), ("llama", "1", {"kv": 1000, "lora": "True + False"})),
    ],
)
def test_every_replica_is_asked_again_what_it_is(monkeypatch, second, found):
    """A cache is sized by what memory is free, so that two are rarely equal."""
    other = Server(load_backend("vllm"), "http://h:2", "llama")
    first = EngineSession(load_backend("vllm"), "http://h:1", "", others=[other])
    first.served_name = "llama"
    own = ["llama"], "1", {"kv": 1000, "lora": True}
    for server, (names, version, info) in ((first, own), (other, second)):
        monkeypatch.setattr(server, "model_names", lambda names=names: names)
        monkeypatch.setattr(server, "version", lambda version=version: version)
        monkeypatch.setattr(server, "info", lambda info=info: info)
    first.look_again()
    assert (first.facts["served_name"], first.facts["server_version"], first.facts["info"]) == found


def test_a_running_server_that_is_silent_is_what_it_was(monkeypatch):
    def silent():
        raise SetupError("no answer")

    server = EngineSession(load_backend("vllm"), "http://h:1", "")
    server.facts = {"server_version": "1"}
    monkeypatch.setattr(server, "info", silent)
    server.look_again()
    assert server.facts == {"server_version": "1"}


@pytest.mark.parametrize(("before", "model"), [("", "qwen"), ("llama", "llama"), ("gone", "qwen")])
def test_a_server_that_is_attached_to_again_is_asked_for_the_same_model(monkeypatch, before, model):
    """As long as it lists that: the next repeat, or a resumed run, measured the one that came first now."""
    asked = []
    monkeypatch.setattr(Server, "check_reachable", lambda *_, **_options: None)
    monkeypatch.setattr(Server, "model_names", lambda _: ["qwen", "llama"])
    monkeypatch.setattr(EngineSession, "reported", lambda _: {})
    monkeypatch.setattr(session, "hello", lambda server, _limit_s: asked.append(server.served_name))
    ref = BackendRef(load_backend("vllm"), None, "http://h:1")
    request = EngineRequest(
        ref, LaunchChoice("attach", ""), "none", None, log_path=Path("log"), named_before=before
    )
    with session.open_engine(request, print) as engine:
        assert [engine.served_name] == asked == [engine.facts["served_name"]] == [model]


def test_an_engine_that_bench_started_is_not_asked_again():
    started = EngineSession(load_backend("vllm"), "http://h:1", "bench", life=SimpleNamespace())
    started.facts = {"server_version": "1"}
    started.look_again()
    assert started.facts == {"server_version": "1"}


def test_what_fails_on_an_engine_that_lives_on_names_its_log(monkeypatch, tmp_path):
    """Such as one whose server process died and whose parent did not."""
    monkeypatch.setattr(liveness, "_DYING_S", 0)
    life, log = SimpleNamespace(exited=lambda: None), Log(tmp_path / "vllm-r0.log")
    ours = EngineSession(load_backend("vllm"), "http://h:1", "", life=life, log=log)
    running = EngineSession(load_backend("vllm"), "http://h:1", "")
    for engine, own, hint in (
        (ours, None, f"its log: {log.path}"),
        (ours, "wait", "wait"),
        (running, None, None),
    ):
        with pytest.raises(SetupError) as caught, engine.end_as_error("vllm"):
            raise SetupError("Connection refused", hint=own)
        assert caught.value.hint == hint


def test_an_engine_that_a_load_found_hung_has_the_advice_for_that(monkeypatch):
    running = EngineSession(load_backend("vllm"), "http://h:1", "")
    assert running.failure("failed", "vllm").hint == "see the server's own log"
    monkeypatch.setattr(running.liveness, "look", lambda: Ending("hung", "why"))
    assert running.failure("hung", "vllm").hint == Ending("hung", "why").hint("see the server's own log")


def test_what_an_engine_survived_at_its_start_is_no_cause_of_its_end(tmp_path):
    """The end said that its environment lacks something: a module that it went on without."""
    log = Log(tmp_path / "engine.log")
    log.path.write_text("ImportError: no module named flash_attn\nready\n")
    engine = EngineSession(load_backend("vllm"), "http://h:1", "m", log=log)
    assert "lacks something" in engine.failure("ready, but cannot generate", "vllm").hint
    engine.begin_use()
    with log.path.open("a") as file:
        file.write("torch.OutOfMemoryError: CUDA out of memory.\n")
    died = engine.failure("ended", "vllm")
    assert died.hint.startswith("it ran out of memory")
    assert "ImportError" not in str(died)


LOST = NoAnswerError(NoAnswer.LOST, "no answer to GET /health: Connection refused", where="h")
LOADING = StatusError(503, "the server answers 503: Loading model", where="h")
OTHER = SetupError("runs version 2; http://h:1 runs 1")


@pytest.mark.parametrize(
    ("answers", "limits_s", "error"),
    [
        ([None], {}, None),
        ([LOST, LOADING, None], {LOST: 60, LOADING: 60}, None),
        ([LOST, OTHER], {LOST: 60}, OTHER.what),  # no wait mends that
        ([LOST, LOADING], {LOST: 60, LOADING: 0}, f"{LOADING.what}; asked again for 0 s"),
    ],
)
def test_a_server_that_served_before_is_waited_for(monkeypatch, answers, limits_s, error):
    """As long as each of its failures allows."""
    monkeypatch.setattr(session, "ASKED_AGAIN_S", 0)
    left = list(answers)

    def greet():
        if answer := left.pop(0):
            raise answer

    if error is None:
        away_s = _waited_for(greet, limits_s.get, print, "vllm")
        assert (away_s > 0) == (len(answers) > 1)
    else:
        with pytest.raises(SetupError) as caught:
            _waited_for(greet, limits_s.get, print, "vllm")
        assert caught.value.what == error
    assert left == []
