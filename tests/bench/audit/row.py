"""A row of the audit: a server of known truth, one whole `bench` command, and what it printed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Seen:
    """`printed` as a reader sees it, figures and marks; `wrong`: why it is not the truth, "" where it is."""

    printed: str
    wrong: str = ""


@dataclass(frozen=True)
class Row:
    """`try_it` gets an empty folder to work in, starts its own servers on 127.0.0.1 and stops them."""

    name: str
    truth: str
    try_it: Callable[[Path], Seen]
