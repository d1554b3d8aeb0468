"""Text in lines, broken between words. Knows no output format."""

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

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
    """A command after `head`, broken so that a shell reads its lines as one. A flag keeps its value."""
    lines, room = [head], width - 2
    for part in _flags(map(shlex.quote, words)):
        used = len(lines[-1]) % width  # of the last row: the terminal breaks a word that is too long
        if len(_INDENT) < used <= room < used + 1 + len(part):
            lines[-1] += " \\"
            lines.append(_INDENT + part)
        else:
            lines[-1] = f"{lines[-1]} {part}" if lines[-1] else part
    return lines


def _flags(words: Iterable[str]) -> list[str]:
    """Each flag with the value behind it, and each other word."""
    parts: list[str] = []
    for word in words:
        last = parts[-1] if parts else ""
        if last.startswith("--") and not word.startswith("-") and not {" ", "="} & {*last}:
            parts[-1] = f"{last} {word}"
        else:
            parts.append(word)
    return parts
