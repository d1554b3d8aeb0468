"""The scripted server over real sockets. Times are compared with each other, never with a tolerance."""

import json
import resource
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPSConnection, IncompleteRead
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.errors import SetupError
from harness.mockserver import MockServer, running
from harness.mockserver.images import as_text
from harness.mockserver.script import first_word, text
from tests.factories.sockets import PEM
from tests.waiting import alive, until

FAST = {"ttft_ms": 2, "gap_ms": 1, "tokens": 4}
CHAT = "/v1/chat/completions"
MS = 1_000_000
PROMPT = "hello"


@contextmanager
def connected(server: MockServer) -> Iterator[HTTPConnection]:
    address = urlsplit(server.url)
    assert address.hostname
    connection = HTTPConnection(address.hostname, address.port, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


def body_of(prompt: str = PROMPT, **fields: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": prompt}], "stream": True} | fields).encode()


def call(
    server: MockServer, method: str, path: str, body: bytes | None = None, headers: Any = None
) -> tuple[int, dict[str, str], bytes]:
    with connected(server) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def chat(server: MockServer, **fields: Any) -> tuple[int, dict[str, str], bytes]:
    return call(server, "POST", CHAT, body_of(**fields))


def answer_of(tokens: int, prompt: str = PROMPT) -> str:
    return text("ascii", first_word(prompt), first_word(prompt) + tokens)


def said(stream: bytes) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


def settled(server: MockServer, **expected: int) -> dict[str, Any]:
    """The truth once its statistics count so many: the server may see an end a moment after its client."""
    deadline = time.monotonic() + 10
    while True:
        truth = server.truth()
        counts = {name: truth["statistics"][name] for name in expected}
        if counts == expected:
            return truth
        assert time.monotonic() < deadline, counts
        time.sleep(0.01)


def test_a_stream_and_what_the_ledger_says_of_it() -> None:
    with running(ttft_ms=20, gap_ms=5, role="none") as server, connected(server) as connection:
        before_ns = time.monotonic_ns()
        connection.request("POST", CHAT, body_of(max_tokens=6))
        sent_ns = time.monotonic_ns()
        response = connection.getresponse()
        arrivals_ns, lines = [], []
        while line := response.readline():
            if line.startswith(b"data: {"):
                arrivals_ns.append(time.monotonic_ns())
                lines.append(line)
        (record,) = settled(server, complete=1)["records"]
    assert said(b"".join(lines)) == answer_of(6)
    assert before_ns <= record["received_ns"] <= record["read_ns"]
    assert record["admitted_ns"] == record["received_ns"]
    assert record["due_ns"] == [record["received_ns"] + (20 + 5 * index) * MS for index in range(6)]
    for due_ns, write_ns, arrival_ns in zip(record["due_ns"], record["write_ns"], arrivals_ns, strict=False):
        assert due_ns <= write_ns <= arrival_ns
    assert arrivals_ns[0] > sent_ns
    assert record["tokens"] == record["planned_tokens"] == 6


def test_an_answer_to_head_has_no_body_that_the_next_answer_would_begin_with() -> None:
    with running(**FAST) as server, connected(server) as connection:
        connection.connect()
        connection.sock.sendall(
            f"HEAD {CHAT} HTTP/1.1\r\n\r\nGET {CHAT} HTTP/1.1\r\nconnection: close\r\n\r\n".encode()
        )
        heads = connection.sock.makefile("rb").read().split(b"HTTP/1.1 404 Not Found\r\n")
    assert [head.count(b"no route") for head in heads] == [0, 0, 1]


def test_the_last_requests_are_kept_also_across_a_reset() -> None:
    with running(ttft_ms=1, gap_ms=0, keep_requests=2) as server:
        for _ in range(2):
            for _ in range(3):
                chat(server, max_tokens=1)
            truth = settled(server, requests=2, dropped=1, complete=2)
            assert [record["number"] for record in truth["records"]] == [1, 2]
            call(server, "POST", "/truth/reset")


def test_whole_answers_and_completions() -> None:
    with running(**FAST) as server:
        status, headers, body = chat(server, stream=False, max_tokens=3)
        assert (status, headers["x-bench-simulated"]) == (200, "1")
        assert json.loads(body)["choices"][0]["message"]["content"] == answer_of(3)
        prompt = json.dumps({"prompt": [1, 2, 3]}).encode()
        _, _, body = call(server, "POST", "/v1/completions", prompt)
        answer = json.loads(body)
        assert answer["choices"][0]["text"] == answer_of(4, "[1, 2, 3]")
        assert answer["usage"]["prompt_tokens"] == 3
        status, _, body = call(server, "POST", "/v1/completions", b"{")
        assert (status, "not JSON" in json.loads(body)["error"]["message"]) == (400, True)
        truth = settled(server, complete=2, refused=1)
    assert [len(record["write_ns"]) for record in truth["records"]] == [1, 1, 0]


def test_the_other_routes() -> None:
    with running(**FAST, model_name="m") as server:
        assert call(server, "GET", "/health")[0] == 200
        assert json.loads(call(server, "GET", "/v1/models")[2])["data"][0]["id"] == "m"
        assert json.loads(call(server, "GET", "/version")[2])["version"].endswith("+simulated")
        assert json.loads(call(server, "POST", "/tokenize", b'{"prompt": "abcdef"}')[2])["count"] == 2
        several = json.loads(call(server, "POST", "/tokenize", b'{"prompt": ["abcdef", ""]}')[2])
        assert (several["count"], [len(ids) for ids in several["tokens"]]) == ([2, 0], [2, 0])
        assert call(server, "POST", "/tokenize", b'{"prompt": ["abcdef", 1]}')[0] == 400
        assert call(server, "POST", "/tokenize", b"{}")[0] == 400
        chat(server)
        settled(server, complete=1)
        assert (
            'vllm:generation_tokens_total{model_name="m",engine="0"} 4\n'
            in call(server, "GET", "/metrics")[2].decode()
        )
        for method, path in (("GET", "/nowhere"), ("GET", CHAT), ("POST", "/health")):
            status, headers, _ = call(server, method, path)
            assert (status, headers["x-bench-simulated"]) == (404, "1")
        assert json.loads(call(server, "GET", "/truth/statistics")[2])["complete"] == 1
        server.reset()
        assert server.truth()["records"] == []


def test_one_connection_serves_many_requests_also_pipelined() -> None:
    request = b"POST %b HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b"
    body = body_of(stream=False, max_tokens=2)
    with running(**FAST) as server, socket.create_connection(urlsplit(server.url).netloc.split(":")) as sock:
        sock.settimeout(10)
        sock.sendall(
            request % (CHAT.encode(), len(body), body) * 20
            + b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n"
        )
        answers = b"".join(iter(lambda: sock.recv(65536), b""))
        settled(server, complete=20)
    assert answers.count(b"HTTP/1.1 200 OK") == 21
    assert answers.count(b'"finish_reason":"length"') == 20


def test_times_and_faults_repeat_with_the_seed_after_a_reset() -> None:
    def plans(server: MockServer) -> list[tuple[list[int], str]]:
        for index in range(8):
            chat(server, prompt=f"request {index % 4}")
        records = settled(server, complete=8)["records"]
        return [[at - record["received_ns"] for at in record["due_ns"]] for record in records]

    options = {"ttft_ms": "uniform:0:3", "gap_ms": "exponential:1", "tokens": 3}
    with running(**options, seed=7) as server:
        first = plans(server)
        server.reset()
        assert plans(server) == first
        assert len({tuple(plan) for plan in first}) == 8
    with running(**options, seed=8) as server:
        assert plans(server) != first


def test_cached_prompts_start_sooner_until_the_cache_is_reset() -> None:
    prompt = "x" * 640  # 160 tokens and the template
    usage = {"stream_options": {"include_usage": True}}
    with running(**FAST, prefill_us_per_token=100) as server:
        for _ in range(2):
            _, _, stream = chat(server, prompt=prompt, **usage)
        assert b'"cached_tokens":160' in stream
        assert json.loads(call(server, "POST", "/reset_prefix_cache")[2]) == {"success": True}
        chat(server, prompt=prompt)
        cold, warm, reset = settled(server, complete=3)["records"]
    assert [cold["cached_tokens"], warm["cached_tokens"], reset["cached_tokens"]] == [0, 160, 0]
    ttft_ns = [record["due_ns"][0] - record["received_ns"] for record in (cold, warm, reset)]
    assert ttft_ns[0] == ttft_ns[2] == ttft_ns[1] + 160 * 100_000


def test_beyond_max_running_requests_wait_in_order() -> None:
    with running(ttft_ms=5, gap_ms=1, tokens=3, max_running=1) as server:
        connections = []
        with connected(server) as one, connected(server) as two, connected(server) as three:
            connections = [one, two, three]
            for connection in connections:
                connection.request("POST", CHAT, body_of())
            for connection in connections:
                assert said(connection.getresponse().read()) == answer_of(3)
        records = settled(server, complete=3)["records"]
    for earlier, later in pairwise(records):
        assert later["admitted_ns"] >= earlier["write_ns"][-1]
        assert later["due_ns"][0] == later["admitted_ns"] + 5 * MS


def test_a_client_that_leaves_frees_its_slot() -> None:
    with running(ttft_ms=0, gap_ms=1000, max_running=1) as server:
        with connected(server) as connection:
            connection.request("POST", CHAT, body_of())
            connection.getresponse().readline()
            assert json.loads(call(server, "POST", "/reset_prefix_cache")[2]) == {"success": False}
            with connected(server) as waiting:
                waiting.request("POST", CHAT, body_of())
                settled(server, open=2)
            settled(server, open=1, aborted=1)
        truth = settled(server, aborted=2)
        assert chat(server, max_tokens=1)[0] == 200
    assert [record["admitted_ns"] == 0 for record in truth["records"]] == [False, True]


def test_a_client_that_does_not_read_blocks_only_its_own_stream() -> None:
    with running(ttft_ms=0, gap_ms=0) as server, connected(server) as lazy:
        lazy.connect()
        lazy.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # so that fewer tokens fill it
        lazy.request("POST", CHAT, body_of(max_tokens=30_000))
        assert said(chat(server, max_tokens=5)[2]) == answer_of(5)
        settled(server, complete=1, open=1, blocked_writes=1)
        assert said(lazy.getresponse().read()) == answer_of(30_000)
        settled(server, complete=2)


@pytest.mark.parametrize("stream", [True, False])
def test_a_reset_in_mid_answer(stream: bool) -> None:
    with running(**FAST, fault="reset:at=1:after=2") as server:
        chat(server)
        with pytest.raises(ConnectionResetError):
            chat(server, stream=stream)
        assert chat(server)[0] == 200
        records = settled(server, complete=2, faulted=1)["records"]
    assert [record["fault"] for record in records] == [None, "reset", None]
    assert records[1]["tokens"] == (2 if stream else 0)


def test_a_truncated_answer() -> None:
    with running(**FAST, fault="truncation:after=2") as server:
        with pytest.raises(IncompleteRead) as cut:
            chat(server)
        assert said(cut.value.partial).startswith(answer_of(2))
        settled(server, faulted=1)


def test_malformed_answers() -> None:
    with running(**FAST, fault=["malformed:at=0:after=1", "bad-chunk:at=1:after=1"]) as server:
        with pytest.raises(json.JSONDecodeError):
            said(chat(server)[2])
        with pytest.raises(IncompleteRead):
            chat(server)
        settled(server, faulted=2)


def test_an_error_event_ends_the_stream() -> None:
    with running(**FAST, fault="error-event:after=1") as server:
        status, _, stream = chat(server)
        assert status == 200
        *_, last, done = stream.decode().strip().split("\n\n")
        assert json.loads(last.removeprefix("data: "))["error"]["code"] == 500
        assert done == "data: [DONE]"
        assert settled(server, faulted=1)["records"][0]["tokens"] == 1


def test_stalls() -> None:
    with running(**FAST, fault=["stall:at=0:after=2:for=0.05", "stall:at=1:after=2"]) as server:
        assert said(chat(server)[2]) == answer_of(4)
        due_ns = settled(server, complete=1)["records"][0]["due_ns"]
        assert [later - earlier for earlier, later in pairwise(due_ns)] == [MS, 51 * MS, MS]
        with connected(server) as connection:
            connection.request("POST", CHAT, body_of())
            connection.getresponse()
            stalled = settled(server, faulted=1)["records"][1]
            assert (stalled["tokens"], stalled["ended_ns"]) == (2, 0)


def test_slow_headers() -> None:
    with running(**FAST, fault="slow-headers:for=0.05") as server:
        begin_ns = time.monotonic_ns()
        with connected(server) as connection:
            connection.request("POST", CHAT, body_of())
            response = connection.getresponse()
            assert time.monotonic_ns() - begin_ns >= 50 * MS
            assert said(response.read()) == answer_of(4)


def test_answers_differ_where_any_part_of_the_prompts_does() -> None:
    chats = [
        ({"role": "system", "content": system}, {"role": "user", "content": [{"type": "text", "text": text}]})
        for system, text in (("Be brief.", "1?"), ("Be kind.", "1?"), ("Be brief.", "2?"))
    ]
    with running(**FAST) as server:
        texts = [said(call(server, "POST", CHAT, body_of(messages=chat))[2]) for chat in (*chats, chats[0])]
        prompts = [[1, 2, 3], [4, 2, 3]]
        bodies = [
            call(server, "POST", "/v1/completions", json.dumps({"prompt": prompt}).encode())[2]
            for prompt in prompts
        ]
    assert len(set(texts)) == 3
    assert texts[3] == texts[0]
    assert len({json.loads(body)["choices"][0]["text"] for body in bodies}) == 2


def test_refusals() -> None:
    faults = ["429:at=0:for=3", "503:at=1", "html-500:at=2", "401:at=3"]
    with running(**FAST, fault=faults) as server:
        answers = [chat(server) for _ in range(5)]
        truth = settled(server, refused=4, complete=1)
    assert [status for status, _, _ in answers] == [429, 503, 500, 401, 200]
    assert [headers.get("retry-after") for _, headers, _ in answers[:3]] == ["3", "1", None]
    assert answers[2][1]["content-type"] == "text/html"
    assert [record["status"] for record in truth["records"]] == [429, 503, 500, 401, 200]


def test_wrong_usage() -> None:
    with running(**FAST, fault="wrong-usage") as server:
        answer = json.loads(chat(server, stream=False)[2])
        assert answer["usage"]["completion_tokens"] == 9
        assert settled(server, complete=1)["records"][0]["tokens"] == 4


def test_the_server_dies() -> None:
    with running(**FAST, fault="die:at=1:after=1") as server:
        chat(server)
        with pytest.raises((IncompleteRead, ConnectionResetError)):
            chat(server)
        assert server.wait(10) == 1


def test_loading() -> None:
    with running(**FAST, fault="loading:for=0.5") as server:
        status, _, body = call(server, "GET", "/health")
        assert (status, json.loads(body)["error"]["message"]) == (503, "Loading model")
        assert chat(server)[0] == 503
        assert server.truth()["records"] == []
        while call(server, "GET", "/health")[0] == 503:
            time.sleep(0.05)
        assert chat(server)[0] == 200


def test_connections_are_refused_until_the_engine_is_up() -> None:
    with running(**FAST, fault="refused:for=0.5") as server:
        with pytest.raises(ConnectionRefusedError):
            call(server, "GET", "/health")
        deadline = time.monotonic() + 10
        while True:
            try:
                assert chat(server)[0] == 200
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_a_key_guards_v1_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_TRUTH_API_KEY", "secret")
    with running(**FAST) as server:
        assert chat(server)[0] == 401
        assert call(server, "GET", "/v1/models", headers={"Authorization": "Bearer wrong"})[0] == 401
        assert call(server, "POST", CHAT, body_of(), {"Authorization": "Bearer secret"})[0] == 200
        assert call(server, "GET", "/health")[0] == 200
        assert server.truth()["statistics"]["complete"] == 1


def test_what_is_not_http_is_answered_with_400_and_closed() -> None:
    with running(**FAST) as server, socket.create_connection(urlsplit(server.url).netloc.split(":")) as sock:
        sock.settimeout(10)
        sock.sendall(b"hello\r\n\r\n")
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert call(server, "GET", "/health")[0] == 200


def test_more_clients_than_the_soft_limit_of_descriptors_are_served() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    low = highest + 32  # room for what this process opens for its child
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))  # the child inherits it
    try:
        with running(**FAST) as server, ExitStack() as clients:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            connections = [clients.enter_context(connected(server)) for _ in range(low + 32)]
            for connection in connections:
                connection.request("POST", CHAT, body_of())
            answers = [said(connection.getresponse().read()) for connection in connections]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert answers == [answer_of(4)] * (low + 32)


def test_no_proxy_stands_between_this_machine_and_its_own_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(**FAST) as server:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        image = {"type": "image_url", "image_url": {"url": f"{server.url}/health"}}
        _, sums = as_text([{"role": "user", "content": [image]}], 8)
        assert len(sums) == 1
        assert server.truth()["records"] == []


def test_a_client_that_resets_does_not_disturb_the_others() -> None:
    with running(ttft_ms=5, gap_ms=1, tokens=50) as server, connected(server) as connection:
        connection.request("POST", CHAT, body_of())
        with connected(server) as rude:
            rude.request("POST", CHAT, body_of())
            rude.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert said(connection.getresponse().read()) == answer_of(50)
        settled(server, complete=1, aborted=1)


def test_the_server_ends_with_the_process_that_started_it() -> None:
    script = (
        "from harness.mockserver import running; import os\n"
        "with running() as server: print(server.pid, flush=True); os._exit(0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    until(lambda: not alive(int(result.stdout)), "the server is gone", seconds=10)


def test_stopped_whatever_happens_and_only_once() -> None:
    pids = []

    def fail() -> None:
        with running(**FAST) as server:
            pids.append(server.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not alive(pids[0])
    with running(**FAST) as server:
        assert [server.stop(), server.stop()] == [0, 0]


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(SetupError, match="'explode' is not a fault"), running(fault="explode"):
        pass
    with running(**FAST) as server:
        port = urlsplit(server.url).port
        with pytest.raises(SetupError, match="Address already in use"), running(port=port):
            pass


def test_the_same_answers_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(PEM))  # for the look at the ledger too
    with running(**FAST, tls_pem=PEM) as server:
        address = urlsplit(server.url)
        assert address.scheme == "https"
        connection = HTTPSConnection(address.netloc, context=ssl.create_default_context(), timeout=10)
        for _ in range(2):
            connection.request("POST", CHAT, body_of())
            assert said(connection.getresponse().read()) == answer_of(4)
        connection.close()
        assert settled(server, complete=2)["statistics"]["tokens"] == 8


def test_a_file_without_a_key_is_refused() -> None:
    with pytest.raises(SetupError, match="no certificate and key"), running(**FAST, tls_pem=__file__):
        pass
