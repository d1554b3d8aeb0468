"""Text in lines, broken between words. Knows no output format."""

import re
import textwrap

# Between a figure and its unit, however many of these there are: tokens/s, s/s, J, GiB.
_UNIT = re.compile(r"(?<=\d) (?=(?:[mµn]?s|min|h|ppm|points|[kMGT]i?B|J|W|cores|\w+/s)\b)")
NO_BREAK = "\N{NO-BREAK SPACE}"


def wrap(text: str, width: int, **options: str | bool) -> list[str]:
    """Names such as `mlx-lm` stay whole, as do figures with their units; only what is longer than a line is
    cut."""
    whole = _UNIT.sub(NO_BREAK, text)
    lines = textwrap.wrap(whole, width, break_on_hyphens=False, **options)  # type: ignore[arg-type]
    return [line.replace(NO_BREAK, " ") for line in lines]
