"""Nothing stands in a definition for show: each declared key is read somewhere behind the specification."""

import ast
import dataclasses
import functools
import re
import typing
from pathlib import Path

import pytest

import harness
from harness.spec.backend import Backend
from tests.sources import text_of, tree

HARNESS = Path(harness.__file__).parent
# The definition itself, and the scripted server, which has declarations of its own.
ELSEWHERE = {"spec", "mockserver"}


def declared(cls, found):
    """Every dataclass below [backend] files, with its fields."""
    if cls in found:
        return found
    found[cls] = [field.name for field in dataclasses.fields(cls)]
    for hint in typing.get_type_hints(cls).values():
        for part in (hint, *typing.get_args(hint)):
            if dataclasses.is_dataclass(part):
                declared(part, found)
    return found


# Read by name from declared lists, or handed on whole with dataclasses.asdict(): where that is.
WHOLE = {
    "Counters": "engines/speak/server.py, sampling",
    "Gauges": "engines/speak/server.py, sampling",
    "Histograms": "sampling",
    "Images": "engines/start/launch_choice.py",
    "Structured": "engines/speak/dialect.py",
}
ATTRIBUTE = re.compile(r"\.(\w+)")
KEYS = {cls: fields for cls, fields in declared(Backend, {}).items() if cls.__name__ not in WHOLE}


@functools.cache
def unread():
    """Names of declared keys that are no attribute in the package, nor in what makes the page of engines."""
    names = {name for fields in KEYS.values() for name in fields}
    pages = HARNESS.parent / ".ci" / "pages"
    for path in (*HARNESS.rglob("*.py"), *pages.glob("*.py")):
        if path.relative_to(HARNESS.parent).parts[1] in ELSEWHERE:
            continue
        if names.isdisjoint(ATTRIBUTE.findall(text_of(path))):  # so is the tree, which is slow to make
            continue
        names = names - {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    return names


@pytest.mark.parametrize("cls", KEYS, ids=lambda cls: cls.__name__)
def test_every_key_of_a_definition_is_read(cls):
    left = unread().intersection(KEYS[cls])
    assert not left, f"[{cls.__name__}]: nothing reads {', '.join(sorted(left))}"
