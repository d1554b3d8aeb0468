"""bench's shim before a library: its HTTP, and what it costs."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from harness.engines.check import shim_cost
from harness.engines.start.ports import free_port


@pytest.fixture(scope="module")
def url():
    """The shim before the scripted library, a token each millisecond."""
    port = free_port("127.0.0.1")
    words = ("scripted", "--port", str(port), "--max-model-len", "64")
    command = [sys.executable, str(shim_cost.SERVER), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("bench's shim serves scripted")
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(5) == 0


def post(url, path="/v1/chat/completions", **body):
    body = {"messages": [{"role": "user", "content": "four"}]} | body
    request = urllib.request.Request(url + path, json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def events(text):
    *documents, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in documents]


def test_a_stream_has_a_token_an_event_a_reason_and_the_usage_that_was_asked_for(url):
    status, text = post(url, stream=True, max_tokens=3, stream_options={"include_usage": True})
    *words, finish, usage = events(text)
    assert status == 200
    assert [one["choices"][0]["delta"]["content"] for one in words] == [" t0", " t1", " t2"]
    assert words[0]["choices"][0]["delta"]["role"] == "assistant"
    assert finish["choices"][0]["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}
    assert "usage" not in events(post(url, stream=True, max_tokens=1)[1])[-1]


def test_a_whole_answer_says_the_same(url):
    found = json.loads(post(url, max_tokens=2)[1])
    assert found["choices"][0]["message"]["content"] == " t0 t1"
    assert found["usage"]["completion_tokens"] == 2


def test_an_answer_without_a_limit_ends_with_the_context(url):
    assert json.loads(post(url)[1])["usage"]["total_tokens"] == 64


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": [{"role": "user", "content": "x" * 64}]}, "64 tokens of prompt"),
        ({"response_format": {"type": "json_object"}}, "not passed on"),
        ({"max_tokens": "many"}, "max_tokens must be a number"),
        ({"messages": "hello"}, "a list of objects"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(url, body, said):
    status, text = post(url, **body)
    assert status == 400
    assert said in text


def test_it_counts_tokens_and_tells_its_version(url):
    assert json.loads(post(url, "/tokenize", content="abc")[1])["tokens"] == [97, 98, 99]
    with urllib.request.urlopen(f"{url}/version", timeout=5) as answer:
        assert json.load(answer)["version"] == "scripted"


def test_a_client_that_leaves_does_not_stop_the_others(url):
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps({"messages": [], "stream": True, "max_tokens": 40}).encode()
    )
    urllib.request.urlopen(request, timeout=5).close()
    assert post(url, max_tokens=1)[0] == 200


@pytest.mark.long
@pytest.mark.time
def test_what_it_adds_is_seen_against_the_scripted_server():
    began = time.monotonic()
    added = shim_cost.shim_us_per_token()
    assert -50 < added < 2000, "a token is written in microseconds; a busy machine makes it more"
    assert shim_cost.shim_us_per_token() == added, "measured once"
    assert time.monotonic() - began < 15
