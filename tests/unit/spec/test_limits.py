"""Limits of single keys, which stand in the types of their fields."""

from dataclasses import dataclass, fields
from types import NoneType
from typing import get_args, get_type_hints

import pytest

from harness.errors import SpecError
from harness.spec.scenario.generators import GENERATORS
from harness.spec.scenario.limits import MOST, Count, Share
from harness.spec.strict import build

GIVEN = {
    "file": "requests.jsonl",
    "labels": ["sport", "food"],
    "classes": [{"name": "short", "input_tokens": 8, "output_tokens": 8}],
    "seconds": [1.0],
}


def _numbers(kind):
    """The keys of a generator that take a number, or one or nothing."""
    for key, hint in get_type_hints(kind).items():
        if {*(get_args(hint) or (hint,))} - {NoneType} in ({int}, {float}):
            yield key


def _table(kind):
    return {field.name: GIVEN.get(field.name, 2) for field in fields(kind) if field.name != "generator"
            and (field.name in GIVEN or field.name in _numbers(kind))}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, kind in GENERATORS.items() for key in _numbers(kind)]
)
def test_no_number_of_a_generator_may_be_negative(name, key):
    kind = GENERATORS[name]
    with pytest.raises(SpecError) as refused:
        build(kind, {**_table(kind), key: -1}, "file.toml:prompts").check("file.toml:prompts")
    assert refused.value.where == f"file.toml:prompts.{key}"


@dataclass
class Inner:
    count: Count | None = None


@dataclass
class Outer:
    parts: tuple[Inner, ...] = ()
    spread: Share = 0.0


@pytest.mark.parametrize(
    ("table", "where", "what"),
    [
        ({"parts": [{}, {"count": 0}]}, "f:parts[1].count", "must be at least 1, not 0"),
        ({"parts": [{"count": MOST + 1}]}, "f:parts[0].count", "must be at most 10,000,000, not 10,000,001"),
        ({"parts": [{"count": "two"}]}, "f:parts[0].count", "must be a whole number, not 'two'"),
        ({"spread": 1}, "f:spread", "must be from 0 to below 1, not 1.0"),
    ],
)
def test_a_limit_in_a_type_names_the_key_that_breaks_it(table, where, what):
    with pytest.raises(SpecError) as refused:
        build(Outer, table, "f")
    assert (refused.value.where, refused.value.what) == (where, what)
