"""When an engine need not be asked more questions, and how far the asking is."""

import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from msgspec import structs

from harness.agreement import compare, interleaved, made_questions
from harness.errors import SetupError
from harness.model import AskedBackend, AskedCondition, StoredAnswer
from harness.records.layout import Outcome
from harness.run.measure import agreement_answers
from harness.run.measure.agreement_answers import Asking, _answers, _enough, _show_progress, ask_all
from tests.factories.progress import progress
from tests.factories.recorded import records

QUESTIONS = interleaved(made_questions(300))
THIRD = QUESTIONS[:100]


def asked(questions, wrong):
    """The first question of so many is wrong."""
    return AskedCondition(
        concurrency=1,
        answers={
            question.id: StoredAnswer(
                text="no idea" if place % wrong == 0 else question.answer or question.accept[0],
                finish_reason="stop",
                outcome="ok",
                error=None,
                prompt_tokens=9,
                output_tokens=5,
            )
            for place, question in enumerate(questions)
        },
    )


def backend(condition):
    return AskedBackend(unloaded=condition, saturated=condition)


def test_a_third_engine_is_asked_until_it_is_decided_against_the_second_too():
    """It is worse than the first, which a third of the questions shows; the second is about as bad."""
    sound, bad, third = asked(QUESTIONS, 1000), asked(QUESTIONS, 2), asked(THIRD, 3)
    assert _enough(QUESTIONS, third, [], Asking(others=[backend(sound)], backends=2))
    others = [backend(sound), backend(bad)]
    assert not _enough(QUESTIONS, third, [], Asking(others=others, backends=3))
    assert not _enough(QUESTIONS, third, [], Asking(others=others[::-1], backends=3))
    stopped = [backend(sound), backend(asked(THIRD, 2))]  # nothing more compares
    assert _enough(QUESTIONS, third, [], Asking(others=stopped, backends=3))


@pytest.mark.parametrize(("backends", "enough"), [(2, True), (40, False)])
def test_the_more_backends_are_to_be_compared_the_surer_a_verdict_must_be(backends, enough):
    sound, worse = asked(QUESTIONS, 1000), asked(THIRD, 8)
    assert _enough(QUESTIONS, worse, [], Asking(others=[backend(sound)], backends=backends)) is enough
    itself = Asking(others=[backend(worse)], backends=backends)  # the others have no more to compare
    assert _enough(QUESTIONS, worse, [sound], itself) is enough


@dataclass
class Job:
    questions: list
    duration_s: float = 0.0


@pytest.fixture
def a_second_each(monkeypatch):
    """An engine that takes a second for a question, under load half of it for two wrong answers of nine."""
    state = SimpleNamespace(now_s=0.0, conditions=0, lost_workers=0)

    def run_load(job, _show, _stop):
        came = job.questions[: int(job.duration_s) * state.conditions]
        state.now_s += len(came) / state.conditions
        return SimpleNamespace(interrupted=False, client=state, records=came)

    def answers(_questions, came):
        wrong = [question for place, question in enumerate(QUESTIONS) if place % 9 in (0, 4)]
        loaded = state.conditions == 2
        return {
            question.id: StoredAnswer(
                text="no idea" if loaded and question in wrong else question.answer or question.accept[0],
                **dict.fromkeys(("finish_reason", "error", "prompt_tokens", "output_tokens")),
                outcome="ok",
            )
            for question in came
        }

    def reset():
        state.conditions += 1

    monkeypatch.setattr(agreement_answers, "time", SimpleNamespace(monotonic=lambda: state.now_s))
    monkeypatch.setattr(agreement_answers, "_job", lambda _, __, part, *_rest: (Job(part), range(len(part))))
    monkeypatch.setattr(agreement_answers, "run_load", run_load)
    monkeypatch.setattr(agreement_answers, "_answers", answers)
    return SimpleNamespace(reset_prefix_cache=reset, state=state)


def test_a_slow_engine_is_asked_until_its_verdicts_at_the_looks_of_all_questions(a_second_each):
    """It comes to 60 questions, which are all of the first look: 9 of 40 are no loss there, 14 of 60 are."""
    sound = backend(asked(QUESTIONS, 1000))
    asking = Asking(limit_s=60, others=[sound], backends=2)
    slow = ask_all(None, a_second_each, QUESTIONS, print, threading.Event(), asking)
    assert len(slow.unloaded.answers) == len(slow.saturated.answers) == 60
    assert (slow.unloaded.concurrency, slow.saturated.concurrency) == (1, 60)
    *_, itself = compare(QUESTIONS, {"sound": sound, "slow": slow}).accuracy
    assert (itself.a, itself.lost, itself.compared, itself.verdict) == ("slow", 14, 60, "loses")
    most = structs.replace(slow.saturated, answers=dict([*slow.saturated.answers.items()][:40]))
    *_, itself = compare(QUESTIONS, {"sound": sound, "slow": structs.replace(slow, saturated=most)}).accuracy
    assert (itself.lost, itself.compared, itself.verdict) == (9, 40, "undecided")


def test_an_engine_whose_time_is_over_is_asked_no_more_under_load(a_second_each):
    """The one before it was as slow, so that nothing more compares."""
    short = backend(asked(QUESTIONS[:60], 1000))
    asking = Asking(limit_s=60, others=[short], backends=2)
    slow = ask_all(None, a_second_each, QUESTIONS, print, threading.Event(), asking)
    assert slow.unloaded.answers.keys() == slow.saturated.answers.keys() == short.unloaded.answers.keys()


def test_what_the_load_generator_lacks_is_no_answer_of_the_engine(a_second_each):
    came = records({"texts": [1]}, {"texts": [], "outcome": Outcome.NO_SOCKET})
    assert _answers(dict(enumerate(QUESTIONS[:2])), came).keys() == {QUESTIONS[0].id}
    a_second_each.state.lost_workers = 1
    with pytest.raises(SetupError, match="a load worker died"):
        ask_all(None, a_second_each, QUESTIONS, print, threading.Event())


def test_an_answer_is_what_came_after_its_reasoning():
    came = records({"texts": [1, 2, 3], "thoughts": 2}, {"texts": [1]})
    found = _answers(dict(enumerate(QUESTIONS[:2])), came)
    assert [found[question.id].text for question in QUESTIONS[:2]] == [came.texts[0][-3:], came.texts[1]]


@pytest.mark.parametrize(
    ("ahead", "places", "done", "shown"),
    [(0, range(40), 28, 28), (40, range(39), 0, 40), (40, range(39), 39, 79), (40, [3, 4, 6], 5, 42)],
)
def test_progress_is_of_all_questions_and_of_no_request_of_the_load(ahead, places, done, shown):
    texts = []
    _show_progress(texts.append, "c4", ahead, places, 118, progress(done=done))
    assert texts == [f"agreement questions, c4 ({shown} of 118)"]
