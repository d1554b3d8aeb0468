"""What a probe concludes from how an answer streams and how long it is."""

import json
from math import inf

import pytest

from harness.client.answer import NoAnswer
from harness.model import Probed
from harness.probe import streaming
from harness.probe.exchange import Seen
from tests.unit.probe.answering import answered, asker, chunk, definition, read, seen

HABITS = {
    "unknown_fields": "ignored",
    "first_chunk": "role",
    "tokens_per_event": "one",
    "usage": "last",
    "cached_tokens": True,
    "done": True,
    "finish_reason": True,
    "comments": False,
    "reasoning_field": "reasoning",
}
CACHED = {"prompt_tokens_details": {"cached_tokens": 4}}
OWN = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, **CACHED}}
ROLE, END = chunk("", role="assistant"), chunk(finish="stop")
AS_DECLARED = (ROLE, chunk("a"), chunk("b"), END, OWN)


def of(**dialect):
    return definition(dialect={"exact_output": {"ignore_eos": True}, "habits": HABITS} | dialect)


def topic(found, name):
    (one,) = [finding for finding in found if finding.topic == name]
    return one


def shown(answer):
    return streaming.stream(asker(answer, of()))[1]


def test_all_that_is_declared_holds():
    found = shown(seen(*AS_DECLARED))
    assert [one.topic for one in found if one.holds is False] == []
    assert topic(found, "tokens per event").seen == "one, 2 tokens in 2 events"
    assert topic(found, "thinking off").seen == "no reasoning text"


def test_reasoning_that_is_not_shown_makes_no_event_hold_several_tokens():
    counts = {"completion_tokens": 51, "completion_tokens_details": {"reasoning_tokens": 40}}
    found = topic(shown(answered("x" * 11, **counts)), "tokens per event")
    assert (found.seen, found.holds) == ("one, 11 tokens in 11 events", True)


@pytest.mark.parametrize(
    ("answer", "name", "said", "matters"),
    [
        (seen(*AS_DECLARED[1:]), "first event", "text", False),
        (seen(*AS_DECLARED, done=False), "[DONE]", "no", False),
        (seen(ROLE, chunk("a"), chunk("b"), OWN), "finish reason", "no", False),
        (seen(*AS_DECLARED[:-1]), "usage block", "never", True),
        (seen(ROLE, chunk("a", usage=True), chunk("b", usage=True), END, OWN), "usage block", "each", False),
        (seen(ROLE, chunk("a"), chunk("b"), chunk(finish="stop", usage=True)), "cached tokens", "no", True),
        (seen(ROLE, chunk("ab"), END, OWN), "tokens per event", "several, 2 tokens in 1 event", True),
        (seen(chunk("", reasoning="hm"), *AS_DECLARED), "thinking off", "reasoning in reasoning", True),
        (seen(ROLE, chunk("<think>"), END), "thinking off", "reasoning inside the content", True),
    ],
)
def test_a_habit_other_than_declared_is_found(answer, name, said, matters):
    one = topic(shown(answer), name)
    assert (one.holds, one.seen, one.matters) == (False, said, matters)
    assert one.then


def test_an_answer_that_is_no_stream_is_found():
    message = {"role": "assistant", "content": "a b"}
    document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": OWN["usage"]}
    one = topic(shown(read(json.dumps(document).encode(), "application/json")), "chat")
    assert (one.seen, one.holds, one.matters) == ("one JSON document, not a stream", False, True)
    assert "compare E2E" in one.then
    assert topic(shown(seen(ROLE, chunk("a"), END, OWN)), "chat").seen == "1 event with text"


@pytest.mark.parametrize("habits", [HABITS, {}])
def test_answers_that_never_end_are_found_whatever_is_declared(habits):
    """Each of them fails, so a run has no figure."""
    answer = seen(ROLE, chunk("a"), chunk("b"), OWN, done=False)
    found = streaming.stream(asker(answer, of(habits=habits)))[1]
    one = topic(found, "finish reason")
    assert (one.declared, one.seen, one.holds, one.matters) == ("yes, or [DONE]", "neither", False, True)


def test_an_answer_that_owes_no_end_is_as_declared():
    answer = seen(ROLE, chunk("a"), chunk("b"), OWN, done=False)
    found = streaming.stream(asker(answer, of(habits={"done": False, "finish_reason": False})))[1]
    one = topic(found, "finish reason")
    assert (one.declared, one.seen, one.holds, one.matters) == ("no", "no", True, False)
    owed = streaming.stream(asker(answer, of(habits={"done": False, "finish_reason": True})))[1]
    assert topic(owed, "finish reason").matters


@pytest.mark.parametrize(
    ("declared", "before", "holds"),
    [
        (True, b": still here\n\n", True),
        (False, b": still here\n\n", False),
        (True, b"", None),  # few silences are long enough for one
        (False, b"", True),
    ],
)
def test_comments_are_held_to_where_one_came(declared, before, holds):
    answer = seen(*AS_DECLARED, before=before)
    found = streaming.stream(asker(answer, of(habits=HABITS | {"comments": declared})))[1]
    assert topic(found, "comments").holds is holds


def test_a_refused_request_is_the_only_finding():
    (found,) = shown(Seen(400, error="max_tokens must be a number"))
    assert (found.seen, found.holds, found.matters) == ("400: max_tokens must be a number", False, True)
    assert found.then == "nothing can be measured"


@pytest.mark.parametrize(
    ("whole_s", "most_s", "more"),
    [
        (None, inf, ""),
        (0.25, 20.0, "; one that is no stream came after 0.2 s"),
        (2.0, 80.0, "; one that is no stream came after 2.0 s"),
    ],
)
def test_a_first_stream_is_waited_for_by_how_long_a_whole_answer_took(whole_s, most_s, more):
    """A server that answers whole and never streams took the whole time of a probe."""
    limits = []

    def ask(body, limit_s):
        limits.append(limit_s)
        return Seen(0, error="no complete answer", none_came=NoAnswer.LATE)

    late = asker(None)
    late.line.ask, late.server.first_answer_s = ask, whole_s
    (found,) = streaming.stream(late)[1]
    assert (limits, found.seen, found.holds) == ([most_s], f"no complete answer{more}", False)


@pytest.mark.parametrize(
    ("failed", "refused"),
    [
        (Seen(400, error="no"), "400: no"),
        (Seen(404), "404: no text"),
        (Seen(408, error="late"), ""),
        (Seen(429, error="slow down"), ""),
        (Seen(500, error="no"), ""),
        (Seen(0, error="404 tries, no answer"), ""),
    ],
)
def test_a_server_refuses_by_its_status_whatever_the_words_begin_with(failed, refused):
    assert Probed(findings=tuple(shown(failed))).refused == refused


def length(forced, free=3, *, thorough=True, made=None):
    def answer(body):
        return answered("x" * (forced if body.get("ignore_eos") else free))

    (found,) = streaming.exact_output(asker(answer, made or of(), thorough=thorough))
    return found.seen, found.holds, found.matters


def test_a_length_is_exact_where_it_would_not_have_come_by_itself():
    assert length(32) == ("32 tokens, 3 when not forced", True, False)
    assert length(32, 32) == ("32 tokens, 32 when not forced", None, False)
    assert length(32, thorough=False) == ("32 tokens", True, False)
    assert length(31) == ("31 tokens, 3 when not forced", False, True)
    assert length(32, made=of(exact_output={})) == ("not asked", None, False)


def test_an_exact_length_that_is_refused_or_not_counted():
    (refused,) = streaming.exact_output(asker(Seen(422, error="no"), of()))
    assert (refused.seen, refused.holds, refused.then) == ("422: no", False, "requests of exact length fail")
    (late,) = streaming.exact_output(asker(Seen(0, error="no answer"), of()))
    assert (late.seen, late.holds, late.matters) == ("no answer", None, False), "no answer is no refusal"
    (uncounted,) = streaming.exact_output(asker(seen(*AS_DECLARED[:-1]), of()))
    assert (uncounted.seen, uncounted.holds) == ("no usage block to count by", None)


@pytest.mark.parametrize(
    ("answer", "said", "holds"),
    [
        (answered(), "ignored", True),
        (Seen(422, error="extra"), "rejected, 422: extra", False),
        (Seen(500, error="oops"), "500: oops", None),
    ],
)
def test_an_unknown_field_is_ignored_or_rejected(answer, said, holds):
    made = asker(answer, of())
    (found,) = streaming.unknown_field(made)
    assert made.line.asked[0]["bench_unknown_field"] is True
    assert (found.seen, found.holds, found.matters) == (said, holds, False)


def test_thinking_is_switched_on_where_that_is_declared():
    able = of(thinking={"on": {"think": True}, "off": {"think": False}})
    thinks = asker(seen(chunk("", reasoning="hm"), *AS_DECLARED), able)
    (found,) = streaming.thinking(thinks)
    assert thinks.line.asked[0]["think"] is True
    assert (found.seen, found.holds) == ("reasoning", True)
    (other,) = streaming.thinking(asker(seen(chunk("", reasoning_content="hm"), *AS_DECLARED), able))
    assert (other.seen, other.holds, other.matters) == ("reasoning_content", False, False)
    (none,) = streaming.thinking(asker(answered(), able))
    assert (none.seen, none.holds) == ("no reasoning text", None)
    (refused,) = streaming.thinking(asker(Seen(400, error="no"), able))
    assert (refused.seen, refused.holds) == ("400: no", False)
    assert list(streaming.thinking(asker(answered(), of()))) == []
    assert list(streaming.thinking(asker(answered(), able, thorough=False))) == []
