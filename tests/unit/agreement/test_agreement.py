"""Scores worked out by hand, and what load can do to an answer."""

import dataclasses
import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from harness.agreement import (
    as_json,
    compare,
    from_json,
    interleaved,
    load_questions,
    messages_of,
    score,
    warnings,
)
from harness.agreement.questions import Question, _checked, sha256
from harness.agreement.score import CHANGES, change, fault, loops, right
from harness.errors import SpecError
from harness.metrics.answer_check import limited
from harness.model import Agreement, AskedBackend, AskedCondition, RightCount, StoredAnswer, Summary
from harness.report.findings.accuracy_words import MANY
from harness.report.tables.agreement_tables import agreement_tables
from tests.factories.documents import made

QUESTIONS = load_questions()


def answer(text, outcome="ok", prompt_tokens=20, finish_reason="stop"):
    return StoredAnswer(
        text=text,
        outcome=outcome,
        finish_reason=finish_reason,
        prompt_tokens=prompt_tokens,
        output_tokens=5,
        error=None,
    )


def question(check, **options):
    return Question("q", "facts", "?", check, **options)


def ideal(asked):
    """An answer that is right."""
    if asked.check == "form":
        return {
            "yes-or-no": "Yes.",
            "one-word": "Dog",
            "digits-only": "7",
            "comma-list": "red, green, blue",
            "json-object": '{"name": "Ann"}',
            "upper-case": "HELLO",
            "bullet-list": "- apple\n- pear",
            "numbered-list": "1. cat\n2. dog",
            "question-mark": "Who is there?",
            "date": "2024-03-05",
        }[asked.id]
    return f"It is {asked.accept[0]}." if asked.accept else asked.answer


def test_there_are_enough_questions_of_every_kind_and_each_can_be_answered():
    assert len(QUESTIONS) >= 50
    assert len({asked.id for asked in QUESTIONS}) == len(QUESTIONS)
    assert min(Counter(asked.kind for asked in QUESTIONS).values()) >= 8
    assert len(Counter(asked.kind for asked in QUESTIONS)) == 6
    for asked in QUESTIONS:
        assert right(asked, answer(ideal(asked))), asked.id
        assert not right(asked, answer("")), asked.id
        assert not right(asked, answer("Bananas are never 123 in <maybe>")), asked.id
        assert not right(asked, answer(ideal(asked), outcome="timeout")), asked.id


def test_some_of_the_questions_are_some_of_every_kind():
    order = interleaved(QUESTIONS)
    assert sorted(asked.id for asked in order) == sorted(asked.id for asked in QUESTIONS)
    assert len({asked.kind for asked in order[:6]}) == 6
    assert interleaved([]) == []


def test_the_question_itself_is_not_its_answer():
    """An engine that echoes the prompt must not score; copying is the exception that asks for it."""
    for asked in QUESTIONS:
        if asked.kind not in ("copying", "format", "memory", "retrieval"):
            assert not right(asked, answer(asked.ask)), asked.id


def test_memory_and_long_input_are_in_the_chat():
    for asked in QUESTIONS:
        messages = messages_of(asked)
        assert messages[-1][0] == "user"
        assert [role for role, _ in messages[:-1]] == ["user", "assistant"] * (len(messages) // 2)
        if asked.haystack:
            text = messages[-1][1]
            assert text.count(asked.needle) == 1
            place = text.index(asked.needle) / len(text)
            assert place == pytest.approx(asked.depth, abs=0.15)
            words = len(re.findall(r"\w+|\.", text))
            assert words == pytest.approx(asked.haystack, abs=35)
            assert not any(word in text.replace(asked.needle, "") for word in asked.accept)


def test_the_chats_never_change():
    assert sha256(QUESTIONS) == "80cf8b82c21dc3ffe6d31992e840de85882c798a524f06c94018c31a92798cfb"
    assert from_json(as_json(QUESTIONS)) == QUESTIONS


@pytest.mark.parametrize(
    ("asked", "text", "expected"),
    [
        (question("number", answer="12"), "3 times 4 is 12.", True),
        (question("number", answer="12"), "12 is 3 times 4", False),
        (question("number", answer="1200"), "That is 1,200", True),
        (question("number", answer="5"), "-5", False),
        (question("number", answer="5"), "−5", False),
        (question("number", answer="5"), "It is –5", False),
        (question("number", answer="10"), "2-4-6-8-10", True),
        (question("number", answer="1234"), "order-1234", True),
        (question("number", answer="1234"), "5–1234", True),
        (question("number", answer="-5"), "9-14=-5", True),
        (question("number", answer="10"), "2,4,6,8,10", True),
        (question("number", answer="100"), "6,8,100", True),
        (question("number", answer="8100"), "It is 8,100.", True),
        (question("number", answer="100000"), "1,00,000 people", True),
        (question("number", answer="1234567.5"), "12,34,567.5", True),
        (question("number", answer="5"), "0,5", False),
        (question("number", answer="5"), "It is 0,5, or so.", False),
        (question("number", answer="500"), "0,500", False),
        (question("number", answer="5"), "5,00 €", True),
        (question("number", answer="3"), "1,2,3", True),
        (question("number", answer="5.2"), "(1,5.2)", True),
        (question("number", answer="2"), "(1,5.2)", False),
        (question("number", answer="20.5"), "10,20.5", True),
        (question("number", answer="1.5"), "x is 1,1.5", True),
        (question("number", answer="3"), "2, 3", True),
        (question("number", answer="5"), "$5.00", True),
        (question("number", answer="42"), "４２", True),
        (question("number", answer="5"), "5.5", False),
        (question("word", accept=("Rome",)), "ROME!", True),
        (question("word", accept=("Rome",)), "Romeo", False),
        (question("word", accept=("Rome",)), "答案是Rome。", True),
        (question("word", accept=("рим",)), "Примерно", False),
        (question("word", accept=("Rome",)), "It is _Rome_.", True),
        (question("letter", answer="B"), "答案是B", True),
        (question("letter", answer="B"), "Bananas or B", True),
        (question("word", accept=("H2O", "H₂O")), "It is H₂O.", True),
        (question("text", answer="red, green"), ' "red,  green". ', True),
        (question("text", answer="red, green"), "Sure: red, green", False),
        (question("text", answer="Zoë"), "Zoe\u0308", True),
        (question("text", answer="Zoë"), "«\xa0Zoë\xa0».", True),
        (question("form", pattern="[A-Z]+"), "HELLO", True),
        (question("form", pattern="[A-Z]+"), "HELLO there", False),
    ],
)
def test_checks(asked, text, expected):
    assert right(asked, answer(text)) is expected


HOSTILE = [
    pytest.param("json", "```" + " " * 1_000_000 + "x", id="a fence that never closes"),
    pytest.param("word", "a" + "\u0315\u0300" * 100_000, id="marks in no order"),
    pytest.param("form", "1." * 100_000, id="a list of no lines"),
    pytest.param("number", "1," * 500_000, id="a number without end"),
]


@pytest.mark.parametrize(("check", "text"), HOSTILE)
def test_no_answer_takes_long_to_check(check, text):
    asked = question(check, answer="5", accept=("5",), pattern=r"(?s).*1[.)] ?[^\n]+\n+2[.)] ?[^\n]+.*")
    with limited(5):
        assert not right(asked, answer(text))


def test_questions_of_others_are_taken_or_refused(monkeypatch):
    monkeypatch.setattr(score, "MOST_S", 0.05)
    with pytest.raises(SpecError, match="takes too long"):
        right(question("form", pattern="(a|a)*b"), answer("a" * 40))
    for odd in (
        {"check": "form", "pattern": "("},
        {"check": "number", "answer": "five"},
        {"check": "json", "answer": "{"},
        {"check": "word", "accept": ["a"], "haystack": 1_000_000},
        {"check": "word", "accept": ["a"], "haystack": 10, "depth": 2.0},
    ):
        with pytest.raises(SpecError):
            from_json({"questions": [{"id": "q", "kind": "facts", "ask": "?", **odd}]})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer("fine"), None),
        (answer("", outcome="reset"), "failed"),
        (answer("", outcome="empty"), "empty"),
        (answer(" \n"), "empty"),
        (answer("caf\ufffd"), "garbled"),
        (answer("a\x00b"), "garbled"),
        (answer("a\uffffb"), "garbled"),
        (answer("a\ufdd0b"), "garbled"),
        (answer("\U0001faea \U000378aa"), None),  # some version of Python knows them, or will
        (answer("Zoë ate crème brûlée, 東京, 🙂\n"), None),
        (answer("no no no no no"), "repeated"),
        (answer("the big cat the big cat the big cat the big cat"), "repeated"),
        (answer("!" * 50), "repeated"),
        (answer("a, b, c, d, e, f"), None),
        (answer("very very very good"), None),
    ],
)
def test_faults(given, expected):
    assert fault(given) == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (answer("The sky is blue today."), "same"),
        (answer("The sky is"), "truncated"),
        (answer("The sky is red."), "reworded"),
        (answer(""), "empty"),
        (answer("The sky", outcome="truncated"), "failed"),
        (answer("The sk\ufffd"), "garbled"),
        (answer("The sky the sky the sky the sky the sky"), "repeated"),
    ],
)
def test_what_load_did_to_an_answer(after, expected):
    assert change(answer("The sky is blue today."), after) == expected


def test_what_was_wrong_before_is_not_the_loads_doing():
    looped = answer("no no no no no no")
    assert change(looped, answer("no no no no no no no")) == "reworded"
    assert change(answer("", outcome="empty"), answer("", outcome="empty")) == "same"
    assert change(answer("", outcome="reset"), answer("here I am")) == "reworded"
    assert change(answer("here I am", outcome="reset"), answer("here")) == "reworded"
    assert change(answer("", outcome="reset"), answer("", outcome="empty")) == "reworded"
    assert change(answer("", outcome="empty"), answer("", outcome="reset")) == "failed"
    assert change(answer("\ufffd"), answer("no no no no no no")) == "reworded"
    assert change(looped, answer("\ufffd")) == "garbled"


@given(st.text(), st.text(), st.sampled_from(["ok", "empty", "reset"]))
def test_any_text_is_scored(before, after, outcome):
    assert change(answer(before), answer(after, outcome)) in CHANGES
    for asked in QUESTIONS:
        assert right(asked, answer(after)) in (True, False)
    assert change(answer(before), answer(before)) == "same"


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 9))
@example([], 8)
@example([], 9)
def test_four_in_a_row_of_up_to_eight_words_are_a_loop(words, size):
    phrase = [f"w{i}" for i in range(size)]
    assert loops(" ".join([*words, *phrase * 4])) == (size <= 8 or loops(" ".join(words)))
    assert not loops(" ".join(phrase * 3))


def stored(texts, saturated=None, prompt_tokens=20):
    def answers(given):
        return {asked.id: answer(text, prompt_tokens=prompt_tokens) for asked, text in given.items()}

    return AskedBackend(
        unloaded=AskedCondition(concurrency=1, answers=answers(texts)),
        saturated=AskedCondition(concurrency=58, answers=answers(saturated or texts)),
    )


def test_backends_are_compared():
    good = {asked: ideal(asked) for asked in QUESTIONS}
    wrong = {asked: text if asked.kind == "facts" else "no idea" for asked, text in good.items()}
    harmed = {asked: "" if asked.kind == "memory" else text for asked, text in good.items()}
    found = compare(QUESTIONS, {"a": stored(good, harmed), "b": stored(wrong, prompt_tokens=23)})
    a, b = found.backends["a"], found.backends["b"]
    assert a.unloaded.right == len(QUESTIONS)
    assert b.unloaded.by_kind["facts"] == RightCount(asked=12, right=12)
    assert b.unloaded.by_kind["arithmetic"].right == 0
    assert a.under_load["empty"] == 8
    assert a.saturated.faults["empty"] == 8
    assert "memory-name" in a.changed["empty"]
    (pair,) = found.pairs
    assert pair.same_text == pair.both_right == 12
    assert pair.only_a_right == len(QUESTIONS) - 12
    assert pair.p_value < 1e-9
    assert pair.prompt_tokens_equal == 0
    assert pair.prompt_tokens_difference == 3

    told = {warning.code: warning.text for warning in warnings(found)}
    assert told["answers-harmed"].startswith(
        "a: with 58 questions at once: 8 empty; it loses 1.2 to 28.2 points (8"
    )
    assert told["answers-differ"].startswith("a is right in 46 questions where b is wrong, and wrong in 0")

    text = "\n".join(
        line for table in agreement_tables(made(Summary, agreement=found)) for line in table.lines(80)
    )
    assert "58/58" in text
    assert "12/58" in text
    assert "a / b" in text
    assert len(agreement_tables(made(Summary, agreement=found))) == 3


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("kinds", [[], ["choice", "extraction", "structured"]])
def test_no_table_of_answers_is_wider_than_the_terminal(columns, kinds):
    good = stored({asked: ideal(asked) for asked in QUESTIONS})
    names = ("sglang@no-prefix-cache-and-more", "http://gateway.example.internal:8000/v1")
    found = compare(QUESTIONS, dict.fromkeys(names, good))
    found = structs.replace(found, questions=MANY, kinds={**found.kinds, **dict.fromkeys(kinds, 20)})
    tables = agreement_tables(made(Summary, agreement=found))
    assert len(tables) == 5
    assert max(len(line) for table in tables for line in table.lines(columns)) <= columns


def test_both_tables_of_answers_under_load_name_the_same_load():
    """Of a slow engine, which is asked fewer questions, and of another one."""
    good = {asked: ideal(asked) for asked in QUESTIONS}
    found = compare(QUESTIONS, {"slow": stored(good), "b": stored(good)})
    slow = found.backends["slow"]
    few = structs.replace(slow, saturated=structs.replace(slow.saturated, concurrency=4))
    found = structs.replace(found, questions=MANY, backends={**found.backends, "slow": few})
    _right, under_load, shares, *_ = agreement_tables(made(Summary, agreement=found))
    assert "58 at once" in under_load.title
    assert shares.head[-1] == "58 at once"


def test_one_backend_has_no_pairs_and_nobody_has_nothing():
    good = {asked: ideal(asked) for asked in QUESTIONS}
    assert len(agreement_tables(made(Summary, agreement=compare(QUESTIONS, {"a": stored(good)})))) == 2
    assert compare(QUESTIONS, {}) is None
    assert agreement_tables(made(Summary, agreement=None)) == []


def test_equal_backends_have_no_split_to_judge():
    good = {asked: ideal(asked) for asked in QUESTIONS}
    (pair,) = compare(QUESTIONS, {"a": stored(good), "b": stored(good)}).pairs
    assert pair.p_value is None
    assert list(warnings(made(Agreement, pairs=[pair]))) == list(warnings(None)) == []
    assert pair.same_text == len(QUESTIONS)


def test_a_question_that_cannot_be_checked_is_an_error():
    with pytest.raises(SpecError, match="has no check"):
        _checked(question("word"), "")
    with pytest.raises(SpecError, match="last turn must be"):
        _checked(dataclasses.replace(QUESTIONS[0], turns=("one",)), "")


def disagreement(a, b):
    (pair,) = compare(QUESTIONS, {"a": a, "b": b}).pairs
    return pair.disagreement


def wrong_in(count):
    return {asked: ideal(asked) if place >= count else "no idea" for place, asked in enumerate(QUESTIONS)}


@pytest.mark.parametrize(
    ("apart", "own", "beyond"),
    [
        (0, 0, False),
        (4, 0, False),  # p 0.06 of 58 against 0 of 58
        (5, 0, True),
        (10, 10, False),
        (12, 6, False),
        (30, 10, True),
        (58, 58, False),
    ],
)
def test_answers_disagree_where_more_differ_than_load_changes(apart, own, beyond):
    steady, shaken = stored(wrong_in(0)), stored(wrong_in(apart), wrong_in(abs(apart - own)))
    found = disagreement(steady, shaken)
    assert (found.answers, found.own, found.own_asked) == (apart, own, len(QUESTIONS))
    assert found.beyond_load is beyond
    assert disagreement(shaken, steady).beyond_load is beyond


def test_other_words_for_the_same_answer_do_not_disagree():
    good = {asked: ideal(asked) for asked in QUESTIONS}
    reworded = {
        asked: f"Well: {text}" if asked.check in ("number", "word") else text for asked, text in good.items()
    }
    found = disagreement(stored(good), stored(reworded))
    assert (found.answers, found.beyond_load) == (0, False)


@pytest.mark.parametrize(("fewer", "beyond"), [(10, False), (0, True)])
def test_the_order_of_the_backends_decides_nothing(fewer, beyond):
    """One came to few questions under load, or to none: then only the other shows what load does."""
    whole, most = stored(wrong_in(0)), stored(wrong_in(6))
    few = dict(list(most.saturated.answers.items())[:fewer])
    part = structs.replace(most, saturated=structs.replace(most.saturated, answers=few))
    found = disagreement(whole, part)
    assert found == disagreement(part, whole)
    assert (found.answers, found.own_asked, found.beyond_load) == (6, fewer or len(QUESTIONS), beyond)


def test_no_answer_is_not_the_same_answer():
    failed = {asked.id: answer("", outcome="http_error") for asked in QUESTIONS}
    condition = AskedCondition(concurrency=1, answers=failed)
    mute = AskedBackend(unloaded=condition, saturated=condition)
    found = compare(QUESTIONS, {"a": mute, "b": mute})
    (pair,) = found.pairs
    assert (pair.same_text, len(pair.different), pair.both_wrong) == (0, len(QUESTIONS), len(QUESTIONS))
    assert [(warning.code, warning.text) for warning in warnings(found)] == [
        ("agreement-missing", "a: no question was answered"),
        ("agreement-missing", "b: no question was answered"),
    ]


def test_answers_that_load_makes_wrong_and_no_worse_are_a_loss_alone():
    found = compare(QUESTIONS, {"a": stored(wrong_in(0), wrong_in(20))})
    (warning,) = warnings(found)
    assert warning.text.startswith("a: with 58 questions at once: it loses 14.7 to 55.3 points (14 lost, ")


def test_a_share_of_right_answers_is_of_the_questions_that_were_asked():
    asked = dict(list(wrong_in(5).items())[:20])
    found = compare(QUESTIONS, {"a": stored(asked)}).backends["a"].unloaded
    assert (found.asked, found.right, found.accuracy.estimate) == (20, 15, 0.75)


def test_answers_of_which_none_is_right_show_no_accuracy():
    mute = stored(dict.fromkeys(wrong_in(0), ""))
    found = compare(QUESTIONS, {"a": stored(wrong_in(58)), "b": mute})
    assert found.accuracy == ()
    assert [(warning.code, warning.text) for warning in warnings(found)] == [
        ("agreement-missing", "a: no question was answered correctly, so no loss can show"),
        ("agreement-missing", "b: no question was answered"),
    ]


def test_nothing_asked_is_no_disagreement():
    found = disagreement(stored({}), stored({}))
    assert (found.answers, found.p_value, found.beyond_load) == (0, None, False)
