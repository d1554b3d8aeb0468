"""Bodies of recorded sessions, put together from texts that are in the file once."""

import json
from types import SimpleNamespace

import pytest

from harness.run.measure.job import bodies, written
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker
from tests.unit.workload.test_prompts import words


@pytest.mark.parametrize("content", ["random", "code", "json", "prose"])
def test_a_prompt_that_grows_is_whole_json_whatever_its_text_is_made_of(tmp_path, content):
    """Quotes and ends of lines take two bytes in JSON, and a dash takes three."""
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
