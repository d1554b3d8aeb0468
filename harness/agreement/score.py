"""One answer: right or not, and what is visibly wrong with it. Pure, and the same on every machine."""

import json
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, get_args

from harness.agreement.questions import Question
from harness.errors import SpecError
from harness.metrics.answer_check import IN_WORD, MOST_S, NOT_JSON, inside_fence, limited, parsed
from harness.model import StoredAnswer

# What an answer can become under load, the worst first.
Change = Literal["failed", "empty", "truncated", "garbled", "repeated", "reworded", "same"]
CHANGES: tuple[Change, ...] = get_args(Change)
Fault = Literal["failed", "empty", "garbled", "repeated"]
FAULTS: tuple[Fault, ...] = get_args(Fault)

# Commas group the digits of a number: by three, in India by two before the last three. A single comma that
# does not is a decimal point; more of them stand between numbers. A hyphen behind a word or a number is no
# minus.
_NUMBER = re.compile(
    r"(?:(?<!\w)[-−–])?(?:(?<!\d,)(?!0)(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3})(?!\d)(?:\.\d+)?"
    r"|(?<!\d)(?<!\d,)\d+(?P<decimal>,)\d+(?![,.]?\d)"
    r"|\d+(?:\.\d+)?)"
)
_LETTER = re.compile(rf"(?<!{IN_WORD})[A-D](?!{IN_WORD})")
_AROUND = " \"'`“”„‘’«»*."
# Of an answer that can be right: 48 tokens have about 200. Some steps below take the square of it.
_MOST_CHARS = 10_000
_REPEATS = 4  # a phrase this often in a row is a loop
_PHRASE_WORDS = 8


def right(question: Question, answer: StoredAnswer) -> bool:
    """Raises SpecError for a pattern that matches without end, as only a folder of others has."""
    if answer.outcome != "ok" or len(answer.text) > _MOST_CHARS:
        return False
    text = unicodedata.normalize("NFC", answer.text).strip()
    if question.check == "number":
        numbers = [*_NUMBER.finditer(text)]
        return bool(numbers) and _value(numbers[-1]) == Decimal(question.answer)
    if question.check == "word":
        return _has(text, question.accept) and not _has(text, question.refuse)
    if question.check == "letter":
        return _LETTER.findall(text)[:1] == [question.answer]
    if question.check == "json":
        return bool(_json(text) == json.loads(question.answer))
    if question.check == "text":
        return _bare(text) == _bare(question.answer)
    try:
        with limited(MOST_S):
            return re.fullmatch(question.pattern, text) is not None
    except TimeoutError:
        raise SpecError(f"question '{question.id}': its pattern takes too long to match") from None


def _value(number: re.Match[str]) -> Decimal:
    comma = "." if number["decimal"] else ""
    return Decimal(re.sub("[−–]", "-", number[0].replace(",", comma)))


def _has(text: str, words: Sequence[str]) -> bool:
    patterns = (rf"(?<!{IN_WORD}){re.escape(word)}(?!{IN_WORD})" for word in words)
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _json(text: str) -> object:
    """The whole answer, or what stands in its fence, as JSON."""
    value = parsed(text)
    return parsed(inside_fence(text)) if value is NOT_JSON else value


def fault(answer: StoredAnswer) -> Fault | None:
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
    """The change from the answer `before` to `after`, which was given under load.

    An answer that was at least as bad before is not the load's doing.
    """
    was, now = fault(before), fault(after)
    lost = now in ("failed", "empty")
    if was == now and (lost or after.text == before.text):
        return "same"
    if not lost and was != "failed" and before.text.startswith(after.text):
        return "truncated"
    worse = now is not None and (was is None or FAULTS.index(now) < FAULTS.index(was))
    return now if now is not None and worse else "reworded"


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
    """Replacement signs, control signs, and what no language ever uses.

    Not by the category Cn: signs that one version of Python does not know are signs to the next.
    """
    if character == "\N{REPLACEMENT CHARACTER}" or "\ufdd0" <= character <= "\ufdef":
        return True
    if ord(character) & 0xFFFE == 0xFFFE:
        return True
    return unicodedata.category(character) in ("Cc", "Co", "Cs") and character not in "\n\r\t"


def _bare(text: str) -> str:
    return " ".join(text.split()).strip(_AROUND)
