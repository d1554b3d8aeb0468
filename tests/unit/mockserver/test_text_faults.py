"""Answers that look whole and are worth nothing."""

from collections import Counter

import pytest

from harness.mockserver.faults import TEXT_KINDS, Fault, struck_words
from harness.mockserver.script import VOCABULARIES, first_word, text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("one-token", ("!",)),
        ("no-text", ("Hi", "", "")),
        ("echo", ("What", " is", "7")),
        ("error-text", ()),  # it ends by itself, and is no repeated text
        ("wrong-usage", ()),
    ],
)
def test_the_words_of_a_struck_answer(kind, words):
    assert struck_words(Fault(kind), ("What", " is", 7), 3) == words


def test_one_text_for_every_prompt_is_that_of_no_question():
    assert struck_words(Fault("same-text"), ("a",), 3) == struck_words(Fault("same-text"), ("b",), 3)
    assert {Fault.parse(kind).kind for kind in TEXT_KINDS} == set(TEXT_KINDS)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_equal_questions_have_equal_answers_and_others_other_ones(vocabulary):
    begins = [first_word(f"What is {number}?") for number in range(100)]
    assert first_word("What is 1?") == begins[1]
    texts = Counter(text(vocabulary, begin, begin + 48) for begin in begins)
    assert len(texts) > 40
    assert max(texts.values()) < 8  # else the server looks like one that answers all alike
