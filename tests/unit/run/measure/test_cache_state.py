"""What keeps the labels of --aa apart on one server that keeps prompts."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from harness.run.measure import job
from harness.run.measure.cache_state import _emptied
from harness.spec.scenario import LoraMix


def engine(salt_field=None, done=False, fresh=False):
    dialect = SimpleNamespace(cache_salt=salt_field or {}, api="chat")
    definition = SimpleNamespace(prefix_cache=SimpleNamespace(enabled=True), dialect=dialect)
    reset = SimpleNamespace(done=done, how="no reset")
    return SimpleNamespace(
        definition=definition, fresh=fresh, served_name="m", reset_prefix_cache=lambda: reset
    )


@pytest.mark.parametrize(
    ("given", "method"),
    [
        ({"done": True}, "reset"),
        ({"fresh": True}, "restart"),
        ({"salt_field": {"cache_salt": "{salt}"}}, "salt"),
        ({}, "none"),
    ],
)
def test_one_label_is_emptied_as_the_engine_can(given, method):
    assert _emptied("cold", engine(**given), twice=False).method == method


def test_the_second_label_of_one_server_gets_prompts_of_its_own():
    first, second = (_emptied("cold", engine(), twice=True) for _ in range(2))
    assert first.method == second.method == "salt"
    assert first.salt.isdigit()
    assert first.salt != second.salt
    assert _emptied("cold", engine(done=True), twice=True).method == "reset"


@dataclass
class Request:
    exact_output: bool = True
    kept_turns: bool = False


def said(salt, salt_field=None, monkeypatch=None):
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
            clip=None,
        )
        for turn, messages in (
            (0, [("system", "be kind"), ("user", "one")]),
            (1, [("user", "two")]),
            (0, [("user", "three")]),
        )
    ]
    prepared = SimpleNamespace(scenario=SimpleNamespace(request=Request(), lora=LoraMix()))
    bodies = job.bodies(prepared, SimpleNamespace(requests=made), engine(salt_field), salt=salt)
    contents = [[one["content"] for one in json.loads(body.decode(errors="replace"))] for body in bodies]
    return contents[0], contents[1][:2], contents[1][-1:], contents[2]


def test_the_number_stands_in_front_of_the_first_message_of_each_chat(monkeypatch):
    first, again, later, single = said("1234567", monkeypatch=monkeypatch)
    assert first == again == ["1234567 be kind", "one"]
    assert (later, single) == (["two"], ["1234567 three"])


def test_prompts_stay_as_they_are_where_there_is_no_salt_or_a_field_for_it(monkeypatch):
    assert said("", monkeypatch=monkeypatch)[3] == ["three"]
    assert said("1234567", {"cache_salt": "{salt}"}, monkeypatch=monkeypatch)[3] == ["three"]
