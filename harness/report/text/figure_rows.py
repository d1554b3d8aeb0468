"""Rows of figures below heads of up to three lines, for a terminal."""

from collections.abc import Iterator, Sequence

from harness.report.findings.grid import Column, Entry
from harness.report.text.terminal_text import DIM, VERDICT_COLOURS, Paint

Drawn = tuple[Column, Sequence[Entry], int]  # a column, its entry in each row, and its width


def figure_rows(
    names: Sequence[str], columns: Sequence[Drawn], paint: Paint, *, spreads: bool = False
) -> Iterator[str]:
    """`names`: what stands left of the heads, then left of each row, all of one length. `spreads`: whether
    those of a row follow below it."""
    heading, *lefts = names
    indent = " " * len(heading)
    heads = [
        "".join(head.rjust(size) for head, (_, _, size) in zip(line, columns, strict=True))
        for line in zip(*(column.heads for column, _, _ in columns), strict=True)
        if any(line)
    ]
    for line in heads[:-1]:
        yield (indent + line).rstrip()
    yield (heading + heads[-1]).rstrip()
    for index, left in enumerate(lefts):
        entries = [(entries[index], size) for _, entries, size in columns]
        yield left + "".join(
            paint(entry.text.rjust(size), VERDICT_COLOURS.get(entry.verdict, "")) for entry, size in entries
        )
        if spreads and any(entry.spread for entry, _ in entries):
            yield paint((indent + "".join(entry.spread.rjust(size) for entry, size in entries)).rstrip(), DIM)
