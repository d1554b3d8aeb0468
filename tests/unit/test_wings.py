"""Wings of a room, its sub-packages, import one another in one direction, and each says what it offers.

`python tests/unit/test_wings.py` writes their table in docs/architecture.md.
"""

import ast
from collections import Counter

import pytest

from tests.sources import tree
from tests.unit.test_rooms import HARNESS, PAGE, imports, statements

# room -> wing -> wings of this room it may import, all of them above it: there is no circle
WINGS = {
    "cli": {"flags": set(), "display": set(), "commands": {"display", "flags"}},
    "engines": {
        "shims": set(),
        "provide": set(),
        "speak": set(),
        "start": {"provide", "speak"},
        "check": {"provide", "speak", "start"},
    },
    "metrics": {"peers": set()},
    "mockserver": {"dialects": set()},
    "python": {"public": set()},
    "report": {
        "charts": set(),
        "exchange": set(),
        "findings": set(),
        "tables": {"findings"},
        "plots": {"charts"},
        "blocks": {"findings", "tables"},
        "text": {"blocks", "findings", "tables"},
        "html": {"blocks", "charts", "findings", "plots", "tables"},
    },
    "run": {"setup": set(), "measure": {"setup"}, "keep": {"measure", "setup"}},
    "sampling": {"sources": set()},
    "spec": {"scenario": set()},
    "workload": {"traces": set(), "prompts": {"traces"}},
}
# A basename twice in a room where one module is the counterpart of the other, and is read next to it.
COUNTERPARTS = {
    "engines": {"random_weights"},  # the shim that draws them, and what starts it
    "report": {"several"},  # html: the section of a page
    "workload": {"recorded"},
}


def face(room, wing):
    """Docstring of a wing; empty for a folder that is no package (`public`)."""
    source = HARNESS / room / wing / "__init__.py"
    return (ast.get_docstring(tree(source)) or "") if source.is_file() else ""


def table():
    rows = ["| wing | offers | may import of its room |", "|---|---|---|"]
    for room, wings in WINGS.items():
        for wing, others in wings.items():
            offers = face(room, wing).partition("\n")[0]
            allowed = ", ".join(f"`{name}`" for name in sorted(others)) or "–"
            rows += [f"| `{room}/{wing}` | {offers} | {allowed} |"] if offers else []
    return "\n".join(rows)


def with_table(page):
    before, start, rest = page.partition("<!-- wings -->")
    _, end, after = rest.partition("<!-- /wings -->")
    return f"{before}{start}\n{table()}\n{end}{after}"


def unit(room, module):
    """Wing or floor module (`.name`) of `room` that a dotted module lies in; None outside of the room."""
    parts = module.split(".")
    if parts[:2] != ["harness", room] or len(parts) < 3:
        return None
    if parts[2] in WINGS[room]:
        return parts[2]
    return f".{parts[2]}" if (HARNESS / room / f"{parts[2]}.py").is_file() else None


def arrows(room):
    """Pairs (unit that imports, unit that is imported) within a room."""
    for path in sorted((HARNESS / room).rglob("*.py")):
        parts = path.relative_to(HARNESS.parent).with_suffix("").parts
        own = unit(room, ".".join(parts)) or f".{parts[-1]}"
        modules = [*imports(path)]
        for node in statements(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules += [f"{node.module}.{alias.name}" for alias in node.names]
        yield from {(own, other) for module in modules if (other := unit(room, module)) not in (None, own)}


def test_every_sub_package_is_a_wing_with_a_face():
    found = {
        (path.parent.name, path.name)
        for path in HARNESS.glob("*/*/")
        if not path.name.startswith("_") and any(path.glob("**/*.py"))
    }
    assert found == {(room, wing) for room, wings in WINGS.items() for wing in wings}
    assert [name for name in sorted(found) if not face(*name)] == [("python", "public")], "no docstring"


@pytest.mark.parametrize("room", WINGS)
def test_wings_import_only_wings_above_them(room):
    above = set()
    for wing, others in WINGS[room].items():
        assert others <= above
        above.add(wing)
    reached = {(own, other) for own, other in arrows(room) if own in above and other in above}
    assert reached <= {(wing, other) for wing, others in WINGS[room].items() for other in others}


@pytest.mark.parametrize("room", WINGS)
def test_a_module_on_the_floor_serves_the_wings_or_uses_them(room):
    pairs = set(arrows(room))
    uses = {own for own, other in pairs if own.startswith(".") and not other.startswith(".")}
    serves = {other for own, other in pairs if other.startswith(".") and not own.startswith(".")}
    assert uses & serves == set(), "a circle through the floor of the room"


@pytest.mark.parametrize("room", WINGS)
def test_a_name_is_used_once_in_a_room(room):
    names = Counter(path.stem for path in (HARNESS / room).rglob("*.py") if path.stem[0] != "_")
    assert {name for name, times in names.items() if times > 1} == COUNTERPARTS.get(room, set())


def test_the_architecture_page_shows_the_wings():
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "stale: run python tests/unit/test_wings.py"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
