"""When an engine need not be asked more questions, and how far the asking is."""

import pytest

from harness.agreement import interleaved, made_questions
from harness.model import AskedBackend, AskedCondition, StoredAnswer
from harness.run.measure.agreement_answers import Asking, _answers, _enough, _show_progress
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


def test_an_answer_is_what_came_after_its_reasoning():
    came = records({"texts": [1, 2, 3], "thoughts": 2}, {"texts": [1]})
    found = _answers(dict(enumerate(QUESTIONS[:2])), came)
    assert [found[question.id].text for question in QUESTIONS[:2]] == ["abc", "abc"]


@pytest.mark.parametrize(
    ("ahead", "places", "done", "shown"),
    [(0, range(40), 28, 28), (40, range(39), 0, 40), (40, range(39), 39, 79), (40, [3, 4, 6], 5, 42)],
)
def test_progress_is_of_all_questions_and_of_no_request_of_the_load(ahead, places, done, shown):
    texts = []
    _show_progress(texts.append, "c4", ahead, places, 118, progress(done=done))
    assert texts == [f"agreement questions, c4 ({shown} of 118)"]
