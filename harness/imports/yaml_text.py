"""YAML, in which benchmark reports are mostly written. Its files are small."""

import re
from typing import Any

import msgspec

from harness.imports.source import Document, Source, wrong

YAML = (".yaml", ".yml")
_MOST_BYTES, _MOST_VALUES = 4 << 20, 1_000_000
_REPORT = re.compile(rb"(\s|#.*\n|---)*(version|run|scenario|results):")


def is_yaml(source: Source) -> bool:
    return _REPORT.match(source.head) is not None


def as_json(source: Source) -> Document:
    """An infinite number becomes null: not limited. Raises SpecError."""
    import yaml

    where = str(source.path)
    if len(text := source.text) > _MOST_BYTES:
        raise wrong("is longer than any report", where)
    try:
        value = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        _count(value, _MOST_VALUES)
        return Document(source.path, memoryview(msgspec.json.encode(value)), tool_version=source.tool_version)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise wrong(f"is not whole YAML: {' '.join(str(error).split())[:200]}", where) from None


def _count(value: Any, left: int) -> int:
    """Raises ValueError if aliases make a small text large."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        left = _count(part, left)
    if left <= 0:
        raise ValueError("too many values")
    return left - 1
