"""Headers that the requests of an API carry, in the load and next to it."""

from contextlib import closing

import pytest

from harness.client.answer import Answer
from harness.client.client import Client
from harness.engines.speak.server import Server
from harness.host.access import Access
from harness.load.job import ClosedLoop, LoadJob
from harness.load.wire import render
from harness.spec.backend_refs import load_backend

CASES = [
    ("messages", {}, "2023-06-01"),
    ("messages", {"anthropic-version": "2030-01-01"}, "2030-01-01"),
    ("responses", {}, None),
]


@pytest.mark.parametrize(("api", "given", "version"), CASES)
def test_the_load_states_the_version_of_messages_unless_the_user_does(api, given, version):
    job = LoadJob("http://127.0.0.1:1/v1/messages", Access(given), [b"{}"], ClosedLoop(1), api=api)
    head, _ = render(job.url, job, job.bodies, range(1)).request(0)
    lines = [line for line in head.decode().split("\r\n") if line.startswith("anthropic-version")]
    assert lines == ([f"anthropic-version: {version}"] if version else [])


@pytest.mark.parametrize(("api", "given", "version"), CASES)
def test_so_does_a_request_outside_the_load(monkeypatch, api, given, version):
    """Else a server that requires it seems to have no such API."""
    seen = []

    def exchange(_client, request, _account, where):
        seen.append(request.headers)
        return Answer(where, 200, {}, b"{}", ())

    monkeypatch.setattr(Client, "_exchange", exchange)
    with closing(Server(load_backend("openai"), "http://127.0.0.1:1", "m", Access(given))) as server:
        server.refusal_of(api)
    (headers,) = seen
    assert headers.get_list("anthropic-version") == ([version] if version else [])
    assert headers.get_list("content-type") == ["application/json"]
