import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metrics.answer_check import VALID, judge
from harness.mockserver import sample
from harness.mockserver.sample import UnsupportedError, of_grammar, of_regex, of_schema
from harness.records.request_table import Expected

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
    assert made == {"items": [{"price": 5, "count": 3}] * 2, "state": "open", "note": None, "next": None}


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


def keeps(schema):
    return judge(Expected("json_schema", schema), of_schema(schema), "", "stop") == VALID


DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
TEXT = {"type": "string"}
CLOSED = {"additionalProperties": False, "properties": {"c": TEXT}}
NAMED = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}


@pytest.mark.parametrize(
    "schema",
    [
        {**NAMED, "required": ["a"], "anyOf": [{"required": ["b"]}]},
        {**NAMED, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"required": ["x"], "oneOf": [{"properties": {"y": TEXT}}, {"properties": {"x": {"const": 1}}}]},
        {"type": "object", "required": ["k"], "additionalProperties": {"type": "integer"}},
        {**NAMED, "required": ["a"], "minProperties": 2},
        {"allOf": [{"type": "string"}, {"minLength": 6}]},
        {"allOf": [NAMED, {"properties": {"a": {"minLength": 9}}}]},
        {"type": "string", "pattern": "^[a-z]{5}$", "minLength": 5, "maxLength": 5},
        {"type": "string", "format": "date", "minLength": 10},
        {"type": "array", "uniqueItems": True, "minItems": 1, "items": TEXT},
        {"type": "string", "enum": [1, "a"]},
        {"enum": [1, "abc"], "allOf": [{"minLength": 2}, {"type": "string"}]},
        {**NAMED, "required": ["a"], "anyOf": [CLOSED, {"required": ["b"]}]},
        {"type": "number", "multipleOf": 0.1, "exclusiveMinimum": 1},
        {"type": "number", "multipleOf": 0.1, "exclusiveMaximum": -1},
        {"type": "integer", "oneOf": [{"multipleOf": 2}, {"multipleOf": 4}, {"const": 3}]},
        {**DRAFT_4, "type": "number", "minimum": 2, "exclusiveMinimum": True},
        {**DRAFT_4, "type": "integer", "maximum": 2, "exclusiveMaximum": True, "minimum": 1},
    ],
)
def test_keywords_hold_together(schema):
    assert keeps(schema)


LIMITS = st.fixed_dictionaries(
    {"type": st.sampled_from(("number", "integer"))},
    optional={
        key: st.one_of(st.integers(-9, 9), st.floats(-9, 9, width=16))
        for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    }
    | {"multipleOf": st.sampled_from((1, 2, 3, 0.25, 0.1))},
)


@given(LIMITS)
def test_a_number_is_within_its_limits_or_refused(schema):
    try:
        assert keeps(schema)
    except UnsupportedError:
        assert len(schema) > 2  # a single limit has a number


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"minimum": 0.5, "maximum": 0.9}, 0.5),
        ({"exclusiveMinimum": 0, "maximum": 0.5}, 0.5),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"minimum": 0.1, "multipleOf": 0.25}, 0.25),
    ],
)
def test_a_step_is_taken_only_where_the_schema_has_one(limits, value):
    assert json.loads(of_schema({"type": "number", **limits})) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 2, "uniqueItems": True, "items": TEXT},
        {"type": "array", "prefixItems": [TEXT, TEXT], "maxItems": 1},
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 5},
        {"type": "string", "format": "date", "maxLength": 4},
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
        {**NAMED, "dependentRequired": {"a": ["c"]}},
        {"type": "object", "required": ["k"], "patternProperties": {"k": {"type": "integer"}}},
        {"allOf": [{"type": "integer", "minimum": 5}, {"minimum": 3}]},
        {"not": {"type": "string"}},
        {"type": "array", "contains": TEXT},
        {"type": "string", "const": 1},
        {"type": "string", "enum": [1, "abc"], "maxLength": 2},
        {**NAMED, "required": ["a"], "anyOf": [CLOSED]},
        {**NAMED, "propertyNames": {"maxLength": 0}},
        {"$ref": "#/$defs/a", "maxLength": 2, "$defs": {"a": TEXT}},
    ],
)
def test_a_combination_that_is_not_built_is_refused_and_never_answered_wrong(schema):
    with pytest.raises(UnsupportedError):
        of_schema(schema)


DOUBLED = {
    f"a{level}": {"properties": {key: {"$ref": f"#/$defs/a{level + 1}"} for key in "ab"}}
    for level in range(14)
}
MANY = {"prefixItems": [{"$ref": "#/$defs/a0"}] * 100, "$defs": {**DOUBLED, "a14": {"type": "null"}}}


ENDLESS = {"type": "array", "minItems": 10**9}


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        ({"type": "array", **MANY}, 500),  # each value is judged with all below it: 5,000 take a second
        (ENDLESS, sample.MAX_VALUES),
        ({"anyOf": [ENDLESS, ENDLESS]}, sample.MAX_VALUES),
    ],
)
def test_a_schema_of_very_many_values_is_refused(schema, most, monkeypatch):
    """It may have a finite value, and the message does not deny that."""
    monkeypatch.setattr(sample, "MAX_VALUES", most)
    with pytest.raises(UnsupportedError, match="more than 5,000 values are not simulated"):
        of_schema(schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2500}, [0] * 2500),
        (
            {"type": "object", "properties": {f"p{number}": TEXT for number in range(2100)}},
            {f"p{number}": "text" for number in range(2100)},
        ),
    ],
    ids=["items", "properties"],
)
def test_a_schema_of_thousands_of_values_is_answered(schema, value):
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
