"""Traps that no single answer shows: what a probe concludes from several, and from settings and times."""

from dataclasses import replace

import pytest

from harness.probe import traps
from harness.probe.cache import LongPrompt
from harness.probe.exchange import Seen
from tests.unit.probe.answering import answered, asker, definition

SERVER = {"ready_path": "/health", "startup_timeout_s": 5}


def quick(**made):
    return replace(answered("x" * 24, **made), text_s=tuple(0.001 * number for number in range(1, 25)))


QUICK = quick()


def only(found):
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("lengths", "alone", "seen", "holds"),
    [
        ((24, 24, 24), QUICK, "each is whole", True),
        ((12, 12, 12), QUICK, "each is whole", True),  # the half of it is no sign yet
        ((24, 11, 5), QUICK, "2 of 3 ended after 5 events", False),
        ((24, 24, 5), quick(finish=None), "each is whole", True),  # reasons never come
    ],
)
def test_streams_at_once_are_each_whole_or_end_one_another(lengths, alone, seen, holds):
    def answer(body):
        number = next((at for at in (1, 2, 3) if f"at {at}." in body["messages"][0]["content"]), 1)
        length = lengths[number - 1]
        return answered("x" * length, finish="stop" if length == 24 else None)

    one = only(traps.interrupted(asker(answer), alone))
    assert (one.seen, one.holds, one.matters) == (seen, holds, not holds)


def test_streams_at_once_that_are_refused_tell_nothing():
    one = only(traps.interrupted(asker(Seen(503, error="busy")), QUICK))
    assert (one.seen, one.holds) == ("503: busy", None)
    assert list(traps.interrupted(asker(answered(), thorough=False), QUICK)) == []
    assert list(traps.interrupted(asker(answered()), Seen(500, error="oops"))) == []


def timed(gaps_ms):
    at, moments = 0.0, [0.0]
    for gap in gaps_ms:
        at += gap / 1e3
        moments.append(at)
    return replace(answered("x" * len(moments)), text_s=tuple(moments))


BURSTS, EVEN = timed([0, 0, 30] * 4), timed([10] * 12)


@pytest.mark.parametrize(("waited", "holds"), [((5.0, 5.0), False), ((5.0, 1e9), None), ((0.0, 0.0), False)])
def test_bursts_on_an_overloaded_machine_prove_nothing(monkeypatch, waited, holds):
    told = iter(waited)
    monkeypatch.setattr(traps, "waited_for_cpu_s", lambda: next(told))
    one = only(traps.held_back(asker(BURSTS), BURSTS))
    assert one.holds is holds
    assert one.seen.startswith("not known: tasks waited for a CPU" if holds is None else "in bursts")


def test_output_is_held_back_where_three_answers_show_it(monkeypatch):
    monkeypatch.setattr(traps, "waited_for_cpu_s", lambda: 0.0)
    caught = only(traps.held_back(asker(BURSTS), BURSTS))
    assert (caught.holds, caught.matters) == (False, True)
    assert caught.seen == "in bursts: 8 of 12 gaps are of 0, the longest of 30 ms"
    assert only(traps.held_back(asker(EVEN), BURSTS)).holds, "once may be the client's"
    answers = iter([BURSTS, EVEN])
    assert only(traps.held_back(asker(lambda _: next(answers)), BURSTS)).holds, "twice may be the client's"
    assert next(answers, None) is None, "a third answer was asked for"
    assert only(traps.held_back(asker(BURSTS), EVEN)).holds
    assert list(traps.held_back(asker(BURSTS), timed([10] * 7))) == [], "too few to tell"


def test_an_answer_that_is_held_back_whole_is_found(monkeypatch):
    monkeypatch.setattr(traps, "waited_for_cpu_s", lambda: 0.0)
    whole = timed([0] * 12)
    caught = only(traps.held_back(asker(whole), whole))
    assert (caught.holds, caught.matters) == (False, True)
    assert caught.seen == "in bursts: all 13 events at once"
    assert caught.then.endswith("compare E2E")
    assert only(traps.held_back(asker(EVEN), whole)).holds, "once may be the client's"


@pytest.mark.parametrize(
    ("first_s", "usual_s", "holds"),
    [(2.5, 0.3, True), (12.0, 0.1, False), (1.05, 0.1, True), (1.2, 0.1, False), (None, 0.1, None)],
)
def test_a_first_answer_that_took_long_and_many_times_as_long_loaded_the_model(first_s, usual_s, holds):
    asked = asker(answered())
    asked.server.first_answer_s = first_s
    found = list(traps.lazy(asked, replace(QUICK, text_s=(usual_s / 2, usual_s))))
    assert [one.holds for one in found] == ([] if holds is None else [holds])


def settings(info, *, started_here=True):
    made = definition(
        server=SERVER | {"info": [{"path": "/info", "keys": ["dtype"]}], "effective": {"dtype": "dtype"}},
        engine={"values": {"dtype": "bfloat16"}},
    )
    asked = asker(answered(), made, info=info)
    asked.server.started_here = started_here
    return list(traps.not_followed(asked))


@pytest.mark.parametrize(
    ("info", "seen", "holds"),
    [
        ({"dtype": "torch.bfloat16"}, "bfloat16", True),
        ({"dtype": "float16"}, "float16", False),
        ({}, "not reported", None),
    ],
)
def test_a_setting_is_followed_or_not(info, seen, holds):
    one = only(settings(info))
    assert (one.topic, one.declared, one.seen, one.holds) == ("setting dtype", "bfloat16", seen, holds)
    assert one.matters is (holds is False)
    assert settings(info, started_here=False) == [], "nobody set it"


@pytest.mark.parametrize(
    ("answer", "seen", "then"),
    [
        (
            answered("x" * 16, finish="length"),
            "cut off at 16 tokens",
            "none needed: every request names one",
        ),
        (answered("x" * 16, finish="stop"), "no default seen", ""),
        (answered("x", finish="length", completion_tokens=1024), "no default seen", ""),
        (Seen(0, error="late"), "no default seen", ""),
    ],
)
def test_a_default_of_max_tokens_is_seen_where_an_answer_is_cut(answer, seen, then):
    asked = asker(answer)
    one = only(traps.default_length(asked))
    assert (one.seen, one.holds, one.then) == (seen, None, then)
    assert not {"max_tokens", "max_completion_tokens"} & asked.line.asked[0].keys()
    assert list(traps.default_length(asker(answer, thorough=False))) == []


def context(answer, *, tokens=600, **how):
    asked = asker(answer, definition(engine={"values": {"context_tokens": 4096}}), **how)
    return list(traps.cut_prompt(LongPrompt.new(asked), answered(prompt_tokens=tokens)))


def test_a_prompt_that_fits_is_read_whole_or_cut():
    """Of 4096 tokens 80% are filled; nine tenths of those have to be counted."""
    whole = only(context(answered(prompt_tokens=2949)))
    assert (whole.seen, whole.holds) == ("a prompt of about 3276 tokens was read whole", True)
    cut = only(context(answered(prompt_tokens=2948)))
    assert (cut.seen, cut.holds, cut.matters) == (
        "a prompt of about 3276 tokens was read as 2948",
        False,
        True,
    )
    refused = only(context(Seen(400, error="too long")))
    assert (refused.seen, refused.holds, refused.matters) == ("400: too long", False, True)
    late = only(context(Seen(0, error="late")))
    assert (late.holds, late.matters) == (None, False)
    assert context(answered(), thorough=False) == []
    assert context(answered(), tokens=-1) == []


def test_the_prompt_is_as_long_as_it_is_said_to_be():
    lines = []

    def answer(body):
        lines.extend(body["messages"][0]["content"].splitlines())
        return answered(prompt_tokens=3276)

    context(answer, tokens=610)
    assert len(lines) == 61 * 3276 // 610
