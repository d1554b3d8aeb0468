"""Plain data as YAML: block style around JSON scalars, which every YAML reader understands alike."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 110
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def yaml_text(value: Mapping[str, object]) -> str:
    return "\n".join(_mapping(value, "")) + "\n"


def _mapping(value: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, item in value.items():
        head = f"{indent}{_key(key)}:"
        if item is None:
            yield head
        elif _flat(item) and len(head) + len(_flow(item)) < _WIDTH:
            yield f"{head} {_flow(item)}"
        elif isinstance(item, Mapping):
            yield head
            yield from _mapping(item, indent + "  ")
        elif isinstance(item, Sequence) and not isinstance(item, str):
            yield head
            yield from _items(item, indent + "  ")
        else:
            yield f"{head} {_flow(item)}"


def _items(value: Sequence[Any], indent: str) -> Iterator[str]:
    for item in value:
        if isinstance(item, Mapping):
            first, *rest = _mapping(item, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest
        else:
            yield f"{indent}- {_flow(item)}"


def _flat(value: Any) -> bool:
    """Fits on the line of its key: a scalar, a list of scalars, or nothing."""
    if isinstance(value, Mapping):
        return not value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return not any(isinstance(item, Mapping | list | tuple) for item in value)
    return True


def _flow(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if set(key) <= _PLAIN else json.dumps(key)
