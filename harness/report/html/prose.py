"""Blocks as HTML. Titles and grids of figures are the page's own."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby

from harness.report.blocks.block import Block, Fold, Gap, Line, Outline, Section
from harness.report.html.tags import Html, details, hint, items, join, tag, text_table, with_code
from harness.report.wording import Table

_CLASSES = {"doubt": "doubt", "muted": "muted", "warning": "suspect"}


def prose(found: Iterable[Block]) -> Iterator[Html]:
    """Lines next to each other are one list."""
    for listed, group in groupby(found, _is_listed):
        drawn = [*chain.from_iterable(map(_items if listed else _alone, group))]
        yield from [items(drawn)] if listed and drawn else drawn


def _is_listed(block: Block) -> bool:
    return isinstance(block, Outline) or (
        isinstance(block, Line) and block.kind not in ("loud", "verdict", "paragraph")
    )


def _items(block: Block) -> Iterator[Html]:
    match block:
        case Line():
            if block.text:
                yield _line(block)
        case Outline():
            for head, lines in block.rows:
                drawn = [*map(_line, lines)]
                yield from [join([tag("strong", head), items(drawn)])] if head and drawn else drawn


def _line(line: Line) -> Html:
    words = with_code(line.text) if line.kind == "advice" else line.text
    label = f"{line.label}: " if line.label else None
    text = join([label, words, hint(line.hint)])
    class_ = _CLASSES.get(line.kind)
    return tag("span", text, class_=class_) if class_ else text


def _alone(block: Block) -> Iterator[Html]:
    match block:
        case Line():
            yield tag("p", block.text if block.kind == "paragraph" else tag("strong", block.text))
        case Table():
            yield text_table(block)
        case Section():
            yield tag("h3", block.title)
            yield from prose(block.blocks)
        case Fold():
            yield details(block.title, *prose(block.blocks))
        case Gap():
            pass
        case _:
            raise TypeError(f"no HTML for a {type(block).__name__}")
