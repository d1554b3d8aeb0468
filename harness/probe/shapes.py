"""Constraints whose effect cannot come by chance: no model gives these answers unless it is made to."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from harness.untrusted import BadDocumentError, read_document
from harness.workload.prompts.request import Constraint

PROMPT = "Write a short poem about the sea, in plain words."
_COLOURS = ("teal", "ochre")
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"enum": list(_COLOURS)}, "calm": {"type": "boolean"}},
    "required": ["colour", "calm"],
    "additionalProperties": False,
}
_CHOICES = ("zebra-7", "quokka-9")
_REGEX = "[A-F]{3}-[0-9]{4}"
_GRAMMAR = 'root ::= "<" [0-9] [0-9] [0-9] ">"'


@dataclass(frozen=True, slots=True)
class Trial:
    constraint: Constraint
    fits: Callable[[str], bool]
    opening: str = ""  # how every fitting answer begins; "": its end comes well within any limit

    def begins(self, text: str) -> bool:
        return bool(self.opening) and text.lstrip().startswith(self.opening)


def _loaded(text: str) -> object:
    try:
        document: object = read_document(text)
    except BadDocumentError:
        return None
    return document


def _fits_schema(text: str) -> bool:
    document = _loaded(text)
    return (
        isinstance(document, dict)
        and set(document) == {"colour", "calm"}
        and document["colour"] in _COLOURS
        and isinstance(document["calm"], bool)
    )


TRIALS: dict[str, Trial] = {
    trial.constraint.shape: trial
    for trial in (
        Trial(Constraint("json_schema", _SCHEMA), _fits_schema, "{"),
        Trial(Constraint("json_object"), lambda text: isinstance(_loaded(text), dict), "{"),
        Trial(Constraint("regex", _REGEX), lambda text: re.fullmatch(_REGEX, text.strip()) is not None),
        Trial(Constraint("choice", _CHOICES), lambda text: text.strip() in _CHOICES),
        Trial(
            Constraint("grammar", _GRAMMAR), lambda text: re.fullmatch(r"<\d{3}>", text.strip()) is not None
        ),
    )
}
