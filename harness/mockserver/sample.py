"""A shortest answer that a constraint allows: for a JSON schema, a regular expression, a grammar.

As far as benchmarks use them. UnsupportedError for the rest, which the server refuses, as engines do.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from math import floor
from typing import Any

MAX_DEPTH = 32
MAX_VALUES = 5_000  # that are tried for one schema: references may double them at each level
_TOO_MANY = f"more than {MAX_VALUES:,} values are not simulated"


class UnsupportedError(ValueError):
    """The message is for the client."""


def of_schema(schema: Any) -> str:
    """Makes an answer that jsonschema accepts. Raises UnsupportedError where it finds none."""
    return _of_schema(json.dumps(schema))


@lru_cache(maxsize=512)
def _of_schema(schema_json: str) -> str:
    """Opens no address and no file that the schema names."""
    from jsonschema.validators import Draft202012Validator, validator_for  # 60 ms, which few servers need
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable

    schema = json.loads(schema_json)
    root = schema if isinstance(schema, Mapping) else {}
    judge = validator_for(root, default=Draft202012Validator)(root, registry=REGISTRY)

    def right(part: Mapping[str, Any], value: Any) -> bool:
        with suppress(Unresolvable):  # bench could not judge this answer either
            return bool(judge.evolve(schema=part).is_valid(value))
        return True

    return json.dumps(_Values(root, right).value(schema, 0), ensure_ascii=False, allow_nan=False)


_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions")
)


class _Values:
    """Values of a schema and its parts: tried by the keywords below, and judged by all of the schema."""

    def __init__(self, root: Mapping[str, Any], right: Callable[[Mapping[str, Any], Any], bool]) -> None:
        self._root, self._right, self._left = root, right, MAX_VALUES

    def value(self, schema: Any, depth: int) -> Any:
        """The first that is right."""
        self._left -= 1
        if self._left < 0:
            raise UnsupportedError(_TOO_MANY)
        if depth > MAX_DEPTH:
            raise UnsupportedError("the schema has no finite value near its surface")
        if schema is True or schema == {}:
            return ""
        if not isinstance(schema, Mapping):
            raise UnsupportedError(f"not a JSON schema: {str(schema)[:100]}")
        for value in self._tried(schema, depth):
            if self._right(schema, value):
                return value
        none = f"no value of this schema is simulated: {str(schema)[:100]}"
        raise UnsupportedError(_TOO_MANY if self._left < 0 else none)

    def _tried(self, schema: Mapping[str, Any], depth: int) -> Iterable[Any]:
        if "$ref" in schema:
            return [self.value(self._referred(schema["$ref"]), depth + 1)]
        if "const" in schema:
            return [schema["const"]]
        if schema.get("enum"):
            return list(schema["enum"])
        for one_of in ("anyOf", "oneOf"):
            if schema.get(one_of):
                own = {key: value for key, value in schema.items() if key != one_of}
                return self._branches(schema[one_of], own, depth)
        if schema.get("allOf"):
            own = {key: value for key, value in schema.items() if key != "allOf"}
            return [self.value(self._merged((*schema["allOf"], own)), depth + 1)]
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = kind[0]
        return self._of_type(kind or _implied(schema), schema, depth)

    def _of_type(self, kind: str, schema: Mapping[str, Any], depth: int) -> Iterable[Any]:
        match kind:
            case "object":
                return [self._object(schema, depth)]
            case "array":
                values = [self.value(item, depth + 1) for item in schema.get("prefixItems", [])]
                while len(values) < schema.get("minItems", 0):
                    values.append(self.value(schema.get("items", True), depth + 1))
                return [values]
            case "string":
                return [_string(schema)]
            case "integer" | "number":
                return _numbers(schema, kind == "integer")
            case "boolean":
                return [True]
            case "null":
                return [None]
        raise UnsupportedError(f"unknown type {kind!r}")

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Has the required properties, or all known ones where none is, and as many more as it must have."""
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        names = dict.fromkeys(schema.get("required", known))
        more = max(schema.get("minProperties", 0) - len(names), 0)
        names |= dict.fromkeys(islice((name for name in known if name not in names), more))
        return {name: self.value(known.get(name, others), depth + 1) for name in names}

    def _branches(self, choices: list[Any], own: Mapping[str, Any], depth: int) -> Iterator[Any]:
        """Null before others: so a recursive type ends soon. `own`: what holds besides."""
        held = own.keys() - _ANNOTATIONS
        for choice in sorted(choices, key=lambda choice: choice != {"type": "null"}):
            with suppress(UnsupportedError):
                if held:
                    # All its properties where it requires none: they tell it from the other branches.
                    asks = {} if choice is True else {"required": [*choice.get("properties", {})], **choice}
                    choice = self._merged((own, asks))
                yield self.value(choice, depth + 1)

    def _merged(self, parts: Iterable[Any]) -> dict[str, Any]:
        """Joins schemas that all hold. Raises UnsupportedError where they say different things of one key."""
        properties: dict[str, object] = {}
        required: list[object] = []
        others: dict[str, object] = {}
        for part in parts:
            whole = self._referred(part["$ref"]) if "$ref" in part else part
            for name, schema in whole.get("properties", {}).items():
                both = name in properties and properties[name] != schema
                properties[name] = {"allOf": [properties[name], schema]} if both else schema
            required += whole.get("required", ())
            for key in whole.keys() - _ANNOTATIONS - {"properties", "required"}:
                if others.setdefault(key, whole[key]) != whole[key]:
                    raise UnsupportedError(f"several values of {key!r} in schemas that all hold")
        found = {"properties": properties, "required": required}
        return others | {key: value for key, value in found.items() if value}

    def _referred(self, pointer: str) -> Any:
        node: Any = self._root
        for part in pointer.removeprefix("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if name and (not isinstance(node, Mapping) or name not in node):
                raise UnsupportedError(f"nothing at $ref {pointer!r}")
            node = node[name] if name else node
        return node


def _implied(schema: Mapping[str, object]) -> str:
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


_FORMATS = {
    "date": "2026-01-01",
    "time": "12:00:00Z",
    "date-time": "2026-01-01T12:00:00Z",
    "email": "a@example.org",
    "uri": "https://example.org",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
}


def _string(schema: Mapping[str, Any]) -> str:
    if "pattern" in schema:
        return of_regex(schema["pattern"])
    text = "text"[: schema.get("maxLength", 4)].ljust(schema.get("minLength", 0), "x")
    return _FORMATS.get(schema.get("format", ""), text)


def _numbers(schema: Mapping[str, Any], whole: bool) -> Iterator[int | float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf", 1 if whole else None)
    ends = [end for end in (low, above, 0, high, below) if end is not None]
    tried = [end + more for more in (0, 1, -1, 0.5, -0.5) for end in ends]
    tried += [(first + second) / 2 for first in ends for second in ends]
    if step is not None:
        tried = [_multiple(value, step, more) for value in tried for more in (0, 1)]
    for value in tried:
        yield int(value) if whole else value


def _multiple(value: float, step: float, more: int) -> int | float:
    """A multiple near the value, by decimal digits: as binary fractions, 19 times 0.1 is more than 1.9."""
    if isinstance(value, int) and isinstance(step, int):
        return (value // step + more) * step
    exact = Decimal(str(step))
    return float((floor(Decimal(str(value)) / exact) + more) * exact)


def of_regex(pattern: str) -> str:
    """Checked against Python's own engine, so that what it does not build right is refused."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UnsupportedError(f"not a regular expression: {error}") from None
    sampled = _First(_REGEX_TOKEN.findall(pattern), _of_atom).alternatives()
    if not compiled.fullmatch(sampled):
        raise UnsupportedError(f"this regular expression is not simulated: {pattern[:100]}")
    return sampled


_REGEX_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?::|P?<\w+>))?|(?:[*?+]|\{\d+(?:,\d*)?\})[?+]?|.", re.DOTALL
)
_ESCAPES = dict(zip("dwsDWSntbB", ("0", "a", " ", "a", " ", "a", "\n", "\t", "", ""), strict=True))


_SIGNS = {".": "a", "^": "", "$": ""}


def _of_atom(token: str) -> str:
    """A text for a character, an escape or a class."""
    if token in _SIGNS:
        return _SIGNS[token]
    if token.startswith("[^"):
        return next((character for character in "aA0 ~" if re.match(token, character)), "")
    first = token[1:] if len(token) > 1 and token.startswith("[") else token
    return _ESCAPES.get(first[1], first[1]) if first.startswith("\\") else first[0]


_LEAST = re.compile(r"[*?].?|(\+)[?+]?|\{(\d+).*")


class _First:
    """The first alternatives and the least repetitions; `atom` turns one token into text."""

    def __init__(self, tokens: list[str], atom: Callable[[str], str]) -> None:
        self._tokens, self._atom = tokens, atom

    def alternatives(self, *, wanted: bool = True) -> str:
        """Consumes up to a closing bracket or the end."""
        first = self._sequence(wanted=wanted)
        while self._tokens[:1] == ["|"]:
            del self._tokens[0]
            self._sequence(wanted=False)
        return first

    def _sequence(self, *, wanted: bool) -> str:
        parts = []
        while self._tokens and self._tokens[0] not in ("|", ")"):
            token = self._tokens.pop(0)
            if token.startswith("("):
                inside = self.alternatives(wanted=wanted)
                if not self._tokens:
                    raise UnsupportedError("a bracket is not closed")
                del self._tokens[0]
            else:
                inside = self._atom(token) if wanted else ""
            if self._tokens and (repeated := _LEAST.fullmatch(self._tokens[0])):
                del self._tokens[0]
                inside *= int(repeated[2] or bool(repeated[1]))
            parts.append(inside)
        return "".join(parts)


_RULE = re.compile(r"^\s*([\w-]+)\s*::=", re.MULTILINE)
_GRAMMAR_TOKEN = re.compile(
    r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[\w-]+|[()|*+?]|\{\d+(?:,\d*)?\}|#[^\n]*)'
)


def of_grammar(text: str) -> str:
    """Makes a text of GBNF or EBNF with a rule `root`: literals, rules, groups, classes and repetitions."""
    _, *bodies = _RULE.split(text)
    return _of_rule("root", dict(zip(bodies[::2], bodies[1::2], strict=True)), 0)


def _of_rule(name: str, rules: Mapping[str, str], depth: int) -> str:
    if depth > MAX_DEPTH:
        raise UnsupportedError("the grammar's first alternatives do not end")
    if name not in rules:
        raise UnsupportedError(f"the grammar has no rule {name!r}")

    def atom(token: str) -> str:
        if token.startswith('"'):
            return str(json.loads(token))
        return of_regex(token) if token.startswith("[") else _of_rule(token, rules, depth + 1)

    tokens = [token for token in _GRAMMAR_TOKEN.findall(rules[name]) if not token.startswith("#")]
    return _First(tokens, atom).alternatives()
