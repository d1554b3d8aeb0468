"""Keys that a release has written keep their place and type, or the number of the format is raised.

`released_keys.json` has a digest of every path and type of each document, as of the last release. Which of
them is gone stands in the diff of the schema. Write it again at a release, by
`python tests/unit/model/test_released_keys.py`; keys that were added need nothing.
"""

import hashlib
import json
from pathlib import Path

import pytest

from harness.model import schema

RELEASED = Path(__file__).with_name("released_keys.json")


def paths(node, defs, where="$"):
    """`$.cells[].load.kind: string` for every place in a document; values of an enumeration may be added."""
    if "$ref" in node:
        yield from paths(defs[node["$ref"].rpartition("/")[2]], defs, where)
        return
    for option in node.get("anyOf", ()):
        yield from paths(option, defs, where)
    kinds = node.get("type", "string" if "enum" in node else "any")
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield f"{where}: {kind}"
    for key, below in node.get("properties", {}).items():
        yield from paths(below, defs, f"{where}.{key}")
    if isinstance(items := node.get("items"), dict):
        yield from paths(items, defs, f"{where}[]")
    for number, item in enumerate(node.get("prefixItems", ())):
        yield from paths(item, defs, f"{where}[{number}]")
    if isinstance(values := node.get("additionalProperties"), dict):
        yield from paths(values, defs, f"{where}.*")


def digests(document):
    places = set(paths(document, document["$defs"]))
    return sorted({hashlib.sha256(place.encode()).hexdigest()[:5] for place in places})


def current():
    return {
        kind: {"format": document.version, "keys": " ".join(digests(schema.schema(kind)))}
        for kind, document in schema.DOCUMENTS.items()
    }


@pytest.mark.parametrize("kind", schema.DOCUMENTS)
def test_no_key_of_a_release_is_gone_or_has_another_type(kind):
    released = json.loads(RELEASED.read_text("utf-8"))[kind]
    if schema.DOCUMENTS[kind].version != released["format"]:
        return
    gone = set(released["keys"].split()) - set(digests(schema.schema(kind)))
    assert not gone, (
        f"{len(gone)} places of {kind} are gone or have another type (git diff {schema.path(kind).name}): "
        "keep them, or raise the number of the format and read older files in harness/store/migration.py"
    )


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (lambda keys: keys.pop("repeat"), True),
        (lambda keys: keys.update(repeat={"type": "string"}), True),
        (lambda keys: keys.update(later={"type": "string"}), False),
    ],
    ids=["a key less", "another type", "a key more"],
)
def test_a_change_that_breaks_is_told_from_one_that_does_not(change, noticed):
    changed = schema.schema("summary")
    before = digests(changed)
    change(changed["$defs"]["CellResult"]["properties"])
    assert bool(set(before) - set(digests(changed))) is noticed


if __name__ == "__main__":
    RELEASED.write_text(json.dumps(current(), indent=1) + "\n", "utf-8")
