import json
import re

import pytest

from harness.mockserver.sample import UnsupportedError, of_grammar, of_regex, of_schema

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Z]{3}-\\d{4}$"},
        "items": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/item"}},
        "state": {"enum": ["open", "closed"]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "extra": {"type": "number"},
    },
    "required": ["id", "items", "state", "note", "next"],
    "$defs": {
        "item": {
            "allOf": [
                {"$ref": "#/$defs/priced"},
                {"properties": {"count": {"type": "integer", "minimum": 3}}},
            ],
            "required": ["count"],
        },
        "priced": {
            "properties": {"price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 5}},
            "required": ["price"],
        },
    },
}


def test_a_schema_is_answered_with_a_value_of_it():
    made = json.loads(of_schema(ORDER))
    assert re.fullmatch("[A-Z]{3}-[0-9]{4}", made.pop("id"))
    assert made == {
        "items": [{"price": 5, "count": 3}] * 2,
        "state": "open",
        "note": None,
        "next": None,
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 7}, 7),
        ({"type": "integer", "maximum": -3}, -3),
        ({"type": "integer", "exclusiveMaximum": 0}, -1),
        ({"type": "boolean"}, True),
        ({"type": ["null", "string"]}, None),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"items": {"type": "string"}}, []),
        ({"type": "array", "prefixItems": [{"type": "null"}, {"type": "boolean"}]}, [None, True]),
        ({"properties": {"a": {"type": "null"}}}, {"a": None}),
        ({"oneOf": [{"$ref": "#/nowhere"}, {"type": "null"}]}, None),
    ],
)
def test_each_keyword_is_kept(schema, value):
    assert json.loads(of_schema(schema)) == value


@pytest.mark.parametrize(
    "schema", [{"type": "thing"}, {"$ref": "#/nowhere"}, {"$ref": "#"}, [], {"anyOf": [{"type": "thing"}]}]
)
def test_a_schema_without_a_value_is_refused(schema):
    with pytest.raises(UnsupportedError):
        of_schema(schema)


@pytest.mark.parametrize(
    ("pattern", "made"),
    [
        (r"(yes|no)", "yes"),
        (r"\d{3}-\d{2,4}", "000-00"),
        (r"[^a]x*y+z?", "Ay"),
        (r"^(?:Mr|Ms)\.? [A-Z]\w+$", "Mr Aa"),
        (r"a\(b\)\[c\]", "a(b)[c]"),
        (r"(?P<year>[12]\d{3})", "1000"),
        (r"[\d]{2}.", "00a"),
        (r"\[[^\]]*\]", "[]"),
        (r"[\]x][]x][^^]", "]]a"),
        (r"", ""),
    ],
)
def test_an_expression_is_answered_with_a_text_it_matches(pattern, made):
    assert of_regex(pattern) == made
    assert re.fullmatch(pattern, made)


@pytest.mark.parametrize("pattern", [r"(?=b)a", r"[", r"(", r"\bx\B", r"(a)\1", r"[^\s\S]"])
def test_an_expression_beyond_it_is_refused_and_never_answered_wrong(pattern):
    with pytest.raises(UnsupportedError):
        of_regex(pattern)


@pytest.mark.parametrize(
    ("grammar", "made"),
    [
        ('root ::= "yes" | "no"', "yes"),
        ('root ::= item ("," item)* "."  # a list\nitem ::= [a-z]+ "=" num\nnum ::= [0-9]{2,3}', "a=00."),
        ('value ::= "x"\nroot ::= ("a" | value) value?', "a"),
        ('root ::= "\\"q\\"" ws\nws ::= [ \\t]*', '"q"'),
        ('root ::= [\\]"] | "\\x41"', "]"),
    ],
)
def test_a_grammar_is_answered_with_its_first_alternatives(grammar, made):
    assert of_grammar(grammar) == made


@pytest.mark.parametrize("grammar", ["", 'start ::= "a"', "root ::= missing", "root ::= root"])
def test_a_grammar_that_says_nothing_is_refused(grammar):
    with pytest.raises(UnsupportedError):
        of_grammar(grammar)
