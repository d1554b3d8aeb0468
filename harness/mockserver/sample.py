"""A shortest answer that a constraint allows: for a JSON schema, a regular expression, a grammar.

As far as benchmarks use them. UnsupportedError for the rest, which the server refuses, as engines do.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 32


class UnsupportedError(ValueError):
    """The message is for the client."""


def of_schema(schema: Any) -> str:
    return json.dumps(_value(schema, schema, 0), ensure_ascii=False)


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
            return _simplest(schema[one_of], root, depth)
    if schema.get("allOf"):
        return _value(_merged(schema, root), root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    return _of_type(kind or _implied(schema), schema, root, depth)


# A JSON schema of a client's is any JSON: every key is looked at where it is used.


def _merged(schema: Mapping[str, Any], root: Any) -> dict[str, Any]:
    """`allOf` and what stands next to it, as one object schema."""
    own = {key: value for key, value in schema.items() if key != "allOf"}
    properties: dict[str, object] = {}
    required: list[object] = []
    others: dict[str, object] = {}
    for part in (*schema["allOf"], own):
        whole = _referred(part["$ref"], root) if "$ref" in part else part
        properties |= whole.get("properties", {})
        required += whole.get("required", ())
        others |= whole
    return others | {"properties": properties, "required": required}


def _implied(schema: Mapping[str, object]) -> str:
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _of_type(kind: str, schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    match kind:
        case "object":
            known = schema.get("properties", {})
            names = schema.get("required", known)
            return {name: _value(known.get(name, True), root, depth + 1) for name in names}
        case "array":
            items = schema.get("prefixItems", [])
            values = [_value(item, root, depth + 1) for item in items]
            while len(values) < schema.get("minItems", 0):
                values.append(_value(schema.get("items", True), root, depth + 1))
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


def _simplest(choices: list[Any], root: Any, depth: int) -> Any:
    """The first that ends, null before others: so a recursive type ends soon."""
    for choice in sorted(choices, key=lambda choice: choice != {"type": "null"}):
        try:
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
    if "pattern" in schema:
        return of_regex(schema["pattern"])
    text: str = _FORMATS.get(schema.get("format", ""), "text")
    return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), "x")


def _number(schema: Mapping[str, Any], whole: bool) -> int | float:
    step = schema.get("multipleOf", 1)
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    value = 0 if low is None else low
    if high is not None and value > high:
        value = high
    if value % step:
        value += step - value % step
    return int(value) if whole else value


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
