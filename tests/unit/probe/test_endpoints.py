"""What a probe concludes from what a server reports besides its answers."""

import time

import pytest

from harness.engines.speak.detect import Recognised
from harness.errors import SetupError
from harness.host.access import Access
from harness.probe import endpoints
from harness.probe.asker import Asker
from harness.probe.exchange import Line, Seen
from harness.spec.backend_refs import load_backend
from tests.unit.probe.answering import Server, answered, asker, definition

COUNTERS = {"prompt_tokens": "a_total", "preemptions": "b_total"}
SERVER = {"ready_path": "/health", "startup_timeout_s": 5}


def only(found):
    (one,) = found
    return one.seen, one.holds, one.then, one.matters


def metrics(counters, thorough=True):
    made = definition(metrics={"path": "/metrics", "counters": COUNTERS})
    return only(endpoints.metrics(asker(answered(), made, counters=counters)))


def test_series_that_are_missing_are_named_and_some_come_only_when_they_count():
    assert metrics({"prompt_tokens": 1.0, "preemptions": 0.0}) == ("2 of 2 series", True, "", False)
    assert metrics({"prompt_tokens": 1.0}) == ("1 of 2 series", True, "null: preemptions (b_total)", False)
    assert metrics({"preemptions": 0.0}) == ("1 of 2 series", False, "null: prompt_tokens (a_total)", True)
    assert metrics(None) == ("no answer", False, "server counters are null", True)
    assert only(endpoints.metrics(asker(answered())))[:2] == ("not asked", None)


def tokenizer(tokens):
    made = definition(server=SERVER | {"tokenize": {"path": "/tokenize", "text_field": "prompt"}})
    return only(endpoints.tokenizer(asker(answered(), made, tokens=tokens)))


def test_a_tokenizer_counts_more_for_more_text():
    wrong = ("input lengths are approximate, one word a token", True)
    assert tokenizer({3: 5, 6: 9}) == ("5 tokens for 'Name three rivers.'", True, "", False)
    assert tokenizer({3: 5, 6: 5}) == ("5 tokens for 'Name three rivers.'", False, *wrong)
    assert tokenizer({3: 0, 6: 9}) == ("0 tokens for 'Name three rivers.'", False, *wrong)
    assert tokenizer(None) == ("404", False, *wrong)
    assert only(endpoints.tokenizer(asker(answered())))[:2] == ("not asked", None)


def test_a_tokenizer_that_fails_is_quoted():
    made = definition(server=SERVER | {"tokenize": {"path": "/tokenize", "text_field": "prompt"}})
    asked = asker(answered(), made)

    def fails(_texts):
        raise SetupError("answered 500")

    asked.server.count_tokens = fails
    said, holds, *_ = only(endpoints.tokenizer(asked))
    assert ("answered 500" in said, holds) == (True, False)


@pytest.mark.parametrize(("reported", "said", "holds"), [("1.2", "1.2", True), (None, "not reported", False)])
def test_a_version_is_reported_or_not(reported, said, holds):
    made = definition(server=SERVER | {"version": {"path": "/version"}})
    assert only(endpoints.version(asker(answered(), made, version=reported)))[:2] == (said, holds)
    assert only(endpoints.version(asker(answered())))[:2] == ("not asked", None)


def test_other_apis_are_asked_for_where_their_answers_are_text():
    apis = {"completions": {}, "responses": {}, "embeddings": {}}
    made = definition(dialect={"apis": apis})
    found = list(endpoints.apis(asker(answered(), made, refuses={"responses": "404"})))
    assert [(one.topic, one.seen) for one in found] == [
        ("API completions", "answered"),
        ("API responses", "404"),
    ]
    assert found[0].holds
    assert found[1].then == "requests of --api responses fail"
    assert list(endpoints.apis(asker(answered(), made, thorough=False))) == []


@pytest.mark.parametrize(("backend", "holds"), [("vllm", False), ("openai", None)])
def test_a_refused_api_is_a_mismatch_of_an_engine_and_not_of_any_server(backend, holds):
    asked = asker(answered(), load_backend(backend), refuses={"responses": "404"})
    (one,) = (found for found in endpoints.apis(asked) if found.topic == "API responses")
    assert (one.holds, one.matters) == (holds, holds is False)


def test_prompts_of_the_template_are_counted_alone_and_behind_a_system_message():
    one, lengths = endpoints.template(asker(lambda body: answered(prompt_tokens=10 * len(body["messages"]))))
    assert lengths == {"user": 10, "system + user": 20}
    assert one.seen == "10 (user), 20 (system + user)"
    one, lengths = endpoints.template(asker(Seen(500, error="oops")))
    assert lengths == {"user": None, "system + user": None}
    assert one.seen == "n/a (user), n/a (system + user)"


@pytest.mark.parametrize(("refusal", "holds"), [("", True), ("404: no such route", False)])
def test_vectors_come_or_are_refused(refusal, holds):
    made = definition(dialect={"api": "embeddings", "apis": {"embeddings": {}}})
    said, found, _then, matters = only(
        endpoints.values(asker(answered(), made, refuses={"embeddings": refusal}))
    )
    assert (found, matters) == (holds, not holds)
    assert said == (refusal or "vectors")


def test_a_short_request_of_an_api_is_a_request_of_the_probe():
    made = definition(dialect={"apis": {"completions": {}, "responses": {}}})
    line = Line("http://h:1", Access(), time.monotonic() + 60)
    asked = Asker(Server(made, {"refuses": {"responses": "404"}}), line)
    assert len(list(endpoints.apis(asked))) == line.requests == 2
    assert len(list(endpoints.values(asked))) == line.requests - 2 == 1


@pytest.mark.parametrize(
    ("named", "answers_as", "started_here", "seen"),
    [
        ("vllm", "sglang", False, ["sglang, by /metrics and /server_info"]),
        ("vllm", "vllm", False, []),
        ("vllm", "sglang", True, []),  # bench chose what it started
        ("vllm", None, False, []),  # a gateway hides what an engine is known by
    ],
)
def test_a_server_that_answers_as_another_engine_is_a_warning(
    monkeypatch, named, answers_as, started_here, seen
):
    found = Recognised(answers_as, ("/metrics", "/server_info")) if answers_as else None
    monkeypatch.setattr(endpoints, "recognise", lambda url, access, definition: found)
    asked = asker(answered(), load_backend(named))
    asked.server.started_here = started_here
    findings = list(endpoints.engine(asked))
    assert [one.seen for one in findings] == seen
    assert all(one.matters and "sglang=URL" in one.then for one in findings)
