"""One answer: right or not, and what is visibly wrong with it. Pure, and the same on every machine."""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from harness.agreement.questions import Question
from harness.model import StoredAnswer

# What an answer can become under load, the worst first.
Change = Literal["failed", "empty", "truncated", "garbled", "repeated", "reworded", "same"]
CHANGES: tuple[Change, ...] = ("failed", "empty", "truncated", "garbled", "repeated", "reworded", "same")
FAULTS = ("failed", "empty", "garbled", "repeated")

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_LETTER = re.compile(r"(?<!\w)[A-D](?!\w)")
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_AROUND = " \t\r\n\"'`“”‘’*."
_REPEATS = 4  # a phrase this often in a row is a loop
_PHRASE_WORDS = 8


def right(question: Question, answer: StoredAnswer) -> bool:
    text = unicodedata.normalize("NFC", answer.text).strip()
    if answer.outcome != "ok":
        return False
    if question.check == "number":
        numbers = _NUMBER.findall(text)
        return bool(numbers) and numbers[-1].replace(",", "") == question.answer
    if question.check == "word":
        return _has(text, question.accept) and not _has(text, question.refuse)
    if question.check == "letter":
        return _LETTER.findall(text)[:1] == [question.answer]
    if question.check == "json":
        return bool(_json(text) == json.loads(question.answer))
    if question.check == "text":
        return _bare(text) == _bare(question.answer)
    return re.fullmatch(question.pattern, text) is not None


def _has(text: str, words: Sequence[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


def _json(text: str) -> object:
    """The whole answer, or what stands in its fence, as JSON; None if it is not JSON."""
    try:
        return json.loads(_FENCE.sub(r"\1", text))
    except (ValueError, RecursionError):
        return None


def fault(answer: StoredAnswer) -> str | None:
    """The first of FAULTS that it has."""
    if answer.outcome not in ("ok", "empty"):
        return "failed"
    text = answer.text
    if not text.strip():
        return "empty"
    if any(_garbage(character) for character in text):
        return "garbled"
    return "repeated" if loops(text) else None


def change(before: StoredAnswer, after: StoredAnswer) -> Change:
    """The change from the answer `before` to `after`, which was given under load."""
    fault_after, known = fault(after), fault(before)
    if fault_after in ("failed", "empty"):
        return "same" if fault_after == known else "failed" if fault_after == "failed" else "empty"
    if after.text == before.text:
        return "same"
    if before.text.startswith(after.text):
        return "truncated"
    if fault_after == "garbled" and known != fault_after:
        return "garbled"
    return "repeated" if fault_after == "repeated" and known != fault_after else "reworded"


def loops(text: str) -> bool:
    """A phrase of up to eight words four times in a row, or a sign forty times."""
    if re.search(r"(\S)\1{39}", text):
        return True
    words = text.split()
    for size in range(1, _PHRASE_WORDS + 1):
        run = 0
        for index in range(size, len(words)):
            run = run + 1 if words[index] == words[index - size] else 0
            if run >= size * (_REPEATS - 1):
                return True
    return False


def _garbage(character: str) -> bool:
    """Replacement signs, control signs, and what no language uses."""
    if character == "\N{REPLACEMENT CHARACTER}":
        return True
    return unicodedata.category(character) in ("Cc", "Cn", "Co", "Cs") and character not in "\n\r\t"


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND).split())
