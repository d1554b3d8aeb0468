"""Blocks as lines for a terminal, coloured where it is wanted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.model.lines import wrap
from harness.report.blocks.block import (
    Block,
    Figures,
    Fold,
    Gap,
    Kind,
    Line,
    Outline,
    Section,
    Title,
    Verbatim,
)
from harness.report.findings.grid import GAP, Column, Entry
from harness.report.wording import Table, blocks

BOLD, DIM, RED, YELLOW, LOUD = "1", "2", "31", "33", "1;7"
VERDICT_COLOURS = {"VALID": "", "SUSPECT": YELLOW, "INVALID": RED}
_COLOURS: dict[Kind, str] = {"loud": LOUD, "verdict": BOLD, "doubt": YELLOW, "muted": DIM}
_INDENT = "  "

Drawn = tuple[Column, Sequence[Entry], int]  # a column, its entry in each row, and its width


class Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._on and code and text.strip() else text


def hanging(head: str, text: str, width: int, *, cut: bool = True) -> list[str]:
    """`text` to the right of `head`, its lines below each other. Without `cut`, a path stays whole."""
    indents = {"initial_indent": head, "subsequent_indent": " " * len(head)}
    return wrap(text, width, break_long_words=cut, **indents) or [head.rstrip()]


def terminal(found: Iterable[Block], columns: int, color: bool) -> str:
    return "\n".join(_lines(found, columns, Paint(color)))


def _lines(found: Iterable[Block], columns: int, paint: Paint, *, nested: bool = False) -> Iterator[str]:
    for block in found:
        match block:
            case Title():
                yield from (paint(line, LOUD) for line in wrap(block.loud, columns))
                yield from (paint(line, BOLD) for line in wrap(block.text, columns))
            case Line():
                yield from _line(block, columns, paint)
            case Outline():
                yield from _outline(block, columns, paint)
            case Table():
                lines = block.lines(columns)
                if nested:
                    next(lines)  # it is close to what it belongs to
                yield from lines
            case Figures():
                yield from _figures(block, columns, paint)
            case Verbatim():
                yield block.text
            case Section():
                yield ""
                yield from wrap(block.title, columns, subsequent_indent=_INDENT)
                inner = _lines(block.blocks, columns - len(_INDENT), paint, nested=True)
                yield from (f"{_INDENT}{line}".rstrip() for line in inner)
            case Fold():
                inside = (_labelled(part, block.label) for part in block.blocks)
                yield from _lines(inside, columns, paint, nested=nested)
            case Gap():
                yield ""


def _labelled(block: Block, label: str) -> Block:
    return replace(block, label=label) if label and isinstance(block, Line) else block


def _line(line: Line, columns: int, paint: Paint) -> Iterator[str]:
    text = f"{line.label}: {line.text}" if line.label else line.text
    indent = "" if line.kind == "loud" else _INDENT
    lines = wrap(text, columns, subsequent_indent=indent, break_long_words=not line.whole)
    if line.kind == "warning":
        lines[:1] = [paint(first, YELLOW) for first in lines[:1]]
    yield from (paint(part, _COLOURS.get(line.kind, "")) for part in lines)
    if line.hint:
        yield from hanging(f"{_INDENT}hint: ", line.hint, columns)


def _outline(outline: Outline, columns: int, paint: Paint) -> Iterator[str]:
    """Each head before the first of its lines, then their labels, then their texts, one below the other."""
    rows = outline.rows
    first = _room(head for head, _lines in rows)
    second = _room(line.label for _head, mine in rows for line in mine)
    for head, mine in rows:
        for line, left in zip(mine, [head, *[""] * len(mine)], strict=False):
            before = left.ljust(first) + (line.label.ljust(second) if line.label else "")
            for part in hanging(before, line.text, columns, cut=not line.whole):
                yield paint(part, _COLOURS.get(line.kind, ""))


def _room(names: Iterable[str]) -> int:
    """Columns of the longest and of the distance behind it; none where there are only empty ones."""
    longest = max(map(len, names), default=0)
    return longest + GAP if longest else 0


def _figures(figures: Figures, columns: int, paint: Paint) -> Iterator[str]:
    """Heads have up to three lines. A grid that is too wide is broken into parts, each with the names."""
    if figures.title:
        yield paint(figures.title, BOLD)
    sizes = [max(map(len, names)) for names in zip(*figures.names, strict=True)]
    padded = ((text.ljust(size) for text, size in zip(name, sizes, strict=True)) for name in figures.names)
    lefts = [(" " * GAP).join(texts) for texts in padded]
    drawn = []
    for column, entries in figures.columns:
        texts = (text for entry in entries for text in (entry.text, entry.spread))
        drawn.append((column, entries, GAP + max(map(len, (*column.heads, *texts)))))
    for part in blocks([size for *_, size in drawn], columns - len(lefts[0])):
        if part.start:
            yield ""
        yield from _rows(lefts, drawn[part], paint)


def _rows(names: Sequence[str], columns: Sequence[Drawn], paint: Paint) -> Iterator[str]:
    """`names`: what stands left of the heads, then left of each row, all of one length."""
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
        if any(entry.spread for entry, _ in entries):
            yield paint((indent + "".join(entry.spread.rjust(size) for entry, size in entries)).rstrip(), DIM)
