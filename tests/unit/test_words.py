"""English in the code: what docstrings begin with, and words that are no names of locals.

A docstring begins with a verb, a noun or a noun clause ("Whether …", "How many …"). A test cannot parse
English. The fragments that readers stumbled over begin with few words: prepositions, conjunctions, pronouns.
"""

import ast
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[2] / "harness"
SOURCES = sorted(HARNESS.rglob("*.py"))
FRAGMENTS = set(
    """where which whose why whatever wherever whichever while
    of by in as with without from for at to under per on between after before until over below above through
    into because if than beyond against within along across about since like up down out off
    and but or also only once not never then even still just always again already
    it its they them their those that""".split()
)
ENDS = ".:?!"
# Says nothing of what it holds; what to write instead depends on what that is.
NO_NAMES = {"told", "said", "made", "anew", "one", "of", "place", "kin", "unsaid"}

BOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, DESCRIBED) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text


def fragments(tree):
    """Docstrings that begin with no verb or noun, or whose first paragraph has no end."""
    for name, text in docstrings(tree):
        first, summary = text.split()[0].strip(",:;."), text.partition("\n\n")[0].rstrip()
        if first.lower() in FRAGMENTS:
            yield f"{name}: begins with '{first}'"
        elif summary.rstrip("`\"')")[-1:] not in ENDS:
            yield f"{name}: is no sentence"


def vague(tree):
    """Names of locals and parameters that say nothing."""
    for function in ast.walk(tree):
        if not isinstance(function, BOUND):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NO_NAMES:
                yield f"line {node.lineno}: {node.id}"
            elif isinstance(node, ast.arg) and node.arg in NO_NAMES:
                yield f"line {node.lineno}: {node.arg}"


def test_docstrings_are_sentences_and_names_say_something():
    found = {}
    for path in SOURCES:
        tree = ast.parse(path.read_text("utf-8"))
        found[path.relative_to(HARNESS).as_posix()] = sorted({*fragments(tree), *vague(tree)})
    assert len(found) > 500
    assert {name: breaches for name, breaches in found.items() if breaches} == {}


def test_what_breaks_a_rule_is_found():
    source = '"""Of a file."""\ndef read(told):\n    """Reads it"""\n    return [one for one in told]\n'
    tree = ast.parse(source)
    assert list(fragments(tree)) == ["module: begins with 'Of'", "read: is no sentence"]
    assert list(vague(tree)) == ["line 2: told", "line 4: one"]
