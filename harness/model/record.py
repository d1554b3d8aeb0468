"""Says what every typed document of a run is made of."""

from pathlib import PurePath
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = ["UNSET", "Record", "UnsetType", "as_json", "doc", "from_json", "known"]

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Immutable. A key that is UNSET is not written; one with a default may be missing in older files."""


def doc(text: str) -> Meta:
    """Returns what a key means, with its unit where the name has none: for the JSON schema."""
    return Meta(description=text)


def known(value: T | UnsetType) -> T | None:
    """None where an older version did not write it."""
    return None if isinstance(value, UnsetType) else value


def as_json(value: Any) -> Any:
    """Dicts, lists and plain values, as they are written."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, PurePath) else value.item()  # of numpy


def from_json(document: Any, kind: type[T]) -> T:
    """ValueError with the path of what is not as it should be; keys that are not known are left out."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        where = path.rstrip("`").removeprefix(".")
        words = what.replace("`", "'")
        raise ValueError(f"{where}: {words}" if where else words) from None
