"""[text]: what prompts are written in."""

from dataclasses import dataclass

from harness.errors import SpecError
from harness.spec.strict import nearest

RANDOM, FILE = "random", "file:"
CONTENTS = (RANDOM, "prose", "code", "json")


@dataclass(frozen=True, slots=True)
class Text:
    """Kind of the texts that are made up. Speculation and compression fare otherwise on each."""

    content: str = RANDOM  # grammatical sentences of random words; or prose, code, json, file:PATH


def check_text(text: Text, where: str, *, made_up: bool) -> None:
    """`made_up`: the prompts are texts, and not those of a file as they stand."""
    content = text.content
    if content not in CONTENTS and not (content.startswith(FILE) and content != FILE):
        raise SpecError(
            f"unknown content '{content}'",
            where=where,
            hint=nearest(content, (*CONTENTS, "file:PATH")),
        )
    if content != RANDOM and not made_up:
        raise SpecError("prompts of a file, and recordings, have their own", where=where, hint="leave it out")
