"""Right answers to known questions, some of them wrong by choice: a server whose accuracy is known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Self

from harness.mockserver.constraint import pieces
from harness.mockserver.numerals import real_number

WRONG = "none of them"


@dataclass(frozen=True, slots=True)
class WrongShare:
    """`SHARE[:above=N]`."""

    share: float = 0.0
    above: int = 0  # only with more requests than this in the engine

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError says what is wrong with the text."""
        share, _, rest = text.partition(":")
        name, _, above = rest.partition("=")
        if rest and (name != "above" or not above.isdecimal()):
            raise ValueError(f"{text!r} is not SHARE[:above=N]")
        if not 0 <= real_number(share) <= 1:
            raise ValueError(f"{text!r}: the share must be from 0 to 1")
        return cls(float(share), int(above or 0))


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """Whether an answer is wrong is drawn for its question alone: it is the same each time, in any order."""

    right: Mapping[str, str] = field(default_factory=dict)  # by question
    wrong: WrongShare = field(default_factory=WrongShare)
    seed: int = 0

    def to(self, question: str, running: int) -> tuple[str, ...]:
        """The answer as tokens, with so many requests running; () for a question without a known one."""
        if question not in self.right:
            return ()
        drawn = Random(f"{self.seed} {question}").random()
        wrong = running > self.wrong.above and drawn < self.wrong.share
        return pieces(WRONG if wrong else self.right[question])


def read_answers(path: str) -> dict[str, str]:
    """Reads the answers of a JSON object. ValueError says what is wrong with it."""
    try:
        if Path(path).is_char_device():
            raise ValueError("it is a device, which may have no end")
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in found.values()):
        raise ValueError(f"{path} is no JSON object of questions and their answers")
    return found
