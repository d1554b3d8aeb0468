"""Lines for a terminal: wrapped between words, coloured where it is wanted."""

import re
import textwrap

BOLD, DIM, RED, YELLOW, LOUD = "1", "2", "31", "33", "1;7"
VERDICT_COLOURS = {"VALID": "", "SUSPECT": YELLOW, "INVALID": RED}
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|req/s|tok/s|tokens/s)")
_NO_BREAK = "\N{NO-BREAK SPACE}"


class Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._on and code and text.strip() else text


def wrap(text: str, width: int, **options: str | bool) -> list[str]:
    """Wraps between words: names such as `mlx-lm` stay whole, as do figures with their units, and only what
    is longer than a line is cut."""
    whole = _UNIT.sub(_NO_BREAK, text)
    lines = textwrap.wrap(whole, width, break_on_hyphens=False, **options)  # type: ignore[arg-type]
    return [line.replace(_NO_BREAK, " ") for line in lines]


def hanging(head: str, text: str, width: int, *, cut: bool = True) -> list[str]:
    """`text` to the right of `head`, its lines below each other. Without `cut`, a path stays whole."""
    indents = {"initial_indent": head, "subsequent_indent": " " * len(head)}
    return wrap(text, width, break_long_words=cut, **indents) or [head.rstrip()]
