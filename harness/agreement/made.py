"""Questions made from a seed, as many as are wanted: enough of them that a small loss is seen.

Each kind has several forms, from what a small model can do to what needs care, so that some are right and
some wrong whatever the model: only those on the edge show a loss. Equal seeds make equal questions.
"""

import json
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from random import Random

from harness.agreement.questions import Question
from harness.workload.prompts.topics import TOPICS
from harness.workload.prompts.words import NOUNS

SEED = 0
LETTERS = "ABCD"
_NAMES = "Ada Ben Cara Dan Eva Finn Gina Hugo Ida Jan Kira Leo Mia Nils Olga Paul Rosa Sam Tina Uwe".split()
_CITIES = "Athens Berlin Cairo Dublin Geneva Lima London Madrid Milan Oslo Paris Prague Rome Tokyo".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_THINGS = "apples books chairs coins cups keys maps pens shirts tickets".split()
_WORDS_OF_FILLER = (80, 160, 320, 480)

Maker = Callable[[str, Random], Question]


def made_questions(count: int, seed: int = SEED) -> tuple[Question, ...]:
    """Makes the questions, in the order of asking: one of each kind in turn. No two of one seed are alike."""
    random = Random(f"questions {seed}")
    questions: dict[str, Question] = {}
    makers = cycle(_MAKERS.items())
    while len(questions) < count:
        kind, maker = next(makers)
        question = maker(f"{kind}-{seed}-{len(questions)}", random)
        questions.setdefault(question.ask + question.needle, question)
    return tuple(islice(questions.values(), count))


def _arithmetic(name: str, random: Random) -> Question:
    a, b = random.randint(2, 99), random.randint(2, 99)
    who, thing = random.choice(_NAMES), random.choice(_THINGS)
    forms = (
        (f"What is {a} + {b}?", a + b),
        (f"What is {max(a, b)} - {min(a, b)}?", abs(a - b)),
        (f"What is {a % 11 + 2} times {b % 11 + 2}?", (a % 11 + 2) * (b % 11 + 2)),
        (f"{who} has {a + b} {thing} and gives {b} of them away. How many {thing} are left?", a),
        (f"{who} has {a} {thing} and buys {b} more. How many {thing} does {who} have now?", a + b),
        (f"Which number comes next: {a}, {a + 2}, {a + 4}, {a + 6}?", a + 8),
    )
    ask, answer = random.choice(forms)
    return Question(
        name, "arithmetic", f"{ask} Answer with the number only.", "number", str(answer), max_tokens=16
    )


def _extraction(name: str, random: Random) -> Question:
    who, other = random.sample(_NAMES, 2)
    city, day, thing = random.choice(_CITIES), random.choice(_DAYS), random.choice(_THINGS)
    number, order = random.randint(3, 98), random.randint(1000, 9999)
    text = (
        f"On {day} {who} sent {number} {thing} to {other} in {city}. The order has the number {order}. "
        f"{other} will pay next week."
    )
    forms = (
        ("Who sent the order?", who),
        ("Who will pay?", other),
        ("To which city was the order sent?", city),
        ("On which day was the order sent?", day),
        (f"How many {thing} were sent?", str(number)),
        ("What is the number of the order?", str(order)),
    )
    ask, answer = random.choice(forms)
    whole = f"{text}\n\n{ask} Answer with one word or number from the text."
    if answer.isdigit():
        return Question(name, "extraction", whole, "number", answer, max_tokens=16)
    wrong = {who, other, city, day} - {answer}
    refuse = tuple(sorted(wrong))
    return Question(name, "extraction", whole, "word", accept=(answer,), refuse=refuse, max_tokens=16)


def _choice(name: str, random: Random) -> Question:
    topic, strange = random.sample(sorted(TOPICS), 2)
    numbers = random.sample(range(10, 99), len(LETTERS))
    known, belongs = random.sample(TOPICS[topic], 2)
    others = random.sample(TOPICS[strange], len(LETTERS) - 1)
    forms = (
        ("Which of these numbers is the largest?", str(max(numbers)), [str(number) for number in numbers]),
        ("Which of these numbers is the smallest?", str(min(numbers)), [str(number) for number in numbers]),
        (f"Which of these words goes with {topic}, as {known} does?", belongs, [belongs, *others]),
    )
    ask, answer, options = random.choice(forms)
    random.shuffle(options)
    lines = "\n".join(f"{letter}) {option}" for letter, option in zip(LETTERS, options, strict=True))
    whole = f"{ask}\n{lines}\nAnswer with the letter only."
    return Question(name, "choice", whole, "letter", LETTERS[options.index(answer)], max_tokens=8)


def _structured(name: str, random: Random) -> Question:
    who, city = random.choice(_NAMES), random.choice(_CITIES)
    number, thing = random.randint(2, 98), random.choice(_THINGS)
    forms: Sequence[tuple[str, dict[str, object]]] = (
        (f"{who} lives in {city}.", {"name": who, "city": city}),
        (f"{who} is {number} years old.", {"name": who, "age": number}),
        (f"{who} from {city} has {number} {thing}.", {"name": who, "city": city, thing: number}),
    )
    answer, value = random.choice(forms)
    example = '{"name": "Zoe", "size": 7}'
    keys = ", ".join(value)
    whole = (
        f"Write a JSON object on one line, such as {example}, with the keys {keys}, for this sentence: "
        f"{answer} Answer with the JSON only."
    )
    return Question(name, "structured", whole, "json", json.dumps(value), max_tokens=48)


def _retrieval(name: str, random: Random) -> Question:
    noun, number = random.choice(NOUNS), random.randint(1000, 9999)
    return Question(
        name,
        "retrieval",
        f"What is the secret number of the {noun}? Answer with the number only.",
        "number",
        str(number),
        haystack=random.choice(_WORDS_OF_FILLER),
        needle=f"The secret number of the {noun} is {number}.",
        depth=round(random.random(), 2),
        max_tokens=16,
    )


_MAKERS: dict[str, Maker] = {
    "arithmetic": _arithmetic,
    "extraction": _extraction,
    "choice": _choice,
    "structured": _structured,
    "retrieval": _retrieval,
}
