"""Answers that give their own prompts back, and answers that rightly quote them."""

from dataclasses import replace

import pytest

from harness.records.layout import Outcome, Phase
from harness.run.measure.echoes import echoed
from harness.workload.prompts.request import ChatRequest
from tests.factories.recorded import records

SYSTEM = "You correct the spelling of texts, and you answer with the corrected text alone."
QUESTION = "Teh river flows throuhg the old town, and under a stone bridge that nobody crosses any more."
CHAT = (("system", SYSTEM), ("user", QUESTION))
ANSWER = " The river flows through the old town."


def answering(texts, *rows):
    made = replace(records(*rows or [{"texts": [0, 1]}] * len(texts)), texts=texts)
    made.requests["output_chars"] = [len(text) for text in texts]
    return made


def count(text, messages=CHAT, **fields):
    made = answering(["It is Monday.", text])
    asked = [ChatRequest(messages, 5), ChatRequest(messages, 5, **fields)]
    return echoed(made, asked)


@pytest.mark.parametrize(
    "text",
    [
        SYSTEM + QUESTION + ANSWER,
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>{ANSWER}",
        f"{SYSTEM}\n\n{QUESTION}",
        SYSTEM[:70],  # cut by a limit on its length
    ],
)
def test_a_prompt_that_is_given_back_is_counted(text):
    assert count(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        "",
        QUESTION + ANSWER,  # the text that was to be corrected
        SYSTEM + "\n\nThat is what I do: what is the text?",
        f"{QUESTION}\n{SYSTEM}",  # in another order
        f"I was asked this: {SYSTEM}",
    ],
)
def test_an_answer_may_quote_a_part_of_its_prompt(text):
    assert count(text) == 0


def test_space_around_a_message_is_none_of_it():
    """A chat template strips it."""
    around = tuple((role, f"\n {content}\n") for role, content in CHAT)
    assert count(SYSTEM + QUESTION, around) == 1


CODE = "from typing import List\n\n\ndef merged(first: List[int], second: List[int]) -> List[int]:\n"


@pytest.mark.parametrize(
    ("text", "echo"),
    [
        (f"Here is the function:\n\n```python\n{CODE}    return sorted(first + second)\n```", 0),
        (f"```\n{CODE}    return sorted(first + second)\n```", 0),
        (f"user\n{CODE}\nassistant\n```python\n{CODE}```", 1),
    ],
)
def test_a_model_repeats_the_code_that_it_completes(text, echo):
    assert count(text, (("user", CODE),)) == echo


def test_code_in_one_message_does_not_hide_the_next():
    fenced = (("system", f"Complete this in a block:\n```\n{CODE}```\nand explain it."), ("user", QUESTION))
    assert count("system\n{}\nuser\n{}".format(*(content for _, content in fenced)), fenced) == 1


def test_a_short_question_may_be_repeated():
    assert count("What is 7 and 5? It is 12.", (("user", "What is 7 and 5?"),)) == 0


def test_later_turns_have_more_before_them_than_their_own_messages():
    assert count(QUESTION + ANSWER, CHAT[1:], session=0, turn=1) == 0
    assert count(QUESTION + ANSWER, CHAT[1:], session=0) == 1


def test_only_measured_answers_that_are_whole_count():
    rows = {"texts": [0], "phase": Phase.WARMUP}, {"outcome": Outcome.TRUNCATED}
    assert echoed(answering([SYSTEM + QUESTION] * 2, *rows), [ChatRequest(CHAT, 5)] * 2) == 0
