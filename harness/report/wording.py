"""Numbers and foreign words as people read them. Knows no output format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NOT_KNOWN = "n/a"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterator[str]:
        """Lines for a terminal: names to the left, figures to the right."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        yield ""
        yield self.title
        for row in (self.head, *self.rows):
            first, *rest = (
                text.rjust(width) if index else text.ljust(width)
                for index, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            yield "  ".join([first, *rest]).rstrip()


def number(value: float) -> str:
    """Three significant digits, whole numbers from a hundred on."""
    size = abs(value)
    if size == 0:
        return "0"
    if size < 0.0095:
        return f"{value:.2g}"
    decimals = sum(size < limit for limit in (99.95, 9.995, 0.9995))
    return f"{value:.{decimals}f}"


def percent(share: float) -> str:
    """Two digits as a plain number, without the sign: `:.2g` alone makes 1e+02 of 0.997."""
    return f"{float(f'{100 * share:.2g}'):g}"


def or_unknown(value: float | None) -> str:
    return NOT_KNOWN if value is None else number(value)


def plain(value: object, limit: int = 300) -> str:
    """One line that is safe on a terminal: a server's text may hold escape sequences or have no end."""
    words = " ".join(str(value).split())
    clean = "".join(character if character.isprintable() else REPLACEMENT for character in words)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listing(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def markdown_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_escaped, texts))} |"


def markdown_escaped(text: str) -> str:
    """Text that cannot open a tag, a column or an emphasis."""
    for character in "\\`*_[]|":
        text = text.replace(character, f"\\{character}")
    return text.replace("&", "&amp;").replace("<", "&lt;")
