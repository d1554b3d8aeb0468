"""What is read of the counters of an engine that leaves cached tokens out of its prompt tokens."""

from types import SimpleNamespace

import pytest

from harness.engines.speak.server import Server
from harness.spec.backend_refs import load_backend

BEFORE_AUGUST_2026 = "llamacpp:prompt_tokens_total 831\nllamacpp:tokens_predicted_total 16\n"
SINCE = BEFORE_AUGUST_2026 + "llamacpp:prompt_tokens_cached_total 768\n"


@pytest.mark.parametrize(
    ("engine", "text", "expected"),
    [
        ("llamacpp", SINCE, {"prompt_tokens": 1599, "cached_prompt_tokens": 768, "output_tokens": 16}),
        ("llamacpp", BEFORE_AUGUST_2026, {"output_tokens": 16}),
        ("llamafile", SINCE, {"prompt_tokens": 1599, "cached_prompt_tokens": 768, "output_tokens": 16}),
        ("llamafile", BEFORE_AUGUST_2026, {"output_tokens": 16}),
        ("powerinfer", BEFORE_AUGUST_2026, {"output_tokens": 16}),
    ],
)
def test_prompt_tokens_are_of_whole_prompts_or_not_there(monkeypatch, engine, text, expected):
    monkeypatch.setattr(Server, "_ask", lambda *_: SimpleNamespace(ok=True, figures=text))
    assert Server(load_backend(engine), "http://127.0.0.1:1", "model").counters() == expected
