"""A question, those of questions.toml, and the chat each is asked in."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from importlib import resources
from itertools import cycle
from operator import itemgetter
from random import Random
from typing import Literal
from zlib import crc32

from harness.errors import SpecError
from harness.model.grouping import grouped
from harness.spec.files import fingerprint
from harness.spec.strict import build
from harness.workload.prompts.request import Message
from harness.workload.prompts.text import TextMaker

Kind = Literal[
    "arithmetic", "facts", "format", "copying", "memory", "retrieval", "extraction", "choice", "structured"
]

_WHERE = "harness/agreement/questions.toml"
_MOST_WORDS = 1_000  # of a haystack


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    kind: Kind
    ask: str
    check: Literal["number", "word", "text", "form", "letter", "json"]
    answer: str = ""  # of every check but word and form; letter: the first of A to D that stands alone
    accept: tuple[str, ...] = ()  # of the check word
    refuse: tuple[str, ...] = ()  # words that make an answer of this check wrong
    pattern: str = ""  # of the check form
    turns: tuple[str, ...] = ()  # said before, the user's and the assistant's alternately
    haystack: int = 0  # words of filler before the question
    needle: str = ""
    depth: float = 0.0  # of the needle in the filler, 0 first to 1 last
    max_tokens: int = 32


def load_questions() -> tuple[Question, ...]:
    """Each with its kind's limit of tokens."""
    text = resources.files("harness.agreement").joinpath("questions.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    limits = table["limits"]
    asked = ({**question, "max_tokens": limits[question["kind"]]} for question in table["question"])
    return tuple(_checked(build(Question, question, _WHERE), _WHERE) for question in asked)


def interleaved(questions: Sequence[Question]) -> list[Question]:
    """Sorts so that a part of the questions has the same share of every kind.

    The order inside a kind is drawn, and does not depend on the order that they are given in.
    """
    drawn = sorted(questions, key=lambda asked_one: (crc32(asked_one.id.encode()), asked_one.id))
    kinds = grouped((question.kind, question) for question in drawn)
    places = [
        ((rank + 0.5) / len(of_kind), kind, question)
        for kind, of_kind in kinds.items()
        for rank, question in enumerate(of_kind)
    ]
    return [question for _, _, question in sorted(places, key=itemgetter(0, 1))]


def as_json(questions: Sequence[Question]) -> dict[str, object]:
    """Includes their hash, to be kept with the answers."""
    return {"sha256": sha256(questions), "questions": [asdict(question) for question in questions]}


def from_json(stored: Mapping[str, object]) -> tuple[Question, ...]:
    """Reads the result of `as_json`. Raises SpecError for anything else, or what nobody can be asked."""
    where, asked = "agreement/questions.json", stored.get("questions")
    if not isinstance(asked, list):
        raise SpecError("has no questions", where=where)
    return tuple(_checked(build(Question, question, where), where) for question in asked)


def sha256(questions: Sequence[Question]) -> str:
    return fingerprint([messages_of(question) for question in questions])


def messages_of(question: Question) -> tuple[Message, ...]:
    """Equal for every backend and every run."""
    turns = tuple(zip(cycle(("user", "assistant")), question.turns, strict=False))
    ask = f"{_haystack(question)}\n\n{question.ask}" if question.haystack else question.ask
    return (*turns, ("user", ask))


def _haystack(question: Question) -> str:
    (filler,) = TextMaker(None).make([question.haystack], Random(question.id))
    sentences = re.findall(r"[^.]+\.", filler)
    index = round(question.depth * len(sentences))
    return " ".join(text.strip() for text in (*sentences[:index], question.needle, *sentences[index:]))


def _checked(question: Question, where: str) -> Question:
    held_to = {"word": question.accept, "form": question.pattern}.get(question.check, question.answer)
    if not held_to:
        raise SpecError(f"question '{question.id}' has no check", where=where)
    try:
        re.compile(question.pattern)
        if question.check == "number":
            Decimal(question.answer)
        elif question.check == "json":
            json.loads(question.answer)
    except (re.error, ArithmeticError, ValueError, RecursionError):
        raise SpecError(f"question '{question.id}' cannot be checked", where=where) from None
    if len(question.turns) % 2:
        raise SpecError(f"question '{question.id}': the last turn must be the assistant's", where=where)
    if not (0 <= question.haystack <= _MOST_WORDS and 0 <= question.depth <= 1):
        raise SpecError(f"question '{question.id}': no such haystack can be made", where=where)
    return question
