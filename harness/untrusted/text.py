"""Foreign text made inert: it moves no cursor, turns no writing direction, breaks no encoding."""

import re

_REPLACED = "\ufffd"
# Controls but tab and newline, marks and overrides of the writing direction, halves of surrogate pairs.
_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def is_unicode(text: str) -> bool:
    """Whether it has no half of a surrogate pair, so that it can be sent and stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_inert(text: str) -> bool:
    return _ACTIVE.search(text) is None


def inert(text: str) -> str:
    return _ACTIVE.sub(_REPLACED, text.replace("\r\n", "\n"))


def one_line(text: str, most_chars: int) -> str:
    """Inert, with white space folded, and cut."""
    start = text[: 4 * most_chars]  # white space may fill megabytes
    return inert(" ".join(start.split()))[:most_chars]
