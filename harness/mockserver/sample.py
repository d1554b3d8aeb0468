"""A shortest answer that a constraint allows: for a JSON schema, a regular expression, a grammar.

As far as benchmarks use them. UnsupportedError for the rest, which the server refuses, as engines do.
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

MAX_DEPTH = 32


class UnsupportedError(ValueError):
    """The message is for the client."""


def of_schema(schema: Any) -> str:
    return json.dumps(_value(schema, schema, 0), ensure_ascii=False)


# What they ask for is not looked at, so that a value may break them.
_NOT_BUILT = ("not", "if", "contains", "propertyNames")
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions")
)


def _value(schema: Any, root: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise UnsupportedError("the schema has no finite value near its surface")
    if schema is True or schema == {}:
        return ""
    if not isinstance(schema, Mapping):
        raise UnsupportedError(f"not a JSON schema: {str(schema)[:100]}")
    if "$ref" in schema:
        return _value(_referred(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for one_of in ("anyOf", "oneOf"):
        if schema.get(one_of):
            own = {key: value for key, value in schema.items() if key != one_of}
            return _simplest(schema[one_of], own, root, depth)
    if schema.get("allOf"):
        own = {key: value for key, value in schema.items() if key != "allOf"}
        return _value(_merged((*schema["allOf"], own), root), root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    return _of_type(kind or _implied(schema), schema, root, depth)


# A JSON schema of a client's is any JSON: every key is looked at where it is used.


def _merged(parts: Iterable[Any], root: Any) -> dict[str, Any]:
    """Schemas that all hold, as one. Raises UnsupportedError where they say different things of one key."""
    properties: dict[str, object] = {}
    required: list[object] = []
    others: dict[str, object] = {}
    for part in parts:
        whole = _referred(part["$ref"], root) if "$ref" in part else part
        for name, schema in whole.get("properties", {}).items():
            both = name in properties and properties[name] != schema
            properties[name] = {"allOf": [properties[name], schema]} if both else schema
        required += whole.get("required", ())
        for key in whole.keys() - _ANNOTATIONS - {"properties", "required"}:
            if others.setdefault(key, whole[key]) != whole[key]:
                raise UnsupportedError(f"several values of {key!r} in schemas that all hold")
    found = {"properties": properties, "required": required}
    return others | {key: value for key, value in found.items() if value}


def _implied(schema: Mapping[str, object]) -> str:
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _of_type(kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    if unknown := [key for key in _NOT_BUILT if key in schema]:
        raise UnsupportedError(f"{unknown[0]!r} is not simulated")
    match kind:
        case "object":
            return _object(schema, root, depth)
        case "array":
            items = schema.get("prefixItems", [])
            values = [_value(item, root, depth + 1) for item in items]
            while len(values) < schema.get("minItems", 0):
                values.append(_value(schema.get("items", True), root, depth + 1))
            alike = schema.get("uniqueItems") and len(set(map(json.dumps, values))) < len(values)
            if alike or len(values) > schema.get("maxItems", len(values)):
                raise UnsupportedError("different items, or fewer, are not simulated")
            return values
        case "string":
            return _string(schema)
        case "integer" | "number":
            return _number(schema, kind == "integer")
        case "boolean":
            return True
        case "null":
            return None
    raise UnsupportedError(f"unknown type {kind!r}")


_DEPENDENCIES = ("dependencies", "dependentRequired", "dependentSchemas")


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> dict[str, Any]:
    """Has the required properties, or all known ones where none is, and as many more as it must have."""
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    names = dict.fromkeys(schema.get("required", known))
    least = schema.get("minProperties", 0)
    names |= dict.fromkeys(islice((name for name in known if name not in names), max(least - len(names), 0)))
    depends = any(names.keys() & schema.get(key, {}).keys() for key in _DEPENDENCIES)
    depends = depends or ("patternProperties" in schema and not names.keys() <= known.keys())
    if depends or not least <= len(names) <= schema.get("maxProperties", len(names)):
        raise UnsupportedError("an object of these properties is not simulated")
    return {name: _value(known.get(name, others), root, depth + 1) for name in names}


def _simplest(choices: list[Any], own: Mapping[str, Any], root: Any, depth: int) -> Any:
    """The first that ends, null before others: so a recursive type ends soon. `own`: what holds besides."""
    held = own.keys() - _ANNOTATIONS
    for choice in sorted(choices, key=lambda choice: choice != {"type": "null"}):
        try:
            if held:
                # All its properties where it requires none: they tell it from the other branches.
                asks = {} if choice is True else {"required": [*choice.get("properties", {})], **choice}
                choice = _merged((own, asks), root)
            return _value(choice, root, depth + 1)
        except UnsupportedError:
            continue
    raise UnsupportedError("no branch of the schema has a value")


def _referred(pointer: str, root: Any) -> Any:
    node = root
    for part in pointer.removeprefix("#").strip("/").split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if name and (not isinstance(node, Mapping) or name not in node):
            raise UnsupportedError(f"nothing at $ref {pointer!r}")
        node = node[name] if name else node
    return node


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
    least = schema.get("minLength", 0)
    if "pattern" in schema:
        text = of_regex(schema["pattern"])
    elif not (text := _FORMATS.get(schema.get("format", ""), "")):
        text = "text"[: schema.get("maxLength", 4)].ljust(least, "x")
    if not least <= len(text) <= schema.get("maxLength", len(text)):
        raise UnsupportedError("a pattern or format of another length is not simulated")
    return text


def _number(schema: Mapping[str, Any], whole: bool) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, bool):  # of draft 4, about `minimum`
        low, above = (None, low) if above else (low, None)
    if isinstance(below, bool):
        high, below = (None, high) if below else (high, None)
    step = schema.get("multipleOf", 1 if whole else None)
    ends = [end for end in (low, above, 0, high, below) if end is not None]
    tried = [end + more for more in (0, 1, -1, 0.5, -0.5) for end in ends]
    tried += [(first + second) / 2 for first in ends for second in ends]
    if step is not None:
        tried = [(value // step + more) * step for value in tried for more in (0, 1)]
    for value in tried:
        if (
            (low is None or value >= low)
            and (high is None or value <= high)
            and (above is None or value > above)
            and (below is None or value < below)
            and (step is None or value / step % 1 == 0)
            and (not whole or value == int(value))
        ):
            return int(value) if whole else value
    raise UnsupportedError("a number within these limits is not simulated")


def of_regex(pattern: str) -> str:
    """Checked against Python's own engine, so that what it does not build right is refused."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UnsupportedError(f"not a regular expression: {error}") from None
    sampled = _Regex(pattern).alternatives()
    matches = compiled.fullmatch(sampled)
    if not matches:
        raise UnsupportedError(f"this regular expression is not simulated: {pattern[:100]}")
    return sampled


_ESCAPES = dict(zip("dwsDWSntbB", ("0", "a", " ", "a", " ", "a", "\n", "\t", "", ""), strict=True))


_CLASS = re.compile(r"\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


class _Regex:
    """First alternatives, least repetitions."""

    def __init__(self, pattern: str) -> None:
        self._rest = pattern

    def _take(self, count: int = 1) -> str:
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def alternatives(self) -> str:
        first = self._sequence()
        while self._rest.startswith("|"):
            self._take()
            self._sequence()
        return first

    def _sequence(self) -> str:
        parts = []
        while self._rest and self._rest[0] not in "|)":
            atom = self._atom()
            parts.append(atom * self._least())
        return "".join(parts)

    def _atom(self) -> str:
        match character := self._take():
            case "\\":
                escaped = self._take()
                return _ESCAPES.get(escaped, escaped)
            case "[":
                return self._class()
            case "(":
                if kind := re.match(r"\?(:|P?<\w+>)", self._rest):
                    self._take(kind.end())
                inside = self.alternatives()
                self._take()
                return inside
            case ".":
                return "a"
            case "^" | "$":
                return ""
        return character

    def _class(self) -> str:
        closed = _CLASS.match(self._rest)
        assert closed, "the whole was compiled before"
        inside = self._take(closed.end())[:-1]
        if inside.startswith("^"):
            return next((character for character in "aA0 ~" if re.match(f"[{inside}]", character)), "")
        return _ESCAPES.get(inside[1], inside[1]) if inside.startswith("\\") else inside[0]

    def _least(self) -> int:
        count = 1
        if match := re.match(r"([*?+]|\{(\d+)(,\d*)?\})[?+]?", self._rest):
            self._take(match.end())
            count = int(match[2]) if match[2] else 1 if match[1] == "+" else 0
        return count


_RULE = re.compile(r"^\s*([\w-]+)\s*::=", re.MULTILINE)


def of_grammar(text: str) -> str:
    """Makes a text of GBNF or EBNF with a rule `root`: literals, rules, groups, classes and repetitions."""
    _, *bodies = _RULE.split(text)
    rules = dict(zip(bodies[::2], bodies[1::2], strict=True))
    if "root" not in rules:
        raise UnsupportedError("the grammar has no rule `root`")
    return _Grammar(rules, 0).expand("root")


_GRAMMAR_TOKEN = re.compile(
    r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[\w-]+|[()|*+?]|\{\d+(?:,\d*)?\}|#[^\n]*)'
)


class _Grammar:
    def __init__(self, rules: Mapping[str, str], depth: int) -> None:
        self._rules, self._depth = rules, depth

    def expand(self, name: str) -> str:
        if self._depth > MAX_DEPTH:
            raise UnsupportedError("the grammar's first alternatives do not end")
        if name not in self._rules:
            raise UnsupportedError(f"the grammar has no rule {name!r}")
        tokens = [token for token in _GRAMMAR_TOKEN.findall(self._rules[name]) if not token.startswith("#")]
        return self._alternatives(tokens)

    def _alternatives(self, tokens: list[str]) -> str:
        """Consumes up to a closing bracket or the end; the first alternative counts."""
        first: str | None = None
        while True:
            sequence = self._sequence(tokens, wanted=first is None)
            first = sequence if first is None else first
            if not tokens or tokens[0] != "|":
                return first
            tokens.pop(0)

    def _sequence(self, tokens: list[str], *, wanted: bool) -> str:
        parts = []
        while tokens and tokens[0] not in ("|", ")"):
            token = tokens.pop(0)
            if token == "(":
                inner = self._alternatives(tokens)
                tokens.pop(0)
            elif not wanted:
                inner = ""
            elif token.startswith('"'):
                inner = json.loads(token)
            elif token.startswith("["):
                inner = of_regex(token)
            else:
                inner = _Grammar(self._rules, self._depth + 1).expand(token)
            if tokens and (tokens[0] in ("*", "?") or tokens[0].startswith("{0")):
                inner = ""
            if tokens and (tokens[0] in ("*", "+", "?") or tokens[0].startswith("{")):
                repetition = tokens.pop(0)
                count = re.match(r"\{(\d+)", repetition)
                inner *= int(count[1]) if count else 1
            parts.append(inner)
        return "".join(parts)
