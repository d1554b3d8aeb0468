"""What a probe concludes about constraints and tools."""

import pytest

from harness.probe import structured
from harness.probe.exchange import Seen
from tests.unit.probe.answering import answered, asker, definition

DIALECT = {"structured": {"json_schema": {"guided": "{schema}"}}}


def shape(answer):
    (found,) = structured.shape(asker(answer, definition(dialect=DIALECT)), "json_schema")
    return found


@pytest.mark.parametrize(
    ("text", "finish", "holds"),
    [
        ('{"colour": "teal", "calm": true}', "stop", True),
        ("The sea, the sea.", "stop", False),
        ("The sea, the", "length", False),
        ('{"colour": "te', "length", None),  # may be the beginning of the right one
        ('{"colour": "te', "max_tokens", None),  # as the messages API says it
        ('{"colour": "te', "max_output_tokens", None),  # as the responses API says it
        ('{"colour": "te', "stop", False),
    ],
)
def test_a_constraint_constrains_or_is_only_accepted(text, finish, holds):
    found = shape(answered(text, finish=finish))
    assert (found.holds, found.matters) == (holds, holds is False)
    assert found.seen.startswith({True: "'", False: "accepted and ignored: '", None: "cut off at 160"}[holds])


def test_an_answer_as_long_as_was_allowed_was_cut_off_whatever_the_server_says():
    """llama.cpp says `completed` of it through the responses API."""
    assert shape(answered('{"colour": "te', finish="completed", completion_tokens=160)).holds is None
    assert shape(answered('{"colour": "te', finish="completed", completion_tokens=159)).holds is False


def test_a_long_answer_is_shortened_where_it_is_quoted():
    assert shape(answered("x" * 41)).seen == f"accepted and ignored: '{'x' * 39}…'"
    assert shape(answered("x" * 40)).seen == f"accepted and ignored: '{'x' * 40}'"


def test_a_refused_constraint_fails_and_no_answer_is_not_known():
    assert (shape(Seen(400, error="no")).seen, shape(Seen(400, error="no")).holds) == ("400: no", False)
    assert shape(Seen(0, error="no answer")).holds is None


def test_what_is_not_declared_is_named_once_and_only_where_all_is_asked():
    (found,) = structured.undeclared(asker(answered()), ["regex", "grammar"])
    assert (found.declared, found.seen) == ("cannot", "not asked: regex, grammar")
    assert list(structured.undeclared(asker(answered()), [])) == []
    assert list(structured.undeclared(asker(answered(), thorough=False), ["regex"])) == []


def test_tools_are_accepted_refused_or_not_declared():
    made = definition(dialect=DIALECT)
    accepting = asker(answered(), made)
    (found,) = structured.tools(accepting)
    assert (found.topic, found.holds) == ("tools", True)
    assert accepting.line.asked[0]["tools"][0]["function"]["name"] == "look_up_river"
    (refused,) = structured.tools(asker(Seen(400, error="no"), made))
    assert (refused.seen, refused.holds) == ("400: no", False)
    (not_asked,) = structured.tools(asker(answered(), definition(dialect={"tools": {}})))
    assert (not_asked.declared, not_asked.holds) == ("cannot", None)
