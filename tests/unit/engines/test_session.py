"""What an engine that runs already is shown, and where."""

import threading
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from harness.engines import session
from harness.engines.provide.logged import Log
from harness.engines.session import EngineSession, _access_for
from harness.engines.speak.server import Server
from harness.errors import SetupError
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
    assert ("X-Key" in _access_for(metrics_url, ref).headers) is shown


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
        (
            (["qwen"], "2", {"kv": 500}),
            ("llama + qwen", "1 + 2", {"kv": "1000 + 500", "lora": True}),
        ),
        (([], None, {}), ("llama", "1", {"kv": 1000, "lora": True})),  # 503 at this moment, the same else
        (
            ([], None, {"kv": 1000, "lora": False}),
            ("llama", "1", {"kv": 1000, "lora": "True + False"}),
        ),
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


def test_an_engine_that_bench_started_is_not_asked_again():
    started = EngineSession(load_backend("vllm"), "http://h:1", "bench", life=SimpleNamespace())
    started.facts = {"server_version": "1"}
    started.look_again()
    assert started.facts == {"server_version": "1"}


def test_what_fails_on_an_engine_that_lives_on_names_its_log(monkeypatch, tmp_path):
    """Such as one whose server process died and whose parent did not."""
    monkeypatch.setattr(session, "_DYING_S", 0)
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


def test_an_engine_that_a_load_found_hung_counts_as_ended_also_where_it_is_not_ours():
    running = EngineSession(load_backend("vllm"), "http://h:1", "")
    assert running.exited() is None
    running.hung = "3 requests in a row had no answer within 9 s"
    assert running.exited() == running.hung
    advice = "in another run, `py-spy dump --pid PID` of it shows where it stands; try a lower load too"
    assert running.failure("hung", "vllm").hint == f"see the server's own log; {advice}"


def test_an_engine_hangs_only_while_one_of_its_replicas_answers_nothing(monkeypatch):
    def hello(server, answer_s):
        assert server not in engine.replicas, "its open connections may be answered where no new ones are"
        asked.append((server.base_url, answer_s))
        if server.base_url in silent:
            raise SetupError("no answer")

    monkeypatch.setattr("harness.engines.session.hello", hello)
    definition, asked = load_backend("vllm"), []
    other = Server(definition, "http://h:2", "")
    engine, silent = EngineSession(definition, "http://h:1", "", others=[other]), []
    engine.ask_if_hung("why", 9, threading.Event())
    assert engine.exited() is None
    silent.append(other.base_url)
    engine.ask_if_hung("why", 9, threading.Event())
    assert engine.exited() == "why"
    assert asked == [("http://h:1", 9), ("http://h:2", 9)] * 2


def asked_if_hung(monkeypatch, counts, answers_at=None):
    """An engine that shows these counts of tokens, and answers the short request of this number."""
    times = count()

    def hello(server, answer_s):
        if next(times) != answers_at:
            raise SetupError("no answer")

    def counters(seen):
        tokens = next(seen)
        if tokens is SetupError:
            raise SetupError("no answer")
        return None if tokens is None else {"output_tokens": tokens}

    monkeypatch.setattr("harness.engines.session.hello", hello)
    monkeypatch.setattr(session, "_ASKED_AGAIN_S", 0)
    engine = EngineSession(load_backend("vllm"), "http://h:1", "")
    monkeypatch.setattr(engine, "counters", partial(counters, iter(counts)))
    engine.ask_if_hung("why", 9, threading.Event())
    return engine


@pytest.mark.parametrize("counts", [[10.0, 36.0, 80.0], [None, None, None]])
def test_an_engine_that_generates_or_has_no_counter_is_asked_until_its_queue_is_empty(monkeypatch, counts):
    """Requests whose clients left may be before ours: a search lost all further loads."""
    assert asked_if_hung(monkeypatch, counts, answers_at=2).exited() is None


def test_nothing_is_concluded_of_an_engine_once_the_run_is_stopped(monkeypatch):
    stopped = threading.Event()
    stopped.set()
    engine = EngineSession(load_backend("vllm"), "http://h:1", "")
    tokens = iter([{"output_tokens": 1.0}, {"output_tokens": 2.0}])
    monkeypatch.setattr(engine, "counters", partial(next, tokens))
    monkeypatch.setattr(engine, "_answers", lambda limit_s: False)
    engine.ask_if_hung("why", 9, stopped)
    assert engine.exited() is None


def test_an_engine_that_generates_on_while_it_answers_nobody_is_overloaded(monkeypatch):
    """As one that does not notice that clients leave."""
    overloaded = "why; it generated 26 tokens then, and answered no short request"
    for alive_s, counts, ended, sentence in (
        (-1, [10.0, 36.0], "was overloaded", overloaded),
        (60, [10.0, 10.0], "hung", "why"),
        (60, [10.0, 36.0, 36.0], "hung", "why"),
        (60, [10.0, None], "hung", "why"),
        (60, [10.0, SetupError], "hung", "why"),
        (60, [SetupError, 10.0], "hung", "why"),
        (-1, [None, None], "hung", "why"),
    ):
        monkeypatch.setattr(session, "_ALIVE_S", alive_s)
        engine = asked_if_hung(monkeypatch, counts)
        assert (engine.how_it_ended, engine.exited()) == (ended, sentence)
        assert ("notice that a client leaves" in engine.failure("x", "vllm").hint) == (ended != "hung")


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
