"""The result of a run on stdout: the first screen, everything with -v, or JSON. Then its page."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness import report
from harness.cli.display.output import page_width, wants_color
from harness.cli.display.streams import UnreadError
from harness.errors import SetupError
from harness.model import Summary, as_json
from harness.report.findings.conclude import conclude
from harness.report.text.screen import Sketch, next_lines, screen
from harness.report.text.table import terminal
from harness.store import RunFolder


def show(
    folder: RunFolder,
    arguments: argparse.Namespace,
    sketch: Sketch | None = None,
    draw: Callable[[RunFolder], Sequence[Path]] = report.build,
) -> None:
    """Prints the answer before `draw` makes the page, which takes seconds, and then where both are.

    JSON comes after the page, because an error of `draw` is the one document then. `sketch`: pictures between
    the table and its conclusion.
    """
    if arguments.json:
        draw(folder)
        print(as_document(folder))
        return
    summary, width = folder.read_summary(), page_width()
    page = folder.path / "report.html"
    files: Sequence[Path] = ()
    try:
        try:
            print("\n".join(_lines(summary, arguments, width, sketch)), end="\n\n", flush=True)
        except (UnreadError, SetupError):  # nobody reads it, or it cannot be written: the page may be wanted
            draw(folder)
            raise
        files = draw(folder)
    finally:
        print(f"run folder: {folder.path}")
        if page in files:
            print(f"report:     {page}")
        print("\n".join(next_lines(summary, width, str(folder.path))))


def _lines(
    summary: Summary, arguments: argparse.Namespace, width: int, sketch: Sketch | None
) -> Iterator[str]:
    color = wants_color(sys.stdout)
    if not arguments.verbose:
        yield screen(summary, width, color, sketch).rstrip()
        return
    yield terminal(summary, width, color).rstrip()
    if sketch:
        yield f"\n{sketch(summary, width)}"


def as_document(folder: RunFolder) -> str:
    """summary.json and the conclusion: `concluded.schema.json`."""
    conclusion = as_json(conclude(folder.read_summary()))
    return json.dumps({**folder.read_json("summary.json"), "conclusion": conclusion}, indent=1)
