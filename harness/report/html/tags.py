"""HTML elements whose text cannot become markup: whatever is not Html is escaped."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import repeat

from harness.report.wording import REPLACEMENT, Table

VOID = {"meta", "input", "link", "br"}


class Html(str):
    """Text that is markup already. Only this room makes it."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Html:
    """`class_` is class, `data_series` is data-series. What is None is left out: a child or an attribute."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" if name in VOID else f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[str | None]) -> Html:
    shown = (child for child in children if child is not None)
    return Html("".join(child if isinstance(child, Html) else text(child) for child in shown))


def text(value: str) -> Html:
    """Control characters are not allowed in HTML, escaped or not."""
    if not value.isprintable():
        value = "".join(char if char.isprintable() or char in "\n\t" else REPLACEMENT for char in value)
    return Html(escape(value))


def section(identifier: str, title: str, *children: str | None) -> Html:
    heading = tag("h2", title, id=f"{identifier}-title")
    return tag("section", heading, *children, id=identifier, aria_labelledby=f"{identifier}-title")


def fold(title: str, about: str, part: str) -> Html:
    """A section behind its title, with what it is about; a link to its identifier opens it."""
    summary = tag("summary", title, tag("span", f" {about}", class_="muted about"))
    return tag("details", summary, part, class_="part")


def details(title: str, *children: str | None) -> Html:
    return tag("details", tag("summary", title), *children)


def hint(words: str) -> Html | None:
    return tag("span", "Hint: ", with_code(words), class_="hint") if words else None


def with_code(words: str) -> Html:
    """Words of the terminal: what stands between backticks is code."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return text(words)
    return join(code(part) if index % 2 else part for index, part in enumerate(parts))


def code(words: str) -> Html:
    """A command is broken between its parts alone; a browser would break a flag at each hyphen too."""
    parts = re.split(r"(\S*-\S*)", words)
    return tag("code", *(tag("span", part) if index % 2 else part for index, part in enumerate(parts)))


def items(entries: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", entry) for entry in entries))


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    series: Sequence[int | str] = (),
    class_: str | None = None,
) -> Html:
    """First cells are row headers. `series`, if given, names the backends that each row belongs to."""
    owners = (str(index) for index in series) if series else repeat(None)
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest), data_series=owner)
        for (first, *rest), owner in zip(rows, owners, strict=False)
    ]
    element = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in head))),
        tag("tbody", *body),
        class_=class_,
    )
    # A wide table scrolls by itself; the keyboard reaches it by tabindex.
    return tag("div", element, class_="scroll", tabindex="0", role="group", aria_label=caption)


def text_table(part: Table) -> Html:
    """A table that the terminal prints as well."""
    return table(part.title, part.head, part.rows, class_="numbers" if part.figures else None)
