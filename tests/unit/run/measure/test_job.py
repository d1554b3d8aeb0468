"""Bodies of recorded sessions, put together from texts that are in the file once."""

import json
from types import SimpleNamespace

import pytest

from harness.apis import APIS
from harness.host.access import Access
from harness.load.bounds import answer_bytes
from harness.run.measure.image_shelf import ImageShelf
from harness.run.measure.job import Salt, bodies, make_job, written
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


def first_job(options, folder):
    prepared = prepare(options)
    made = generate(prepared.scenario.prompts, 9, 0, TextMaker(words, prepared.scenario.text))
    definition = prepared.backends[0].ref.definition
    engine = SimpleNamespace(
        definition=definition, served_name="m", api_urls=("http://h:1",), access=Access()
    )
    return make_job(prepared, prepared.plan[0].cells[0], made, engine, folder)


@pytest.mark.parametrize("over_cap", ["wait", "drop"])
def test_an_open_loop_does_above_its_cap_what_the_scenario_says(tmp_path, over_cap):
    load = {"concurrency": [], "rate": [5], "requests": 9, "max_in_flight": 7, "over_cap": over_cap}
    overrides = {f"load.{key}": value for key, value in load.items()}
    schedule = first_job(RunOptions("fixed-length", "truth", overrides=overrides), tmp_path).schedule
    assert (schedule.max_in_flight, schedule.over_cap) == (7, over_cap)


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
    job = first_job(RunOptions(name, "openai=http://h:1", apis=(api,)), tmp_path)
    items = 0 if job.items is None else max(job.items)
    assert (items > 1) == (APIS[api].gives != "text")
    assert job.answer_bytes == answer_bytes(tokens, items, echoes * max(map(len, job.bodies)))


def sent_by(prepared, made, **given):
    engine = SimpleNamespace(definition=prepared.backends[0].ref.definition, served_name="m")
    return list(map(json.loads, bodies(prepared, made, engine, **given)))


def schemas_of(sent):
    asked = [body["response_format"]["json_schema"]["schema"] for body in sent if "response_format" in body]
    return {schema["title"]: schema for schema in asked}


def test_schemas_have_titles_that_no_other_try_has():
    """Engines keep what they compiled, and a reset of the prefix cache leaves it."""
    prepared = prepare(RunOptions("structured-output", "vllm=http://h:1"))
    made = generate(prepared.scenario.prompts, 64, 0, TextMaker(None), warmup=0)
    plain, apart = sent_by(prepared, made), sent_by(prepared, made, salt=Salt(held=12345))
    schemas, others = schemas_of(plain), schemas_of(apart)
    assert len(schemas) == 8
    assert others == {
        f"{title} 12345": {**schema, "title": f"{title} 12345"} for title, schema in schemas.items()
    }
    for body, other in zip(plain, apart, strict=True):
        body.pop("response_format", None), other.pop("response_format", None)
    assert plain == apart
    assert not schemas_of(sent_by(prepared, made, max_tokens=1)), "else a filled cache would compile them"


@pytest.mark.parametrize("send", ["data", "url"])
def test_images_are_others_than_in_any_other_try(send):
    """A server may have kept what it made of them."""
    asked = {"images.sizes": ["16x16"], "images.send": send, "images.distinct": 2}
    prepared = prepare(RunOptions("images-in", "vllm=http://127.0.0.1:1", overrides=asked))
    shelf = ImageShelf(prepared.scenario.images)
    made = generate(prepared.scenario.prompts, 10, 0, TextMaker(None), shelf.decorate)

    def images_of(salt):
        parts = [body["messages"][0]["content"] for body in sent_by(prepared, made, salt=salt)]
        return [
            [part["image_url"]["url"] for part in part if part["type"] == "image_url"]
            for part in parts
            if isinstance(part, list)
        ]

    first, again, other = images_of(Salt()), images_of(Salt(held=10_000)), images_of(Salt(held=10_001))
    assert [len(images) for images in first] == [len(images) for images in again]
    distinct = [{url for images in each for url in images} for each in (first, again, other)]
    assert len(distinct[0]) == len(distinct[1]) == len(distinct[2]) == len(set().union(*distinct)) / 3
    assert again == images_of(Salt(held=10_000))
