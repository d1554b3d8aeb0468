"""Foreign JSON and TOML: bounded in depth, every number finite and of 64 bits, every text inert."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from typing import Any

from harness.untrusted.text import inert, is_inert

DEEPEST = 64  # levels; no answer of an engine has ten
LIMIT = 2**63  # from it on a number counts and measures nothing; sums and ratios of what is below are finite
_REMEMBERED = 10_000  # texts of a document: its keys, without the memory that ever new ones would take
# Values of a document by its length: each takes some hundred bytes of memory, and 25 characters of a summary.
_FREE_VALUES, _CHARS_PER_VALUE = 2_000_000, 16
_PLAIN = (bytes(range(0x20, 0x7F)) + b"\t\n").replace(b"\\", b"")  # bytes of JSON that do no harm in any text
_ESCAPED = re.compile(rb'\\[^"\\/nt]')  # what stands for a character that is not plain


class BadDocumentError(ValueError):
    """The message is one sentence on what is wrong."""


def read_document(data: bytes | str, hidden: Callable[[str], str] = str) -> Any:
    """`hidden` takes credentials out of every text. NaN and numbers from 2**63 on are None."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        most_values = max(_FREE_VALUES, len(text) // _CHARS_PER_VALUE)
        if sum(map(text.count, ",[{")) > most_values:
            raise BadDocumentError(f"JSON of more than {most_values:,} values")
        document = json.loads(text)
    except BadDocumentError:
        raise
    except RecursionError:
        raise BadDocumentError(f"JSON nested deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise BadDocumentError(f"not JSON: {error}") from None
    if hidden is str and isinstance(data, bytes) and _is_harmless(data) and _all_fit([document], DEEPEST + 1):
        return document
    return _clean(document, _Texts(hidden), DEEPEST)


def _is_harmless(data: bytes) -> bool:
    """Whether `_clean` would change no text of this JSON. Nearly all documents that bench wrote are so, and
    this takes a twentieth of the time."""
    rest = data.translate(None, _PLAIN)
    return is_inert(rest.decode()) and not (b"\\" in rest and _ESCAPED.search(data))


def _all_fit(values: Iterable[Any], levels: int) -> bool:
    """Whether `_clean` would change no number and find no level too many. Called for every container."""
    if not levels:
        return False
    for value in values:
        kind = type(value)
        if kind is float or kind is int:
            if not -LIMIT < value < LIMIT:
                return False
        elif kind is dict:
            if not _all_fit(value.values(), levels - 1):
                return False
        elif kind is list and not _all_fit(value, levels - 1):
            return False
    return True


def read_tables(text: str) -> dict[str, object]:
    """Parses TOML, which people write: what JSON has no room for is an error with its place, never replaced.

    Raises tomllib.TOMLDecodeError as well.
    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise BadDocumentError(f"nested deeper than {DEEPEST} levels") from None
    _check(tables, "", DEEPEST)
    return tables


def _check(value: Any, path: str, levels: int) -> None:
    if isinstance(value, dict | list):
        if not levels:
            raise BadDocumentError(f"{path.partition('.')[0]}: nested deeper than {DEEPEST} levels")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            _check(key, path, levels)
            _check(item, f"{path}.{key}".removeprefix("."), levels - 1)
        return
    if isinstance(value, str):
        what = "" if inert(value) == value else "has a control character"
    elif isinstance(value, int | float):
        what = "" if _fits(value) else "is not a finite number below 2**63"
    else:
        what = "is a date; write it as text, in quotes"
    if what:
        raise BadDocumentError(f"{path or 'a key'} {what}")


def _fits(value: float) -> bool:
    return abs(value) < LIMIT  # of NaN neither this nor its opposite holds


class _Texts(dict[str, str]):
    """What each text of one document becomes: its keys recur in every record of a list."""

    def __init__(self, hidden: Callable[[str], str]) -> None:
        super().__init__()
        self._hidden = hidden

    def __missing__(self, text: str) -> str:
        found = self._hidden(inert(text))
        if len(self) < _REMEMBERED:
            self[text] = found
        return found


def _clean(value: Any, texts: _Texts, levels: int) -> Any:
    """Goes by the types that json.loads makes, which are exact: it is called for every value."""
    kind = type(value)
    if kind is str:
        return texts[value]
    if kind is float or kind is int:
        return value if _fits(value) else None
    if kind is not dict and kind is not list:
        return value
    if not levels:
        raise BadDocumentError(f"JSON nested deeper than {DEEPEST} levels")
    if kind is dict:
        return {texts[key]: _clean(item, texts, levels - 1) for key, item in value.items()}
    return [_clean(item, texts, levels - 1) for item in value]
