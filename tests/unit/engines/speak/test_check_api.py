"""What a server answers to a short request of the API that the load will speak."""

import json

import pytest

from harness.client.answer import Answer
from harness.engines.speak.server import Server
from harness.errors import SetupError
from harness.spec.backend_refs import parse_backend_list


def test_an_empty_answer_that_is_an_error_is_called_so(monkeypatch):
    """The message ended with `answered 404: `."""
    monkeypatch.setattr(Server, "_ask", lambda _self, _method, path, **_: Answer(path, 404, {}, b"\n", ()))
    (ref,) = parse_backend_list("openai=http://h")
    with pytest.raises(SetupError, match=r"answered 404: no text\n"):
        Server(ref.definition, "http://h", "m").check_api()


def refusal(monkeypatch, status, said, model="team/small", **more):
    body = json.dumps({"error": {"message": said} | more}).encode()
    monkeypatch.setattr(Server, "_ask", lambda _self, _method, path, **_: Answer(path, status, {}, body, ()))
    (ref,) = parse_backend_list("vllm@messages=http://h")
    with pytest.raises(SetupError) as caught:
        Server(ref.definition, "http://h", model).check_api()
    return caught.value


@pytest.mark.parametrize("status", [400, 404, 405, 501])
def test_a_server_that_refuses_the_request_lacks_the_api(monkeypatch, status):
    error = refusal(monkeypatch, status, "Not Found")
    assert error.what.startswith(f"no Messages API: POST /v1/messages answered {status}")
    assert "`bench URL` says which APIs a server has" in error.hint
    for model in ("", "t"):
        error = refusal(monkeypatch, status, "Not Found", model=model)
        assert error.what.startswith("no Messages API")


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "The model `team/small` does not exist."), (429, "Too many requests"), (503, "overloaded")],
)
def test_a_server_that_lacks_the_model_or_fails_has_the_api(monkeypatch, status, said):
    error = refusal(monkeypatch, status, said)
    assert error.what.startswith(f"POST /v1/messages answered {status}")
    assert said in error.what
    assert error.hint is None


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (400, {"type": "invalid_request_error"}),  # Anthropic, of a header too; OpenAI, llama.cpp
        (400, {"type": "BadRequestError", "param": "max_tokens"}),  # vLLM
        (422, {}),  # FastAPI, TGI
    ],
)
def test_a_server_that_refuses_a_part_of_the_request_has_the_api(monkeypatch, status, more):
    error = refusal(monkeypatch, status, "max_tokens: too small", **more)
    assert error.what.startswith(f"POST /v1/messages answered {status}")
    assert "max_tokens: too small" in error.what


def test_a_model_without_the_task_has_no_such_api(monkeypatch):
    no_task = {"type": "BadRequestError", "param": None, "code": 400}
    error = refusal(monkeypatch, 400, "The model does not support Embeddings API", **no_task)
    assert error.what.startswith("no Messages API: POST /v1/messages answered 400")
