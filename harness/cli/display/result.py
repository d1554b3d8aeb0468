"""What a command returns, and how it is printed: `--json`, columns and colours are decided here alone."""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.cli.display.output import UNBROKEN, page_width, print_error, print_note, wants_color
from harness.errors import BenchError, ExitCode


@dataclass(frozen=True, slots=True)
class Screen:
    """Standard output, as far as a text depends on it."""

    width: int  # columns of prose
    rows: int  # columns of a table whose rows a pipe gets as one line each
    color: bool


Text = str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Result:
    """`text` is printed, or with --json the `document`: what is costly is a function, called only then."""

    text: Text | Callable[[Screen], Text] = ()
    document: Callable[[], object] | None = None
    code: int = ExitCode.OK
    notes: Sequence[str | BenchError] = ()  # to standard error, after the text


def put(result: Result, *, as_json: bool = False, flush: bool = False) -> None:
    """Prints a result. A command that goes on calls it for what is known already.

    `flush`: a pipe gets it now. If nobody reads it, the command ends there: the rest of its work is not done.
    """
    try:
        if not as_json:
            screen = Screen(page_width(), page_width(UNBROKEN), wants_color(sys.stdout))
            found = result.text(screen) if callable(result.text) else result.text
            for line in [found] if isinstance(found, str) else found:
                print(line, end="" if line.endswith("\n") else "\n")
        elif result.document is not None:
            print(json.dumps(result.document(), indent=1))
        if flush:
            sys.stdout.flush()
    finally:  # also where nobody reads the text: the errors of `bench validate` are notes
        for note in result.notes:
            if isinstance(note, BenchError):
                print_error(note)
            else:
                print_note(note)
