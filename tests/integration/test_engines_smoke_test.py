"""A first answer ahead of the first cell: in the API that requests will speak, and within their time."""

import json
from contextlib import closing

import pytest

from harness.apis import APIS
from harness.engines.speak.access import key_hint
from harness.engines.speak.server import Server
from harness.engines.start.smoke_test import hello
from harness.errors import SetupError
from harness.host.access import Access
from harness.spec.backend_refs import parse_backend_list
from tests.factories.hostile import serving, sized
from tests.waiting import in_time

CHOICE = {"index": 0, "finish_reason": "stop"}
ANSWERS = {
    "chat": {"choices": [CHOICE | {"message": {"role": "assistant", "content": "Hello."}}]},
    "completions": {"choices": [CHOICE | {"text": ""}]},
    "responses": {"object": "response", "status": "completed", "output": []},
    "messages": {"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"},
    "transcriptions": {"text": "a"},
}


def greet(api, answers, *, answer_s=None, access=Access()):  # noqa: B008  # immutable
    """`answers`: by API, status and document, or None for no answer at all; another API is missing."""
    (ref,) = parse_backend_list("openai", (api,))
    said = {APIS[name].path: answer for name, answer in answers.items()}

    def say(request):
        status, document = said.get(request.split(b" ")[1].decode(), ("404 Not Found", {"detail": "no"}))
        if document is not None:
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            yield sized(body, "connection: close", status=status)

    with serving(say) as url, closing(Server(ref.definition, url, "m", access)) as server:
        hello(server, answer_s)
        assert server.first_answer_s > 0


@pytest.mark.parametrize("api", ANSWERS)
def test_a_server_of_one_api_alone_is_ready_for_that_api(api):
    """A base model has no chat template, and refuses every chat."""
    greet(api, {api: ("200 OK", ANSWERS[api])})


@pytest.mark.parametrize("api", ANSWERS)
def test_a_server_of_other_apis_is_not(api):
    with pytest.raises(SetupError, match="404"):
        greet(api, {name: ("200 OK", answer) for name, answer in ANSWERS.items() if name != api})


@pytest.mark.parametrize("api", ["completions", "responses", "messages"])
@pytest.mark.parametrize(
    "document", [b"<html>", {}, {"choices": []}, {"error": {"message": "no sk-12345678"}}]
)
def test_what_holds_no_answer_is_none_whatever_its_status(api, document):
    with pytest.raises(SetupError, match=r"POST /v1/\w+: ") as raised:
        greet(api, {api: ("200 OK", document)}, access=Access(credentials=("sk-12345678",)))
    assert "sk-12345678" not in raised.value.what


def test_a_key_is_asked_for_in_every_api():
    for api in ("chat", "completions"):
        with pytest.raises(SetupError, match="refuses with 401") as raised:
            greet(api, {api: ("401 Unauthorized", {})})
        assert raised.value.hint == key_hint(Access())
        assert "put its API key into BENCH_API_KEY" in raised.value.hint


def test_a_key_that_was_refused_is_not_asked_for():
    with pytest.raises(SetupError, match="refuses with 401") as raised:
        greet("chat", {"chat": ("401 Unauthorized", {})}, access=Access(credentials=("sk-12345678",)))
    assert raised.value.hint.startswith("it was sent a key: that one may be wrong")
    assert "--api-key-env VAR names another variable, and NAME=VAR that of one of" in raised.value.hint
    assert "BENCH_API_KEY" not in raised.value.hint


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_first_answer_has_the_time_of_requests_and_a_hint_where_it_comes_later(api):
    with pytest.raises(SetupError, match=r"did not end within 0.2 s") as raised:
        in_time(lambda: greet(api, {api: ("200 OK", None)}, answer_s=0.2))
    assert "send one first" in raised.value.hint
    with pytest.raises(SetupError) as raised:
        greet(api, {}, answer_s=60)
    assert "send one first" not in (raised.value.hint or "")


def reach(definition, name):
    (ref,) = parse_backend_list(definition)
    with (
        serving(lambda _: iter([sized(b"{}", "connection: close", status="404 Not Found")])) as url,
        closing(Server(ref.definition, url, name)) as server,
    ):
        server.check_reachable()


def test_a_server_need_not_list_the_model_that_was_named():
    reach("openai", "m")
    reach("hosted", "m")
    with pytest.raises(SetupError, match="no such path") as raised:
        reach("openai", "")
    assert "--model-name" in raised.value.hint
    assert "openai=URL" not in raised.value.hint
    with pytest.raises(SetupError, match="no such path") as raised:
        reach("vllm", "m")
    assert "openai=URL" in raised.value.hint
