"""`bench URL` before anything is measured: addresses, models and keys, each mistake one error."""

import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from harness.cli.commands import url
from harness.cli.flags import options
from harness.cli.main import main
from harness.engines.speak import detect
from harness.engines.speak.detect import Recognised
from harness.errors import ExitCode, SpecError
from harness.probe import Look
from harness.run.setup.prepare import prepare
from harness.run.setup.sizing import fit
from harness.spec.reach import ReachFlags
from harness.spec.server_urls import server_url


class Handler(BaseHTTPRequestHandler):
    """Lists models to who has the key, and answers no chat."""

    models = ("one",)  # None: it lists none at all
    key = ""
    broken = 0  # status of every list of models
    embeds = False  # and nothing else
    paths = ()  # that are answered too

    def log_message(self, *_words):
        pass

    def do_GET(self):
        if self.broken:
            self._say(
                self.broken, {"error": {"message": "Loading model"}}, location="http://elsewhere/v1/models"
            )
        elif self.key and self.headers.get("authorization") != f"Bearer {self.key}":
            self._say(401, {"error": "no"})
        elif self.path == "/v1/models" and self.models is not None:
            self._say(200, {"object": "list", "data": [{"id": name} for name in self.models]})
        else:
            self._say(200 if self.path in self.paths else 404, {})

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if not self.embeds:
            self._say(503, {"error": {"message": f"busy, {self.key}"}})
        elif self.path == "/v1/embeddings":
            self._say(200, {"object": "list", "data": [{"index": 0, "embedding": [0.6, 0.8]}]})
        else:
            self._say(404, {})

    def _say(self, status, document, **headers):
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def server(**of_handler):
    made = ThreadingHTTPServer(("127.0.0.1", 0), type("Made", (Handler,), of_handler))
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{made.server_port}"
    finally:
        made.shutdown()
        made.server_close()


@pytest.fixture
def called(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_API_KEY", raising=False)

    def call(*words):
        code = main(list(words))
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("error:") == 1
        assert "hint: " in said.err
        return code, said.err[said.err.index("error:") :]

    return call


def test_several_models_are_named_and_one_must_be_chosen(called):
    with server(models=("a/b", "c")) as address:
        code, error = called(address)
        assert code == ExitCode.USAGE
        assert "a/b, c" in error
        assert "--model-name a/b" in error


def test_no_model(called):
    with server(models=()) as address:
        code, error = called(f"{address}/v1/")
    assert code == ExitCode.SETUP
    assert f"{address}/v1/models: lists no model" in error


def test_a_server_without_a_list_of_models_is_measured_by_the_name_that_is_given(called):
    with server(models=None) as address:
        code, error = called(address)
        assert code == ExitCode.SETUP
        assert "404" in error
        assert "--model-name" in error
        code, error = called(address, "--model-name", "m")  # then no chat is answered
        assert code == ExitCode.SETUP
        assert "503" in error


def test_a_server_without_chat_is_measured_in_the_api_that_it_has(called):
    with server(embeds=True) as address:
        code, error = called(address)
    assert code == ExitCode.SETUP
    assert "a chat request got 404" in error
    assert "hint: it answers embeddings: bench run --api embeddings measures that\n" in error


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (503, "hint: it may be too busy, or still load its model: look into its log, and try again\n"),
        (308, "hint: use the address that it redirects to, up to /v1\n"),
        (
            429,
            "hint: a load needs more than its rate limit allows: raise it, or measure the engine behind it\n",
        ),
        (400, "hint: is an OpenAI-compatible server running there?"),
    ],
)
def test_a_list_of_models_that_is_not_there_yet_or_is_elsewhere_has_a_hint_of_its_own(called, status, hint):
    with server(broken=status) as address:
        code, error = called(address)
    assert code == ExitCode.SETUP
    assert hint in error


@pytest.mark.parametrize("path", ["/v1/v1", "/v2", "/api/openai"])
def test_a_path_with_nothing_behind_it_has_the_address_that_answers_as_its_hint(called, path):
    with server() as address:
        code, error = called(address + path)
    assert code == ExitCode.SETUP
    assert f"hint: a server answers at {address}\n" in error


def test_a_key_is_asked_for_taken_from_the_environment_and_never_shown(called, monkeypatch):
    with server(key="sekrit-123") as address:
        code, error = called(address)
        assert code == ExitCode.SETUP
        assert "401" in error
        assert "--api-key-env" in error
        monkeypatch.setenv("MY_KEY", "sekrit-123")
        code, error = called(
            address, "--api-key-env", "MY_KEY"
        )  # the model is found; then no chat is answered
        assert code == ExitCode.SETUP
        assert "503" in error
        assert "busy" in error
        assert "sekrit" not in error


def test_a_value_behind_a_name_is_for_that_server_alone(called, monkeypatch):
    monkeypatch.setenv("KEY_OLD", "sekrit-1")
    monkeypatch.setenv("KEY_NEW", "sekrit-2")
    with server(key="sekrit-1") as old, server(key="sekrit-2", models=("a", "b")) as new:
        named = (f"old={old}", f"new={new}", "--model-name", "new=b")
        _, error = called(*named, "--api-key-env", "old=KEY_OLD")
        assert f"{new}/v1/models: the server refuses with 401" in error
        assert old not in error
        _, error = called(*named, "--api-key-env", "old=KEY_OLD,new=KEY_NEW")
    assert "503" in error  # both models are known; then no chat is answered
    assert "sekrit" not in error


def test_the_name_of_another_engine_is_refused_before_any_first_look(called, monkeypatch):
    """A look at the first server would be in vain, and is answered with 503 here."""
    monkeypatch.setattr(
        detect, "recognise", lambda url, access, named: Recognised("sglang", ("/server_info",))
    )
    with server() as url, server() as other:
        code, error = called(f"new={url}", f"vllm={other}")
    assert code == ExitCode.USAGE
    assert error == (
        f"error: vllm=: is the name of another engine: {other} answers as SGLang\n"
        "hint: give the server another name, or none\n"
    )


@pytest.mark.parametrize("name", ["openai", "ray-vllm", "llm-d", "hosted"])
def test_the_name_of_a_front_or_of_any_server_is_taken_whatever_engine_answers(called, monkeypatch, name):
    """A front passes on what the engines behind it answer."""
    monkeypatch.setattr(detect, "best", lambda *_words: Recognised("sglang", ("/server_info",)))
    with server() as url:
        _, error = called(f"{name}={url}")
    assert "a chat request got 503" in error  # the first look


def test_a_server_whose_answers_fit_no_engine_is_the_one_that_it_is_named(called):
    """A gateway hides what an engine is known by. As in `bench run`, it needs what that engine has."""
    with server(paths=("/health",)) as url:
        _, error = called(f"vllm={url}")
        assert "a chat request got 503" in error  # the first look
    with server() as url:
        _, error = called(f"vllm={url}", "--metrics-url", "http://127.0.0.1:9")
        assert "a chat request got 503" in error
        code, error = called(f"vllm={url}")
    assert code == ExitCode.SETUP
    hint = "openai=URL takes any server; behind a gateway name the engine's own address too: --metrics-url"
    assert error == f"error: {url}/health: no such path on this server\nhint: is this vLLM? {hint}\n"


def test_an_engine_behind_a_gateway_is_known_by_its_own_address(capsys, called, monkeypatch):
    """Or refused before the first look at any server, where that address too answers as no engine."""
    monkeypatch.setattr(detect, "best", lambda ask, *_rest: VLLM if ask("/metrics") else None)
    monkeypatch.setenv("BENCH_API_KEY", "sekrit-123")
    with server() as gate, server(paths=("/metrics",), key="sekrit-123") as engine, server() as other:
        assert main([f"a={gate}", f"b={other}", "--metrics-url", f"a={engine}/metrics"]) == ExitCode.SETUP
        error = capsys.readouterr().err
        assert f"a, {gate}: vLLM (recognised by /metrics of {engine}), model one" in error
        assert "a chat request got 503" in error  # the first look
        code, error = called(f"a={gate}", f"b={other}", "--metrics-url", f"b={gate}/metrics")
    assert code == ExitCode.USAGE
    assert "backend 'b' declares no metrics to look for" in error
    assert "no engine was recognised: `bench run --backends NAME=vllm=URL` says which it is" in error


def test_a_port_where_nothing_listens(called):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, error = called(address)
        _, named = called(address, "--model-name", "m")
    assert code == ExitCode.SETUP
    assert "refused" in error
    assert "some refuse connections until their model is loaded\n" in error
    assert "refused" in named
    assert "--model-name" not in named  # it is given already


def test_two_ports_where_nothing_listens_are_one_error(called):
    with socket.socket() as first, socket.socket() as second:
        for taken in (first, second):
            taken.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{taken.getsockname()[1]}" for taken in (first, second)]
        code, error = called(*addresses)
    assert code == ExitCode.SETUP
    assert all(f"  http://{address}: no answer" in error for address in addresses)
    assert error.count("is an OpenAI-compatible server running there?") == 1


def test_the_second_server_is_asked_before_the_first_look(called):
    with server() as url, server(models=()) as other:
        _, error = called(url, other)
    assert f"{other}/v1/models: lists no model" in error


def test_two_models_behind_one_address_are_two_servers(called):
    """A gateway has many. Two names of a model would be refused before anything is asked."""
    with server(models=("one", "two")) as url:
        code, error = called(f"a={url}", f"b={url}", "--model-name", "a=one,b=two")
    assert code == ExitCode.SETUP
    assert error.startswith(f"error: {url}/v1/chat/completions: a chat request got 503")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["http://h:99999"], "not a URL"),
        (["http://[::1"], "not a URL"),
        (["http://a b:80"], "not a URL"),
        (["ftp://h"], "http://"),
        (["http://someone:secret@h"], "password"),
        (["http://h:1", "h:1/v1"], "http://h:1: is given twice"),
        (["localhost:1", "127.0.0.1:1"], "http://localhost:1: is given twice"),
        (["localhost:1+h:2", "h:2+127.0.0.1:1"], "http://localhost:1+http://h:2: is given twice"),
        (["old=http://h:1", "new=h:1"], "bench run --aa compares a server with itself"),
        (["old=http://h:1", "new=h:1"], "bench old=URL new=URL --model-name old=MODEL,new=MODEL"),
        (["http://h:1", "h:1"], "bench a=URL b=URL --model-name a=MODEL,b=MODEL"),
        (["h:1", "h:2", "h:3"], "3 URLs"),
        (["--minutes", "5", "old=http://h:1", "old=h:2"], "old=: is given twice"),
        (["old=http://h:1", "new=ftp://h"], "http://"),
        (["h:1", "h:2", "--metrics-url", "http://m:1"], "two servers: whose metrics are these?"),
        (["h:1", "h:2", "--metrics-url", "prefill@http://m:1"], "two servers: whose metrics are these?"),
        (["-v", "old=http://h:99999"], "not a URL"),
        (["--minutes", "0", "h:1"], "--minutes: must be above 0, not 0"),
        (["--minutes", "inf", "h:1"], "--minutes: must be a finite number above 0, not inf"),
        (["rnu", "--backends", "vllm=http://h:1"], "did you mean 'run'?"),
        (["run", "--backends", "vllm", "--conccurency", "4"], "did you mean '--concurrency'?"),
        (["truth", "--portt=4"], "unknown option '--portt'"),
        (["list", "backends", "surplus"], "unexpected argument 'surplus'"),
    ],
)
def test_addresses_and_flags_that_cannot_be(capsys, words, says):
    assert main(words) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert says in error
    assert "secret" not in error


VLLM = Recognised("vllm", ("/metrics",))
SEEN = Look(ttft_s=0.2, tpot_s=0.02, slowdown=1.5)
ASKED = url.Options(
    urls=(),
    minutes=2.0,
    reach=ReachFlags(),
    metrics_urls=(),
    out=options.RESULTS,
    json=True,
    no_report=True,
    verbose=True,
    metrics_port=("127.0.0.1", 9),
)


@pytest.mark.parametrize(("alias", "labels"), [("", ("vllm_h_1", "vllm_h_2")), ("new", ("vllm", "new"))])
def test_two_servers_are_measured_alternately_at_equal_loads(alias, labels):
    asked = replace(ASKED, urls=("http://h:1", "http://h:2"))
    given = [url.Given("http://h:1"), url.Given("http://h:2", alias)]
    backends = url.backends_of(given, ["vllm", "vllm"], asked)
    loads = fit([SEEN, SEEN], 120)
    parsed = url.parsed(url.words_of(backends, loads, asked), ("bench",))
    prepared = prepare(parsed.run)
    assert prepared.labels == labels
    assert {backend.launch.mode for backend in prepared.backends} == {"attach"}
    order = [block.backend for block in prepared.plan]
    assert (order[:4], len(order)) == ([0, 1, 1, 0], 6)
    assert [cell.load.value for cell in prepared.plan[0].cells] == list(loads.concurrency)
    assert prepared.options.agreement is False
    assert prepared.scenario.request.timeout_s == 60
    assert (parsed.json, parsed.no_report, parsed.metrics_port) == (True, True, ("127.0.0.1", 9))


@pytest.mark.parametrize(
    ("alias", "backend", "metrics", "says"),
    [
        ("new", "vllm", "new=http://m:8000", None),
        ("", "vllm", "prefill@http://m:8000", "no engine has the role 'decode'"),
        ("", "vllm", "http://me:secret@m:8000", "the URL holds a user name or password"),
        ("", "vllm", "http://m:8000?key=secret", "without '?' or '#'"),
        ("", "openai", "http://m:8000", "`bench run --backends NAME=vllm=URL` says which"),
    ],
)
def test_the_engines_own_address_is_passed_on_and_no_secret_of_a_wrong_one_shown(
    alias, backend, metrics, says
):
    asked = replace(ASKED, metrics_urls=(metrics,))
    servers = [url.Given("http://h:1", alias)]
    if says is None:
        words = url.words_of(url.backends_of(servers, [backend], asked), fit([SEEN], 120), asked)
        assert url.parsed(words, ("bench",)).run.metrics_urls == (metrics,)
        return
    with pytest.raises(SpecError) as raised:
        url.backends_of(servers, [backend], asked)
    assert says in f"{raised.value} {raised.value.hint}"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_what_follows_the_address_is_taken_off(end):
    assert server_url(f"http://h:1/prefix{end}", "URL") == "http://h:1/prefix"


def test_chat_completions_without_v1_is_not_asked_below_v1():
    with pytest.raises(SpecError, match="has no /v1 before /chat/completions") as raised:
        server_url("http://h:1/prefix/chat/completions", "URL")
    assert "dialect.chat_path" in raised.value.hint


def test_replicas_are_one_server_of_the_comparison():
    assert url._given(["a:1+http://b:2/v1", "old=c:3"]) == [
        url.Given("http://a:1+http://b:2"),
        url.Given("http://c:3", "old"),
    ]
    with pytest.raises(SpecError, match="missing before or after"):
        url._given(["a:1++b:2"])


def test_what_a_silent_server_has_is_not_known_and_costs_the_time_of_one_answer(monkeypatch):
    """As one that hangs after its first answers: each API would take a time limit of its own."""

    def refusal_of(name, timeout_s):
        asked.append((name, timeout_s))
        if name != "completions":
            now[0] += timeout_s
        return "" if name == "completions" else "no answer"

    asked, now = [], [100.0]
    monkeypatch.setattr(url.time, "monotonic", lambda: now[0])
    found = url._apis(SimpleNamespace(refusal_of=refusal_of), 105.0)
    late = "responses, messages, embeddings, rerank, transcriptions"
    assert found == f"APIs: chat, completions; no answer in time from {late}; measured here: chat"
    assert asked == [("completions", 5.0), ("responses", 5.0)]
