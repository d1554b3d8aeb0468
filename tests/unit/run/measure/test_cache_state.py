"""What keeps the prompts of a cell apart from equal ones that a server still holds."""

import json
import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from harness.model import LoadPoint
from harness.plan import Cell
from harness.run.measure import cache_state, job
from harness.run.measure.cache_state import Attempt, _emptied, _may_need_front, _number, _send, bring_about
from harness.run.measure.job import UNSALTED, Salt
from harness.run.setup.options import RunOptions
from harness.run.setup.prepare import prepare
from harness.spec.backend import PrefixCache, Reset
from harness.spec.backend_refs import apply_variant, load_backend
from harness.spec.scenario import LoraMix
from harness.workload.prompts.generate import generate
from harness.workload.prompts.text import TextMaker


def engine(salt_field=None, done=False, fresh=False, leaves="", started_here=False, gives="chat"):
    dialect = SimpleNamespace(cache_salt=salt_field or {}, api=gives)
    cache = PrefixCache(enabled=True, reset=Reset("/reset", leaves=leaves))
    definition = SimpleNamespace(prefix_cache=cache, dialect=dialect)
    reset = SimpleNamespace(done=done, how="no reset")
    return SimpleNamespace(
        definition=definition,
        fresh=fresh,
        started_here=started_here,
        served_name="m",
        reset_prefix_cache=lambda: reset,
    )


FIELD = {"cache_salt": "{salt}"}
C8 = LoadPoint("concurrency", 8)


def emptied(state="cold", *, again=False, in_front=False, **given):
    return _emptied(state, engine(**given), "12345", again=again, in_front=in_front)


@pytest.mark.parametrize(
    ("given", "method", "salt"),
    [
        ({"done": True}, "reset", UNSALTED),
        ({"fresh": True}, "restart", UNSALTED),
        ({"salt_field": FIELD}, "salt", Salt("12345")),
        ({}, "salt", Salt("12345", True)),
        ({"started_here": True}, "salt", Salt("12345", True)),
    ],
)
def test_a_cold_cache_is_emptied_as_the_engine_can_and_else_set_apart(given, method, salt):
    state = emptied(**given)
    assert (state.method, state.salt) == (method, salt)
    assert state.preparation.salt == salt.value


@pytest.mark.parametrize(
    ("given", "again", "method", "salt"),
    [
        ({"started_here": True}, False, "none", UNSALTED),
        ({"started_here": True}, True, "salt", Salt("12345", True)),
        ({"started_here": True, "fresh": True}, True, "none", UNSALTED),
        ({"salt_field": FIELD}, False, "salt", Salt("12345")),
        ({"done": True}, False, "salt", Salt("12345", True)),
    ],
)
def test_a_cache_that_is_left_alone_finds_none_of_the_prompts_in_it(given, again, method, salt):
    """A server that ran before, and a second try on one that bench started, may hold them.

    One that bench starts for a second try does not: its prompts stay as long as those of other backends.
    """
    state = emptied("any", again=again, **given)
    assert (state.method, state.salt) == (method, salt)


@pytest.mark.parametrize(
    ("name", "variant", "keeps"),
    [
        ("vllm", None, ""),
        ("vllm", "kv-offload", ""),
        ("vllm", "kv-files", "the files, which its connector cannot empty"),
        ("llamacpp", None, "the prompts in host memory, unless cache_ram_mib is 0"),
        ("llamacpp", "no-host-cache", ""),
        ("ollama", None, ""),
    ],
)
def test_a_variant_says_what_its_reset_leaves(name, variant, keeps):
    assert apply_variant(load_backend(name), variant).prefix_cache.keeps == keeps


@pytest.mark.parametrize("salt_field", [None, FIELD])
def test_prompts_that_a_reset_leaves_are_set_apart_in_front(salt_field):
    """The tier that is left may not heed a field: a number stands in front of the prompts."""
    server = {"salt_field": salt_field, "done": True, "leaves": "the files"}
    assert emptied(**server).salt == Salt("12345", True)
    assert "leaves the files" in emptied(**server).description
    own = server | {"started_here": True}
    assert emptied(**own).method == "reset", "no process before this one left any"
    assert emptied(**own, again=True).salt == Salt("12345", True)


def test_every_backend_gets_the_number_that_one_of_them_needs():
    state = emptied(done=True, salt_field=FIELD, in_front=True)
    assert (state.method, state.salt) == ("reset", Salt("12345", True))


@pytest.mark.parametrize(
    ("backends", "server", "attempt", "held"),
    [
        ("vllm=http://h:1", {}, 0, True),
        ("truth", {"started_here": True}, 0, False),
        ("truth", {"started_here": True}, 1, True),
        ("truth", {"started_here": True, "fresh": True}, 1, False),
        ("truth,vllm=http://h:1", {"started_here": True, "fresh": True}, 0, True),  # the same as the other
    ],
)
@pytest.mark.parametrize(
    ("scenario", "state"), [("structured-output", "cold"), ("fixed-length", "any"), ("few-shot", "any")]
)
def test_images_and_schemas_are_set_apart_whatever_is_done_to_the_cache(
    scenario, state, backends, server, attempt, held
):
    """No reset of a prefix cache empties what an engine made of images, recordings and schemas."""
    prepared = prepare(RunOptions(scenario, backends, overrides={"cache.state": state}))
    made = generate(prepared.scenario.prompts, 9, 0, TextMaker(None))
    cell, run = prepared.plan[0].cells[0], Attempt("a", attempt)
    for gives in ("chat", "transcriptions"):
        attached = engine(done=True, gives=gives, **server)
        brought = bring_about(prepared, cell, made, attached, run, threading.Event())
        assert brought.salt.held == (int(_number(prepared, cell, run)) if held else None)


def planned(*backends):
    """What is read of a prepared run: `NAME=URL` is attached."""
    plans = []
    for entry in backends:
        name, _, url = entry.partition("=")
        ref = SimpleNamespace(definition=load_backend(name), urls=(url,) if url else ())
        mode = "attach" if url else "process"
        plans.append(SimpleNamespace(ref=ref, launch=SimpleNamespace(mode=mode)))
    return SimpleNamespace(
        backends=plans, options=SimpleNamespace(seed=0), of=lambda cell: plans[cell.backend]
    )


def number(prepared, backend=0, repeat=0, run="a", attempt=0):
    return _number(prepared, Cell("", backend, C8, repeat), Attempt(run, attempt))


def test_all_servers_of_a_run_get_the_same_number_and_no_other_run_or_attempt_does():
    two = planned("tgi=http://a", "lmdeploy=http://b")
    first = number(two)
    assert len(first) == 5
    assert first.isdigit()
    assert first == number(two) == number(two, backend=1)
    assert len({first, number(two, run="b"), number(two, repeat=1), number(two, attempt=1)}) == 4


def test_two_labels_of_one_server_get_numbers_of_their_own():
    one = planned("tgi=http://a", "tgi=http://a", "tgi=http://b")
    assert number(one) != number(one, backend=1)
    assert number(one) == number(one, backend=2)
    started = planned("tgi", "tgi")
    assert number(started) == number(started, backend=1), "each has a process of its own"


@pytest.mark.parametrize(
    ("backend", "needed"),
    [
        ("lmdeploy=http://a", True),
        ("lmdeploy", False),
        ("sglang=http://a", True),  # its reset may fail, and there is no field for a salt
        ("sglang", False),
        ("vllm=http://a", False),
        ("llamacpp=http://a", True),
        ("mii=http://a", False),
    ],
)
def test_which_backends_may_need_a_number_in_front(backend, needed):
    assert _may_need_front(planned(backend).backends[0]) is needed


def test_one_signal_while_a_cache_is_filled_ends_that(monkeypatch):
    """The load that was cut short is no failure of the server, and the next replica gets none."""
    stop, asked = threading.Event(), []

    def cut_short(sent, *, stop):
        asked.append(sent.url)
        stop.set()
        return SimpleNamespace(records=None)

    monkeypatch.setattr(cache_state, "run_load", cut_short)
    monkeypatch.setattr(cache_state, "whole_bodies", lambda *_, **__: [b"{}"])
    monkeypatch.setattr(cache_state, "promised", lambda _: None)
    two = ("http://a", "http://b")
    server = SimpleNamespace(
        api_url=two[0],
        api_urls=two,
        access=None,
        definition=SimpleNamespace(dialect=SimpleNamespace(api="chat")),
    )
    prepared = SimpleNamespace(scenario=SimpleNamespace(request=SimpleNamespace(timeout_s=9)))
    with pytest.raises(KeyboardInterrupt):
        _send(prepared, None, server, {0}, UNSALTED, stop)
    assert asked == [two[0]]


@dataclass
class Request:
    exact_output: bool = True
    kept_turns: bool = False


def said(salt, monkeypatch, gives="chat"):
    """The messages of each body of a chat of two turns and a single request."""
    monkeypatch.setattr(job, "render_body", lambda *given: json.dumps(given[2].messages).encode())
    made = [
        SimpleNamespace(
            turn=turn,
            messages=messages,
            max_tokens=8,
            constraint=None,
            tools=None,
            adapter="",
            call=None,
            images=None,
            recording=None,
        )
        for turn, messages in (
            (0, [("system", "be kind"), ("user", "one")]),
            (1, [("user", "two")]),
            (0, [("user", "three")]),
        )
    ]
    prepared = SimpleNamespace(scenario=SimpleNamespace(request=Request(), lora=LoraMix()))
    bodies = job.bodies(prepared, SimpleNamespace(requests=made), engine(gives=gives), salt=salt)
    contents = [[one["content"] for one in json.loads(body.decode(errors="replace"))] for body in bodies]
    return contents[0], contents[1][:2], contents[1][-1:], contents[2]


def test_the_number_stands_in_front_of_the_first_message_of_each_chat(monkeypatch):
    first, again, later, single = said(Salt("12345", True), monkeypatch)
    assert first == again == ["12345 be kind", "one"]
    assert (later, single) == (["two"], ["12345 three"])


def test_it_stands_in_front_of_each_text_to_embed(monkeypatch):
    assert said(Salt("12345", True), monkeypatch, "embeddings")[0] == ["12345 be kind", "12345 one"]


def test_prompts_stay_as_they_are_where_there_is_no_salt_or_a_field_for_it(monkeypatch):
    assert said(UNSALTED, monkeypatch)[3] == ["three"]
    assert said(Salt("12345"), monkeypatch)[3] == ["three"]
