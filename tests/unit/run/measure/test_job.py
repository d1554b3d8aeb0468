"""Bodies of recorded sessions, put together from texts that are in the file once."""

import json
from types import SimpleNamespace

import pytest

from harness.apis import APIS
from harness.host.access import Access
from harness.load.bounds import answer_bytes
from harness.run.measure.job import bodies, make_job, written
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker
from tests.unit.workload.test_prompts import words


@pytest.mark.parametrize("content", ["random", "code", "json", "prose", "file"])
def test_a_prompt_that_grows_is_whole_json_whatever_its_text_is_made_of(tmp_path, content):
    """Quotes and ends of lines take two bytes in JSON, and a dash takes three."""
    if content == "file":
        (tmp_path / "own.java").write_text("if (last == '\\u0000') skip(\"\0\");\n" * 30)
        content = f"file:{tmp_path}/own.java"
    prepared = prepare(RunOptions("agent-sessions", "truth", overrides={"text.content": content}))
    scenario = prepared.scenario
    made = generate(scenario.prompts, 60, 0, TextMaker(words, scenario.text))
    engine = SimpleNamespace(definition=prepared.backends[0].ref.definition, served_name="m")
    sent = [
        json.loads(body)["messages"][0]["content"]
        for body in written(tmp_path / "bodies", made, bodies(prepared, made, engine))
    ]
    whole = made.requested.numbers["kept"] + made.requested.numbers["content_tokens"]
    assert words(sent) == whole.tolist()
    for number, request in enumerate(made.requests):
        assert sent[number].endswith(request.messages[0][1])
        assert sent[number - request.call.base].startswith(sent[number].removesuffix(request.messages[0][1]))


@pytest.mark.parametrize(
    ("name", "api", "tokens", "echoes"),
    [
        ("embed-documents", "embeddings", 1, 0),
        ("rerank-top-100", "rerank", 1, 1),
        ("fixed-length", "responses", 64, 3),
        ("fixed-length", "chat", 64, 0),
    ],
)
def test_an_answer_may_be_as_long_as_what_was_asked_for_makes_it(tmp_path, name, api, tokens, echoes):
    prepared = prepare(RunOptions(name, "openai=http://h:1", apis=(api,)))
    made = generate(prepared.scenario.prompts, 9, 0, TextMaker(words, prepared.scenario.text))
    definition = prepared.backends[0].ref.definition
    engine = SimpleNamespace(
        definition=definition, served_name="m", api_urls=("http://h:1",), access=Access()
    )
    job = make_job(prepared, prepared.plan[0].cells[0], made, engine, tmp_path)
    items = 0 if job.items is None else max(job.items)
    assert (items > 1) == (APIS[api].gives != "text")
    assert job.answer_bytes == answer_bytes(tokens, items, echoes * max(map(len, job.bodies)))
