"""The prefix cache of a server that still counts its last request as running."""

from types import SimpleNamespace

import pytest

from harness.engines.speak import server
from harness.engines.speak.server import Server
from harness.spec.backend_refs import load_backend


@pytest.fixture
def asked(monkeypatch):
    """Statuses that /flush_cache answers with, in order; what is left of them was not asked for."""
    statuses = []

    def ask(_self, _method, _path, **_body):
        status = statuses.pop(0)
        return SimpleNamespace(ok=status == 200, status=status, said="Flush cache failed.")

    slept_s = []
    clock = SimpleNamespace(
        monotonic=lambda: sum(slept_s), sleep=slept_s.append
    )  # no machine is too slow for it
    monkeypatch.setattr(Server, "_ask", ask)
    monkeypatch.setattr(server, "time", clock)
    return statuses


def reset():
    return Server(load_backend("sglang"), "http://127.0.0.1:1", "model").reset_prefix_cache()


def test_a_reset_that_is_refused_while_a_request_runs_is_asked_for_again(asked):
    asked += [400, 400, 200]
    assert reset().done
    assert asked == []


def test_a_server_that_goes_on_refusing_is_reported(asked):
    asked += [400] * 1000
    assert not reset().done
    assert len(asked) < 999


def test_a_server_without_a_reset_is_asked_once(asked):
    asked += [404, 200]
    assert reset().how.endswith("answered 404: Flush cache failed.")
    assert asked == [200]


def test_a_reset_that_wants_a_model_gets_its_name(monkeypatch):
    sent = []

    def ask(_self, method, path, json=None):
        sent.append((method, path, json))
        return SimpleNamespace(ok=True, status=200)

    monkeypatch.setattr(Server, "_ask", ask)
    assert Server(load_backend("mlc-llm"), "http://127.0.0.1:1", "model").reset_prefix_cache().done
    assert sent == [("POST", "/debug/reset_engine", {"model": "model"})]
