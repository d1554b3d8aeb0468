"""Which engine a running server is, told from recorded answers and from those of the scripted dialects."""

import json
from pathlib import Path

import pytest

from harness.client.answer import Answer
from harness.engines.speak.detect import best
from harness.host import paths
from harness.spec.backend_refs import load_backend
from tests.unit.mockserver.test_dialects import get, routes

CAPTURES = Path(__file__).resolve().parents[3] / "captures"
DEFINITIONS = [load_backend(name) for name in sorted(set(paths.definitions("backends")) - {"models"})]


def answer(body):
    return Answer("", 200, {}, body if isinstance(body, bytes) else json.dumps(body).encode(), ())


def recorded(engine, *left_out):
    """What the real server said, without the pages left out."""
    said = json.loads((CAPTURES / f"{engine}.json").read_text())["answers"]
    definition = load_backend(engine)
    pages = {definition.server.ready_path: answer(b""), "/v1/models": answer(said["models"].get("json"))}
    if definition.server.version:
        pages[definition.server.version.path] = answer(said["version"]["json"])
    if definition.metrics:
        text = "\n".join(f"{name} 1" for name in said["metrics"]["series"])
        pages[definition.metrics.path] = answer(text.encode())
    return {path: page for path, page in pages.items() if path not in left_out}.get


def scripted(dialect, *left_out):
    made, _engine = routes(dialect)

    def ask(path):
        if path in left_out:
            return None
        status, body = get(made, path.partition("?")[0])
        return answer(body) if status == 200 else None

    return ask


@pytest.mark.parametrize(
    ("engine", "left_out", "name"),
    [
        ("vllm", (), "vllm"),
        ("llamacpp", (), "llamacpp"),
        ("llamacpp", ("/metrics",), "llamacpp"),  # llama-server without --metrics
        ("transformers", (), None),  # declares no page but its health
        ("vllm", ("/metrics",), None),  # a /version alone is that of half a dozen engines
        ("vllm", ("/health",), None),
    ],
)
def test_real_servers(engine, left_out, name):
    found = best(recorded(engine, *left_out), DEFINITIONS)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    "dialect",
    ["vllm", "sglang", "tgi", "llamacpp", "ollama", "lmdeploy", "tensorrt-llm", "aphrodite", "koboldcpp"],
)
def test_scripted_dialects(dialect):
    found = best(scripted(dialect), DEFINITIONS)
    assert found is not None
    assert found.name == dialect


@pytest.mark.parametrize(
    ("dialect", "named", "name"),
    [
        ("vllm", "vllm-metal", "vllm-metal"),  # its pages are vLLM's, and it declares fewer of them
        ("sglang", "ktransformers", "ktransformers"),
        ("llamacpp", "llamafile", "llamafile"),
        ("vllm", "ktransformers", "vllm"),
        ("sglang", "vllm", "sglang"),
        ("aphrodite", "vllm", "aphrodite"),  # a fork whose series have another name
        ("vllm", "mistralrs-library", "vllm"),  # a /version alone
        ("vllm", "transformers", "vllm"),
    ],
)
def test_a_name_is_believed_where_the_answers_fit_it(dialect, named, name):
    assert best(scripted(dialect), DEFINITIONS, load_backend(named)).name == name


def test_a_fork_without_the_metrics_that_it_declares_has_the_pages_of_its_origin():
    ask = scripted("sglang", "/metrics")
    assert best(ask, DEFINITIONS).name == "sglang"
    assert best(ask, DEFINITIONS, load_backend("ktransformers")).name == "ktransformers"


def test_a_server_that_answers_every_path_alike_is_no_engine():
    assert best(lambda _path: answer(b"<html>hello</html>"), DEFINITIONS) is None
    assert best(lambda _path: answer({"version": "1.0"}), DEFINITIONS) is None
    assert best(lambda _path: None, DEFINITIONS) is None
