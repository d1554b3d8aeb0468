"""Text in lines, broken between words. Knows no output format."""

import re
import shlex
import textwrap
from collections.abc import Sequence

# Between a figure and its unit, however many of these there are: tokens/s, s/s, J, GiB.
_UNIT = re.compile(r"(?<=\d) (?=(?:[mµn]?s|min|h|ppm|points|[kMGT]i?B|J|W|cores|\w+/s)\b)")
_INDENT = "    "  # of the further lines of a command
NO_BREAK = "\N{NO-BREAK SPACE}"


def wrap(text: str, width: int, **options: str | bool) -> list[str]:
    """Names such as `mlx-lm` stay whole, as do figures with their units; only what is longer than a line is
    cut."""
    whole = _UNIT.sub(NO_BREAK, text)
    lines = textwrap.wrap(whole, width, break_on_hyphens=False, **options)  # type: ignore[arg-type]
    return [line.replace(NO_BREAK, " ") for line in lines]


def shell_lines(words: Sequence[str], width: int, head: str = "") -> list[str]:
    """A command after `head`, broken between words so that a shell reads the lines as one command."""
    lines, room = [head], width - 2
    for word in map(shlex.quote, words):
        used = len(lines[-1]) % width  # of the last row: the terminal breaks a word that is too long
        if len(_INDENT) < used <= room < used + 1 + len(word):
            lines[-1] += " \\"
            lines.append(_INDENT + word)
        else:
            lines[-1] = f"{lines[-1]} {word}"
    return lines
