"""Runs compared with a baseline, as text and as Markdown for a pull request."""

from collections.abc import Iterator, Sequence

from harness.model import GateRow, RunComparison
from harness.report.blocks.comparison import compared
from harness.report.findings.against import place_words
from harness.report.text import markdown_text, terminal_text
from harness.report.wording import plain


def terminal(document: RunComparison, columns: int, color: bool) -> str:
    return terminal_text.terminal(compared(document), columns, color)


def markdown(document: RunComparison) -> str:
    return markdown_text.markdown(compared(document))


def gate_lines(rows: Sequence[GateRow], *, failed: bool, worse: bool = True) -> Iterator[str]:
    """The result of --fail-on: one line, and one for each row, with its run where there are several. `worse`:
    a row says that something is.
    """
    if failed:
        yield "gate: failed" if worse else "gate: not decided"
    else:
        yield "gate: passed, because --undecided pass accepts:" if rows else "gate: passed"
    several = len({row.run for row in rows}) > 1
    for row in rows:
        run = f"{row.run} " if several else ""
        yield f"  {plain(f'{row.kind}: {run}{place_words(row)}', 400)}"
