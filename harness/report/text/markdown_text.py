"""Blocks as Markdown, for a pull request or a job page: no foreign text can open a tag or a column."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain, pairwise

from harness.report.blocks.block import Block, Figures, Fold, Line, Outline, Section, Title, Verbatim
from harness.report.wording import Table, markdown_escaped, markdown_row

_ITEMS = ("- ", "  - ")


def markdown(found: Iterable[Block]) -> str:
    """Items are close to each other; all else has an empty line around it."""
    parts = list(_parts(found))
    items = [part.startswith(_ITEMS) for part in parts]
    ends = ["\n" if both == (True, True) else "\n\n" for both in pairwise(items)]
    return "".join(chain.from_iterable(zip(parts, [*ends, ""], strict=False)))


def _parts(found: Iterable[Block], *, nested: bool = False) -> Iterator[str]:
    for block in found:
        match block:
            case Title():
                yield f"## {markdown_escaped(block.text)}"
                yield from _line(Line(block.loud, "loud"))
            case Line():
                yield from _line(block)
            case Outline():
                yield from _outline(block)
            case Table():
                title = markdown_escaped(block.title)
                if title:
                    yield title if nested else f"### {title}"
                yield _table(block.head, block.rows, figures=block.figures)
            case Figures():
                if block.title:
                    yield f"### {markdown_escaped(block.title)}"
                yield _figures(block)
            case Verbatim():
                yield block.text
            case Section():
                yield f"#### {markdown_escaped(block.title)}"
                yield from _parts(block.blocks, nested=True)
            case Fold():
                yield f"<details><summary>{escape(block.title, quote=False)}</summary>"  # HTML, not Markdown
                yield from _parts(block.blocks, nested=nested)
                yield "</details>"


def _line(line: Line) -> Iterator[str]:
    label = f"**{line.label}:** " if line.label else ""
    hint = f" *Hint: {with_code(line.hint)}*" if line.hint else ""
    words = with_code(line.text) if line.kind == "advice" else markdown_escaped(line.text)
    text = f"{label}{words}{hint}"
    forms = {"loud": "**{}**", "verdict": "**{}**", "paragraph": "{}"}
    if line.text:
        yield forms.get(line.kind, "- {}").format(text)


def with_code(words: str) -> str:
    """Words of the terminal: what stands between backticks is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0 or "``" in words:
        return markdown_escaped(words)
    return "".join(f"`{part}`" if index % 2 else markdown_escaped(part) for index, part in enumerate(parts))


def _outline(outline: Outline) -> Iterator[str]:
    for head, lines in outline.rows:
        if head and lines:
            yield f"- **{markdown_escaped(head)}**"
        for line in lines:
            text = markdown_escaped(f"{line.label}: {line.text}" if line.label else line.text)
            yield f"{'  ' if head else ''}- {text}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, figures: bool = True) -> str:
    rule = "|---|" + "---:|" * (len(head) - 2) + ("---:|" if figures else "---|")
    return "\n".join([markdown_row(head), rule, *map(_row, rows)])


def _row(texts: Sequence[str]) -> str:
    """Words of the last column may quote commands."""
    *others, last = texts
    if "|" in last:  # which would end the cell, in a code too
        return markdown_row(texts)
    return f"| {' | '.join([*map(markdown_escaped, others), with_code(last)])} |"


def _figures(figures: Figures) -> str:
    """The range of a figure is behind it."""
    heads, *names = figures.names
    columns = [
        [f"{entry.text} [{entry.range}]" if entry.range else entry.text for entry in entries]
        for _column, entries in figures.columns
    ]
    rows = [[*name, *texts] for name, *texts in zip(names, *columns, strict=True)]
    return _table([*heads, *(f"{column.title} {column.unit}".strip() for column, _ in figures.columns)], rows)
