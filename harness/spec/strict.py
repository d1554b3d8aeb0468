"""Turns TOML tables into frozen dataclasses: unknown keys and wrong types are errors that name the place.

A field's default makes its key optional; its annotation is the type that is accepted. Supported:
str, int, float (whole numbers are taken), bool, Path-free tuples, dict[str, T], Literal, Optional,
nested dataclasses, and Annotated with functions that take the value and its place and raise SpecError. A
dataclass that stands in the table is taken as it is.
"""

import dataclasses
import difflib
import json
import types
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from harness.errors import SpecError

T = TypeVar("T")

_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


class UnknownKeyError(SpecError):
    """A table has a key that its dataclass lacks; `where` is that of the table."""

    def __init__(self, key: str, where: str, hint: str | None) -> None:
        super().__init__(f"unknown key '{key}'", where=where, hint=hint)
        self.key = key


SUGGESTED = 5  # names in a hint: a longer list is not read


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Hint for a name that does not exist, with at most `SUGGESTED` others; None if there are none."""
    names = sorted(known)
    name = name.lstrip("-")
    bare = {flag.lstrip("-"): flag for flag in names}  # dashes would make all short flags alike
    if same := next((each for each in bare if each.casefold() == name.casefold()), None):
        return f"did you mean '{bare[same]}'?"
    begun = sorted((known_name for known_name in bare if name and known_name.startswith(name)), key=len)
    begun += [known_name for known_name in bare if len(known_name) > 2 and name.startswith(known_name)]
    # A slip in a short name seldom changes its first letter: gpu is not cpu.
    alike = difflib.get_close_matches(name, [each for each in bare if each[:1] == name[:1]], n=1, cutoff=0.6)
    alike += difflib.get_close_matches(name, bare, n=SUGGESTED, cutoff=0.7)
    # `ttft_s` is ttft_ms, although ttft_service_ms begins so.
    slips = difflib.get_close_matches(name, bare, n=1, cutoff=0.9)
    close = [bare[each] for each in dict.fromkeys([*slips, *begun, *alike])][:SUGGESTED]
    parts = [f"did you mean '{close[0]}'?"] if close else []
    if len(names) > SUGGESTED and close:
        parts += [f"or {', '.join(close[1:])}"] if close[1:] else []
    elif names:
        more = f" and {len(names) - SUGGESTED} more" if len(names) > SUGGESTED else ""
        parts.append(f"known: {', '.join(names[:SUGGESTED])}{more}")
    return " ".join(parts) or None


def check_known(name: str, known: Collection[str], where: str, what: str) -> None:
    """Raises SpecError for a name that does not exist."""
    if name not in known:
        raise SpecError(f"unknown {what} '{name}'", where=where, hint=nearest(name, known))


def as_written(value: object) -> str:
    """A value of a file or of --set, spelled as there and not as Python spells it: true, null, [1, "a"]."""
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@cache
def _hints_of(cls: type) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def require_known(cls: type, table: Iterable[str], where: str) -> None:
    """Raises SpecError for a key of a table that the dataclass lacks."""
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    for key in table:
        if key not in fields:
            raise UnknownKeyError(key, where, nearest(key, fields))


def build(cls: type[T], table: Mapping[str, object], where: str) -> T:
    """Builds `cls` from a table. `where` is `FILE:table.path`. Raises SpecError, which adds the key to it."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]  # T is a dataclass
    hints = _hints_of(cls)  # type: ignore[arg-type]  # a class is hashable
    require_known(cls, table, where)
    values = {}
    for name, field in fields.items():
        if name in table:
            separator = "." if ":" in where else ":"
            values[name] = _convert(hints[name], table[name], f"{where}{separator}{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise SpecError(f"key '{name}' is missing", where=where)
    return cls(**values)


def _convert(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(value):
        return value
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        of_kind, *remarks = args
        converted = _convert(of_kind, value, where)
        for limit in filter(callable, remarks):  # types of a run's documents have a description there
            limit(converted, where)
        return converted
    if origin in (Union, types.UnionType):
        return _convert_union([a for a in args if a is not type(None)], value, where)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, Mapping):
            raise SpecError(f"must be a table, not {as_written(value)}", where=where)
        return build(kind, value, where)
    if origin is Literal:
        if value not in args:
            names = ", ".join(map(as_written, args))
            raise SpecError(f"{as_written(value)} is not one of {names}", where=where)
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            kinds: dict[object, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float)}
            an_item = isinstance(value, kinds.get(args[0], ()))
            hint = f"such as [{as_written(value)}]" if an_item else None
            raise SpecError(f"must be a list, not {as_written(value)}", where=where, hint=hint)
        return tuple(_convert(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise SpecError(f"must be a table, not {as_written(value)}", where=where)
        return {key: _convert(args[1], item, f"{where}.{key}") for key, item in value.items()}
    if kind in (Any, object):
        return value
    if not isinstance(value, (int, float) if kind is float else kind) or (
        kind in (int, float) and isinstance(value, bool)
    ):
        raise SpecError(f"must be {_WORDS[kind]}, not {as_written(value)}", where=where)
    return float(value) if kind is float else value


def _convert_union(kinds: list[Any], value: Any, where: str) -> Any:
    if len(kinds) == 1:
        return _convert(kinds[0], value, where)
    for kind in kinds:
        try:
            return _convert(kind, value, where)
        except SpecError:
            continue
    raise SpecError(f"must be {' or '.join(map(_form, kinds))}, not {as_written(value)}", where=where)


def _form(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(as_written, get_args(kind)))
    return _WORDS.get(kind) or ("a list" if get_origin(kind) is tuple else "a table")
