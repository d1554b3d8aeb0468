"""The layout of `--help`, within the width of the terminal."""

import argparse
import textwrap


class HelpText(argparse.RawDescriptionHelpFormatter):
    """Fills paragraphs; one that holds an indented line, such as examples, keeps its lines."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        """The help of an option: names such as `mlx-lm` stay whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_paragraph(part, width, indent) for part in text.split("\n\n"))


def _paragraph(text: str, width: int, indent: str) -> str:
    lines = text.splitlines()
    if not any(line.startswith(" ") for line in lines):
        lines = [" ".join(lines)]
    return "\n".join(_wrapped(indent + line, width) for line in lines)


def _wrapped(line: str, width: int) -> str:
    begin = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line,
        width,
        subsequent_indent=f"{begin}  " if begin else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
