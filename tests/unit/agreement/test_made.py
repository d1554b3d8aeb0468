"""Questions from a seed: alike everywhere, answerable, of every kind from the first ones on."""

import json
import re
from collections import Counter

import pytest

from harness.agreement import compare, decided, interleaved, load_questions, made_questions, messages_of
from harness.agreement.questions import Question, sha256
from harness.agreement.score import right
from harness.model import AskedBackend, AskedCondition, LoadPoint, StoredAnswer, Summary
from harness.report.findings.accuracy_words import accuracy_lines
from harness.report.tables.agreement_tables import agreement_tables
from harness.stats.paired import LEVEL, LOOKS
from tests.factories.documents import made

QUESTIONS = made_questions(600)


def answer(text):
    return StoredAnswer(
        text=text, outcome="ok", finish_reason="stop", prompt_tokens=9, output_tokens=5, error=None
    )


def ideal(question):
    return question.answer or question.accept[0]


def asked(questions, wrong=(), load=None):
    answers = {one.id: answer("no idea" if one.id in wrong else ideal(one)) for one in questions}
    more = {"load": load} if load else {}
    return AskedCondition(concurrency=1, answers=answers, **more)


def test_a_seed_makes_the_same_questions_everywhere():
    assert sha256(QUESTIONS) == "b7d9cabd9297f30b328dec06e14f7f29cb8f97aa81d081db2c4d0c04e1ed2bc2"
    assert made_questions(100) == QUESTIONS[:100]
    assert sha256(made_questions(20, seed=1)) != sha256(QUESTIONS[:20])


def test_every_one_is_different_and_can_be_answered():
    assert len({messages_of(one) for one in QUESTIONS}) == len({one.id for one in QUESTIONS}) == 600
    for one in QUESTIONS:
        assert right(one, answer(ideal(one))), one
        assert not right(one, answer("")), one
        assert not right(one, answer("Bananas are never <maybe>")), one


SUMS = {
    r"What is (\d+) \+ (\d+)\?": lambda a, b: a + b,
    r"What is (\d+) - (\d+)\?": lambda a, b: a - b,
    r"What is (\d+) times (\d+)\?": lambda a, b: a * b,
    r"has (\d+) \w+ and gives (\d+) of them away": lambda a, b: a - b,
    r"has (\d+) \w+ and buys (\d+) more": lambda a, b: a + b,
    r"comes next: \d+, \d+, (\d+), (\d+)\?": lambda a, b: b + (b - a),
}
ORDER = r"On (\w+) (\w+) sent (\d+) \w+ to (\w+) in (\w+)\. The order has the number (\d+)\."
PARTS = ("On which day", "Who sent", "How many", "Who will pay", "To which city", "What is the number")


def of_kind(kind):
    return [one for one in QUESTIONS if one.kind == kind]


def test_sums_have_the_right_answer():
    seen = set()
    for one in of_kind("arithmetic"):
        ((form, found),) = ((form, found) for form in SUMS if (found := re.search(form, one.ask)))
        assert one.answer == str(SUMS[form](*map(int, found.groups()))), one
        seen.add(form)
    assert seen == set(SUMS)


def test_what_is_asked_of_an_order_stands_in_it():
    seen = set()
    for one in of_kind("extraction"):
        ((part, value),) = (
            (part, value)
            for part, value in zip(PARTS, re.match(ORDER, one.ask).groups(), strict=True)
            if f"\n{part}" in one.ask
        )
        assert ideal(one) == value, one
        seen.add(part)
    assert seen == set(PARTS)


@pytest.mark.parametrize(("asked", "wanted"), [("largest", max), ("smallest", min)])
def test_the_letter_is_that_of_the_number(asked, wanted):
    some = [one for one in of_kind("choice") if asked in one.ask]
    assert some
    for one in some:
        letters = {int(number): letter for letter, number in re.findall(r"(\w)\) (\d+)", one.ask)}
        assert one.answer == letters[wanted(letters)], one


def test_any_beginning_has_the_same_share_of_every_kind():
    order = interleaved((*load_questions(), *QUESTIONS))
    assert order == interleaved((*QUESTIONS, *load_questions()))
    whole = Counter(one.kind for one in order)
    begun = Counter(one.kind for one in order[:220])
    assert all(abs(begun[kind] - count / 3) <= 1 for kind, count in whole.items())
    assert {one.kind for one in QUESTIONS} == {
        "arithmetic",
        "extraction",
        "choice",
        "structured",
        "retrieval",
    }


@pytest.mark.parametrize(
    ("check", "expected", "text", "verdict"),
    [
        ("letter", "B", "B", True),
        ("letter", "B", "The answer is B) 12.", True),
        ("letter", "B", "A or B", False),
        ("letter", "B", "Bananas", False),
        ("json", '{"a": 1}', '{"a":1}', True),
        ("json", '{"a": 1}', '```json\n{"a": 1}\n```', True),
        ("json", '{"a": 1}', '```JSON\n{"a": 1}```', True),
        ("json", '{"a": 1}', '```{"a": 1}```', False),
        ("json", '{"a": 1}', '{"a": "1"}', False),
        ("json", '{"a": 1}', "Here: {", False),
    ],
)
def test_checks_of_made_questions(check, expected, text, verdict):
    assert right(Question("q", "choice", "?", check, expected), answer(text)) is verdict


def test_naming_everybody_is_no_extraction():
    question = Question("q", "extraction", "?", "word", accept=("Ada",), refuse=("Ben",))
    assert right(question, answer("It was Ada."))
    assert not right(question, answer("Ada or Ben"))


def test_a_loss_under_load_alone_is_said_once_and_of_load():
    order = interleaved(QUESTIONS)
    wrong = {one.id for place, one in enumerate(order) if place % 12 == 0}
    c8 = LoadPoint("concurrency", 8)
    sound = AskedBackend(unloaded=asked(order), saturated=asked(order, load=c8))
    breaks = AskedBackend(unloaded=asked(order), saturated=asked(order, wrong, load=c8))
    found = compare(QUESTIONS, {"sound": sound, "breaks": breaks})
    said = {(one.a, one.b, one.under_load): one.verdict for one in found.accuracy}
    assert said == {
        ("sound", "breaks", False): "same",
        ("sound", "breaks", True): "loses",
        ("sound", "sound", True): "same",
        ("breaks", "breaks", True): "loses",
    }
    assert found.backends["breaks"].saturated.accuracy.estimate == pytest.approx(1 - 50 / 600)
    summary = made(Summary, agreement=json.loads(json.dumps(_plain(found))))
    lines = list(accuracy_lines(summary))
    assert lines[0].startswith("accuracy, one at a time: breaks against sound: as accurate")
    assert "between requests of c8: breaks against sound: loses" in lines[1]
    tables = {table.title: table for table in agreement_tables(summary)}
    assert "between requests of c8" in tables["accuracy: % right, with 95% intervals"].head


def test_one_wrong_answer_of_six_hundred_is_not_all_right():
    order = interleaved(QUESTIONS)
    slips = AskedBackend(unloaded=asked(order, {order[0].id}), saturated=asked(order))
    found = compare(QUESTIONS, {"slips": slips})
    summary = made(Summary, agreement=json.loads(json.dumps(_plain(found))))
    tables = {table.title: table for table in agreement_tables(summary)}
    (_, first, second), *_rest = tables["accuracy: % right, with 95% intervals"].rows
    assert first.startswith("99.8 (")
    assert second.endswith(" to 100)")
    assert second.startswith("100 (")


def test_a_backend_alone_is_held_to_itself_from_few_questions_on():
    some = interleaved(QUESTIONS[:110])
    alone = AskedBackend(unloaded=asked(some), saturated=asked(some, load=LoadPoint("concurrency", 4)))
    summary = made(Summary, agreement=json.loads(json.dumps(_plain(compare(some, {"one": alone})))))
    (line,) = accuracy_lines(summary)
    assert line.startswith("accuracy, between requests of c4: one as accurate: ")
    assert line.endswith("(0 lost, 0 gained of 110), against itself one at a time")


def test_pairs_and_backends_each_share_the_level():
    few = interleaved(QUESTIONS)[:20]
    one = AskedBackend(unloaded=asked(few), saturated=asked(few))
    found = compare(few, dict.fromkeys("abcd", one)).accuracy
    last = LOOKS[-1][1] * LEVEL
    assert [each.level for each in found if each.a != each.b] == pytest.approx([last / 6] * 12)
    assert [each.level for each in found if each.a == each.b] == pytest.approx([last / 4] * 4)


def test_a_backend_that_is_never_right_is_named_and_compared_with_none():
    some = interleaved(QUESTIONS[:110])
    never = AskedBackend(unloaded=asked(some, {one.id for one in some}), saturated=asked(some[:0]))
    summary = made(Summary, agreement=json.loads(json.dumps(_plain(compare(some, {"one": never})))))
    assert [*accuracy_lines(summary)] == ["accuracy, one at a time: one answered no question correctly"]
    assert [table.title for table in agreement_tables(summary) if "accuracy: the first" in table.title] == []


def test_asking_ends_where_the_verdict_does():
    order = interleaved(QUESTIONS)
    half = {one.id for one in order[::2]}
    begun = asked(order[:200], half)
    assert decided(order, asked(order), begun, 0.05)
    assert not decided(order, asked(order), asked(order[:20], set(list(half)[:2])), 0.05)


def _plain(document):
    from harness.model import as_json

    return as_json(document)
