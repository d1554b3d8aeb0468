"""The blocks that a document is made of. Knows no subject and no output format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.report.findings.grid import Column, Entry
from harness.report.wording import Table

Kind = Literal["", "loud", "verdict", "paragraph", "advice", "doubt", "muted", "warning"]


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence. It is an item of a list, unless its kind says otherwise; without a text it is left out.

    What stands between backticks of an `advice` or a hint is a command.
    """

    text: str
    kind: Kind = ""
    label: str = ""  # before it: `note`
    hint: str = ""
    whole: bool = False  # to be copied: no name in it is broken


@dataclass(frozen=True, slots=True)
class Title:
    text: str
    loud: str  # what a reader must not overlook; "" if there is nothing


@dataclass(frozen=True, slots=True)
class Outline:
    """Lines below their heads, such as the loads of a run. A label is what its line is about."""

    rows: Sequence[tuple[str, Sequence[Line]]]


@dataclass(frozen=True, slots=True)
class Figures:
    """A grid of figures with their spread. `names`: left of the heads, then left of each row."""

    title: str
    names: Sequence[Sequence[str]]
    columns: Sequence[tuple[Column, Sequence[Entry]]]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines that are drawn already."""

    text: str


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: Sequence["Block"]


@dataclass(frozen=True, slots=True)
class Fold:
    """What a page hides behind its title. A terminal has all of it, with the label before each line."""

    title: str
    blocks: Sequence["Block"]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line of a terminal; a page has its own distances."""


Block: TypeAlias = Title | Line | Outline | Table | Figures | Verbatim | Section | Fold | Gap
