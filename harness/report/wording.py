"""Tables, lists and foreign words as people read them. Knows no output format."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.model.lines import wrap
from harness.model.numbers import number, percent_figure

NOT_KNOWN = "n/a"
_BETWEEN = "  "  # columns of a table
_WIDE = 72  # columns of a head in one line
_LEAST = 12  # letters of a name that is cut
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: bool = True  # in all columns but the first; else the last has words

    def lines(self, columns: int) -> Iterator[str]:
        """Lines for a terminal: names to the left, figures to the right. Names are cut where the table
        then fits and they still differ."""
        yield ""
        yield from wrap(self.title, columns)
        if not self.figures:
            yield from aligned([self.head, *self.rows], columns, figures=False)
            return
        rows = [*self._head_lines(columns), *self.rows]
        _, *figures = zip(*rows, strict=True)
        room = columns - sum(len(_BETWEEN) + max(map(len, column)) for column in figures)
        labels = [name for name, *_ in rows]
        names = short_names(labels, max(room, _LEAST))
        if room < _LEAST or len({*names.values()}) < len(names):  # in blocks, where they have more room
            names = short_names(labels, columns // 2)
        yield from aligned([(names[name], *texts) for name, *texts in rows], columns)

    def _head_lines(self, columns: int) -> list[Sequence[str]]:
        """The head as it is; where it or the table is too wide, a line for each of its words, the last next
        to the rows."""
        widest = max(map(len, aligned([self.head, *self.rows])))
        if len(_BETWEEN.join(self.head)) <= _WIDE and widest <= columns:
            return [self.head]
        words = [title.split() for title in self.head]
        lines = max(map(len, words))
        return list(zip(*([""] * (lines - len(parts)) + parts for parts in words), strict=True))


def aligned(
    rows: Sequence[Sequence[str]], columns: float = math.inf, *, figures: bool = True
) -> Iterator[str]:
    """A line per row, the first column to the left, the others to the right if they are figures. A table that
    is wider than `columns` is broken into blocks, each with the first column."""
    first, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    for part in blocks([len(_BETWEEN) + width for width in widths], columns - first):
        if part.start:
            yield ""
        for name, *texts in rows:
            cells = zip(texts[part], widths[part], strict=True)
            padded = (text.rjust(width) if figures else text.ljust(width) for text, width in cells)
            line = _BETWEEN.join((name.ljust(first), *padded)).rstrip()
            if line:  # a line of heads may have no word in this block
                yield line


def blocks(sizes: Sequence[int], room: float) -> Iterator[slice]:
    """Columns that fit next to each other; each block has one or more. `sizes`: with the gap before each."""
    start = used = 0
    for index, size in enumerate(sizes):
        if index > start and used + size > room:
            yield slice(start, index)
            start, used = index, 0
        used += size
    yield slice(start, len(sizes))


def or_unknown(value: float | None) -> str:
    return NOT_KNOWN if value is None else number(value)


def percent_or_unknown(share: float | None) -> str:
    return NOT_KNOWN if share is None else percent_figure(share)


def version_words(version: str | None) -> str:
    return f"engine {version}" if version else "engine version not known"


def plain(value: object, limit: int = 300) -> str:
    """One line that is safe on a terminal: a server's text may hold escape sequences or have no end."""
    words = " ".join(str(value).split())
    clean = "".join(character if character.isprintable() else REPLACEMENT for character in words)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def short_names(labels: Iterable[str], limit: int) -> dict[str, str]:
    """The name of each label in one line: cut at its end, or farther ahead where two would read alike."""
    names = {label: plain(label) for label in labels}
    cut = {label: _cut(name, limit, 0) for label, name in names.items()}
    often = Counter(cut.values())
    for shown in [name for name, count in often.items() if count > 1]:
        alike = [label for label, name in cut.items() if name == shown]
        others = {name for label, name in cut.items() if label not in alike}
        for kept in range(1, limit):
            apart = {label: _cut(names[label], limit, kept) for label in alike}
            if len(set(apart.values())) == len(alike) and others.isdisjoint(apart.values()):
                cut |= apart
                break
    return cut


def _cut(name: str, limit: int, kept: int) -> str:
    """`kept`: characters of its end that stay."""
    return name if len(name) <= limit else f"{name[: limit - 1 - kept]}…{name[len(name) - kept :]}"


def capital(text: str) -> str:
    """The first letter large, all others as they are: a name such as KV or GPU stays itself."""
    return text[:1].upper() + text[1:]


def listing(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def are(count: int) -> str:
    return "is" if count == 1 else "are"


def were(count: int) -> str:
    return "was" if count == 1 else "were"


def markdown_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_escaped, texts))} |"


def markdown_escaped(text: str) -> str:
    """Text that cannot open a tag, a column, an emphasis or a formula."""
    for character in "\\`*_[]|~$":
        text = text.replace(character, f"\\{character}")
    return text.replace("&", "&amp;").replace("<", "&lt;")
