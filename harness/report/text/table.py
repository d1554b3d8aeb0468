"""A run in full as text, for a terminal and as Markdown. Rows are in the user's order, never a ranking."""

from dataclasses import replace

from harness.model import Manifest, Summary
from harness.report.blocks.run import steps, whole
from harness.report.text import markdown_text, terminal_text


def terminal(summary: Summary, width: int, color: bool) -> str:
    """Fits `width` from 60 on: a wider table is broken into parts."""
    return terminal_text.terminal(whole(summary, "± largest deviation"), width, color) + "\n"


def markdown(summary: Summary, manifest: Manifest | None = None) -> str:
    """What to run next is part of it: a terminal has that below the names of the files."""
    then = [
        replace(step, label="also" if number else "next")
        for number, step in enumerate(steps(summary, manifest))
    ]
    return markdown_text.markdown(whole(summary, "range in brackets", then)) + "\n"
