"""Base class of every typed document of a run, and its conversion from and to JSON."""

from pathlib import PurePath
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = ["UNSET", "Record", "UnsetType", "as_json", "doc", "from_json", "known"]

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Immutable. A key that is UNSET is not written; one with a default may be missing in older files."""


def doc(text: str) -> Meta:
    """Description of a key in the JSON schema; it has the unit if the name has none."""
    return Meta(description=text)


def known(value: T | UnsetType) -> T | None:
    """The value; None if an older version did not write it."""
    return None if isinstance(value, UnsetType) else value


def as_json(value: Any) -> Any:
    """Converts to dicts, lists and plain values; keys that are UNSET are left out."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, PurePath) else value.item()  # of numpy


def from_json(document: Any, kind: type[T]) -> T:
    """Raises ValueError with the path of the value that does not fit. Unknown keys are ignored."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        where = path.rstrip("`").removeprefix(".")
        words = what.replace("`", "'")
        raise ValueError(f"{where}: {words}" if where else words) from None
