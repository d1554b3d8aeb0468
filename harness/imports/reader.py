"""What a reader declares of its tool: the kinds of its files, how each is recognised, and what reads it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.imports.source import Document, wrong
from harness.imports.taken import Taken

Read = Callable[[Document], Iterator[Taken]]


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of file: its documents have these keys, and no other's have. A file that is no JSON begins with
    `begins` instead. `whole`: `read` takes the first document for all of the file.
    """

    keys: Set[str]
    read: Read
    begins: tuple[bytes, ...] = ()
    whole: bool = False
    over_runs: bool = False  # figures of which files in other folders have the runs

    def fits(self, document: Document, keys: Set[str]) -> bool:
        return document.head.startswith(self.begins) if self.begins else self.keys <= keys


class Seen(NamedTuple):
    """A file in a folder: its form, by its place among those of its tool, and whether it is a list."""

    form: int
    is_list: bool


Files = Mapping[Path, Seen]  # of one tool in one folder


def richest(files: Files) -> Iterable[Path]:
    """The files of the first form of the tool that is there."""
    first = min(seen.form for seen in files.values())
    return (path for path, seen in files.items() if seen.form == first)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """`forms`: the most that is known of a measurement first. `rows`: of the table in docs/import.md.

    `alone`: what else lies in a folder of the tool is no result, such as its settings. `chosen`: of its files
    in one folder those that no other of them repeats.
    """

    tool: str
    forms: tuple[Form, ...]
    rows: tuple[str, ...]
    alone: bool = False
    chosen: Callable[[Files], Iterable[Path]] = richest


def refused(what: str, hint: str) -> Read:
    """Reads nothing of a file that is known and no result: raises SpecError."""

    def read(document: Document) -> Iterator[Taken]:
        raise wrong(what, str(document.path), hint=hint)

    return read
