"""Lines for a terminal: hanging, and coloured where it is wanted."""

from harness.model.lines import wrap

BOLD, DIM, RED, YELLOW, LOUD = "1", "2", "31", "33", "1;7"
VERDICT_COLOURS = {"VALID": "", "SUSPECT": YELLOW, "INVALID": RED}


class Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._on and code and text.strip() else text


def hanging(head: str, text: str, width: int, *, cut: bool = True) -> list[str]:
    """`text` to the right of `head`, its lines below each other. Without `cut`, a path stays whole."""
    indents = {"initial_indent": head, "subsequent_indent": " " * len(head)}
    return wrap(text, width, break_long_words=cut, **indents) or [head.rstrip()]
