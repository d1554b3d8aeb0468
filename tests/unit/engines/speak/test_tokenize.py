"""Tokens of texts, counted by a server that takes one text at a time, or many."""

import json as jsons
from dataclasses import replace
from threading import Barrier, get_ident
from types import SimpleNamespace

import pytest

from harness.client.answer import Answer
from harness.engines.speak import server
from harness.engines.speak.server import Server
from harness.errors import SetupError
from harness.spec.backend_refs import load_backend

TEXTS = ["one", "", "two of them", "and three of them"]
COUNTS = [1, 0, 3, 4]


def by_words(text):
    return [one.split() for one in text] if isinstance(text, list) else text.split()


@pytest.fixture
def asked(monkeypatch):
    """What each request held, in order."""
    held = []

    def ask(_self, _method, path, json):
        held.append(json)
        return Answer(path, 200, {}, jsons.dumps({"tokens": by_words(json["prompt"])}).encode(), ())

    monkeypatch.setattr(Server, "_ask", ask)
    return held


def of(backend, **changes):
    definition = load_backend(backend)
    tokenizer = replace(definition.server.tokenize, **changes)
    definition = replace(definition, server=replace(definition.server, tokenize=tokenizer))
    return Server(definition, "http://127.0.0.1:1", "model")


def test_a_server_that_takes_one_text_is_asked_for_each(asked):
    assert of("vllm").count_tokens(TEXTS) == COUNTS
    assert [one["prompt"] for one in asked] == TEXTS


@pytest.mark.parametrize(("round_trip_s", "at_once"), [(0.001, 1), (0.08, 8)])
def test_a_distant_server_is_asked_several_at_once(monkeypatch, round_trip_s, at_once):
    """Eight more texts take the time of one round trip there; a server next to us may take one connection."""
    together, taken_s, askers = Barrier(at_once, timeout=30), [], []

    def ask(_self, _method, path, json):
        if len(taken_s) < 8:
            taken_s.append(round_trip_s)
        else:
            askers.append(get_ident())
            together.wait()
        return Answer(path, 200, {}, jsons.dumps({"tokens": by_words(json["prompt"])}).encode(), ())

    monkeypatch.setattr(Server, "_ask", ask)
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: sum(taken_s)))
    assert of("vllm").count_tokens([" a" * count for count in range(24)]) == list(range(24))
    assert len(set(askers)) == at_once


def test_a_server_that_takes_lists_is_asked_once(asked):
    assert of("sglang").count_tokens(TEXTS) == COUNTS
    assert asked == [{"prompt": TEXTS, "model": "model", "add_special_tokens": False}]


def test_long_texts_go_in_several_requests(asked, monkeypatch):
    monkeypatch.setattr(server, "_TOKENIZED_CHARS", 11)
    assert of("sglang").count_tokens(TEXTS) == COUNTS
    assert [one["prompt"] for one in asked] == [["one", ""], ["two of them"], ["and three of them"]]


def test_no_text_is_no_request(asked):
    assert of("sglang").count_tokens([]) == of("vllm").count_tokens([]) == []
    assert asked == []


def test_the_tokens_of_a_prompt_of_millions_are_within_the_limits(monkeypatch):
    """Where models read millions, the number of a token and its comma are at most 8 bytes."""
    held = []

    def ask(_self, _method, url, *, limits, **_):
        held.append(limits)
        return Answer(url, 200, {}, b'{"tokens": [1]}', ())

    monkeypatch.setattr("harness.client.client.Client.ask", ask)
    assert of("vllm").count_tokens(["one"]) == [1]
    assert min(held[0].wire_bytes, held[0].body_bytes) >= 8 * 8_000_000


@pytest.mark.parametrize(
    ("backend", "tokens", "said"),
    [
        ("sglang", [1, 2], "answers without a list for each text"),
        ("sglang", [[1, 2]], "answers without a list for each text"),
        ("sglang", 2, "answers without a list for each text"),
        ("vllm", 2, "answers without tokens"),
    ],
)
def test_an_answer_of_another_form_is_an_error(monkeypatch, backend, tokens, said):
    answer = Answer("", 200, {}, jsons.dumps({"tokens": tokens}).encode(), ())
    monkeypatch.setattr(Server, "_ask", lambda *_, **__: answer)
    with pytest.raises(SetupError, match=said):
        of(backend).count_tokens(["one", "two"])
