"""YAML, in which benchmark reports are mostly written. Its files are small."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from harness.imports.source import Document, Source, wrong

YAML = (".yaml", ".yml")
_MOST_BYTES = 4 << 20  # of a file
_MOST_GROWN, _VALUE = 64 << 20, 64  # bytes of all values, and of each one besides its text
_REPORT = re.compile(rb"(\s|#.*\n|---)*(version|run|scenario|results):")


def is_yaml(source: Source) -> bool:
    return _REPORT.match(source.whole.head) is not None


def as_json(source: Source) -> Document:
    """An infinite number becomes null: not limited. Raises SpecError."""
    import yaml

    where = source.whole.where
    if len(text := source.whole.text) > _MOST_BYTES:
        raise wrong("is longer than any report", where)
    try:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        loader.flatten_mapping = lambda node: None  # `<<` is an error: before PyYAML 6.0.4 it grows unbounded
        value = loader.get_single_data()
        _left(value, _MOST_GROWN)
        return Document(source, memoryview(msgspec.json.encode(value)))
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise wrong(f"is not whole YAML: {' '.join(str(error).split())[:200]}", where) from None


def _left(value: Any, left: int) -> int:
    """What the value leaves of so many bytes. Raises ValueError if aliases make a small text large."""
    parts: Iterable[Any] = ()
    if isinstance(value, dict):
        parts = chain(value, value.values())
    elif isinstance(value, list | tuple | set):
        parts = value
    else:
        left -= len(str(value))
    left -= _VALUE
    if left <= 0:
        raise ValueError("too many values, or too much text")
    for part in parts:
        left = _left(part, left)
    return left
