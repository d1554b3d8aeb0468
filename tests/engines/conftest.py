"""Real engines on real weights. The first run builds their environments in the cache."""

import json

import httpx
import pytest

from harness.engines.session import open_engine
from harness.engines.speak.dialect import Chat, render_body
from harness.engines.start.command import settable
from harness.engines.start.launch_choice import resolve_launch
from harness.engines.start.request import EngineRequest
from harness.spec.backend_refs import parse_backend_list
from harness.spec.models import choose_model
from harness.spec.scenario import Request

WORDS = "time people way water day part place year thing name man line right boy old same tell air".split()


@pytest.fixture
def start(tmp_path):
    """Opens a backend as the harness does: `with start("llamacpp") as engine`.

    One thread by default: on a machine with other work, engines that spin at their barriers crawl with more.
    """

    def start(entry, *, named_model=None, **values):
        (ref,) = parse_backend_list(entry)
        name, model = named_model or choose_model(None)
        one = {"threads": 1} if "threads" in settable(ref.definition) else {}
        wanted = EngineRequest(
            ref,
            resolve_launch(ref, "auto"),
            name,
            model,
            log_path=tmp_path / "engine.log",
            values={**one, **values},
        )
        return open_engine(wanted, print)

    return start


@pytest.fixture
def ask():
    """One non-streaming answer to `system` and `question` in the engine's own dialect, as parsed JSON."""

    def ask(engine, system, question, max_tokens=8):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        body = json.loads(
            render_body(engine.definition, engine.served_name, Chat(messages, max_tokens), Request())
        )
        body |= {"stream": False}
        del body["stream_options"]
        answer = httpx.post(engine.api_url, json=body, headers=engine.access.headers_outside(), timeout=120)
        answer.raise_for_status()
        return answer.json()

    return ask


@pytest.fixture
def long_text():
    """About three tokens for each of its `words`, different for each `salt` from the first word on."""

    def text(salt, words=200):
        return " ".join(f"{WORDS[(i * 7 + salt) % len(WORDS)]} {salt}" for i in range(words))

    return text
