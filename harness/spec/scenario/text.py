"""[text]: what prompts are written in."""

from dataclasses import dataclass

from harness.errors import SpecError
from harness.spec.strict import nearest

RANDOM, FILE = "random", "file:"
CONTENTS = (RANDOM, "prose", "code", "json")


@dataclass(frozen=True, slots=True)
class Text:
    """Kind of generated text. Speculative decoding and compression do better on some kinds than on others."""

    content: str = RANDOM  # grammatical sentences of random words; or prose, code, json, file:PATH


def check_text(text: Text, where: str, *, made_up: bool) -> None:
    """Raises SpecError. `made_up` is false if the prompts come from a file as they are, or are no texts."""
    content = text.content
    if content not in CONTENTS and not (content.startswith(FILE) and content != FILE):
        raise SpecError(
            f"unknown content '{content}'", where=where, hint=nearest(content, (*CONTENTS, "file:PATH"))
        )
    if content != RANDOM and not made_up:
        raise SpecError(
            "prompts of a file and recordings have their own content", where=where, hint="leave it out"
        )
