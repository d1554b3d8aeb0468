"""English in the code: what docstrings and texts of keys begin with, and words that are no names of locals.

A docstring begins with a verb, a noun or a noun clause ("Whether …", "How many …"), and so does the text of a
key, which readers see without its class. A test cannot parse English. The fragments that readers stumbled
over begin with few words: prepositions, conjunctions, pronouns.
"""

import ast
from pathlib import Path

from tests.sources import tree

HARNESS = Path(__file__).resolve().parents[2] / "harness"
SOURCES = sorted(HARNESS.rglob("*.py"))
MODEL = sorted((HARNESS / "model").rglob("*.py"))
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
STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(tree):
    """Of the module, and of classes and functions, which stand among statements and in no expression."""
    ahead = [tree]
    while ahead:
        node = ahead.pop()
        ahead += [one for one in ast.iter_child_nodes(node) if isinstance(one, STATEMENTS)]
        if isinstance(node, DESCRIBED) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "module"), text


def fault(text):
    """What is wrong with a text that begins with no verb or noun, or whose first paragraph has no end."""
    first, summary = text.split()[0].strip(",:;."), text.partition("\n\n")[0].rstrip()
    if first.lower() in FRAGMENTS:
        return f"begins with '{first}'"
    return "" if summary.rstrip("`\"')")[-1:] in ENDS else "is no sentence"


def fragments(tree):
    for name, text in docstrings(tree):
        if wrong := fault(text):
            yield f"{name}: {wrong}"


def constants(tree):
    """Strings of the module by name."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from ((target.id, node.value.value) for target in node.targets)


def key_texts(tree, named):
    """Texts of keys: of `doc("…")`, and of `doc(NAME)` by `named`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "doc":
            yield named[node.args[0].id] if isinstance(node.args[0], ast.Name) else node.args[0].value


def riddles(texts):
    """Texts of keys that do not say what the value is: fragments, single words, nulls alone."""
    for text in texts:
        if wrong := fault(text):
            yield f"{text} {wrong}"
        elif " " not in text or text.startswith("Null"):
            yield f"{text} does not say what it is"


def vague(tree):
    """Names of locals and parameters that say nothing."""
    ahead = [(tree, False)]
    while ahead:
        node, bound = ahead.pop()  # bound: it stands in a function
        bound = bound or isinstance(node, BOUND)
        if isinstance(node, ast.Name):  # nothing is below it but whether it is stored
            if bound and isinstance(node.ctx, ast.Store) and node.id in NO_NAMES:
                yield f"line {node.lineno}: {node.id}"
            continue
        if isinstance(node, ast.arg) and node.arg in NO_NAMES:
            yield f"line {node.lineno}: {node.arg}"
        ahead += [(one, bound) for one in ast.iter_child_nodes(node)]


def test_docstrings_are_sentences_and_names_say_something():
    found = {}
    for path in SOURCES:
        module = tree(path)
        found[path.relative_to(HARNESS).as_posix()] = sorted({*fragments(module), *vague(module)})
    assert len(found) > 500
    assert {name: breaches for name, breaches in found.items() if breaches} == {}


def test_the_text_of_a_key_says_what_its_value_is():
    trees = [tree(path) for path in MODEL]
    named = {name: text for module in trees for name, text in constants(module)}
    texts = [text for module in trees for text in key_texts(module, named)]
    assert len(texts) > 900
    assert list(riddles(texts)) == []


def test_what_breaks_a_rule_is_found():
    source = '"""Of a file."""\ndef read(told):\n    """Reads it"""\n    return [one for one in told]\n'
    module = ast.parse(source)
    assert sorted(fragments(module)) == ["module: begins with 'Of'", "read: is no sentence"]
    assert sorted(vague(module)) == ["line 2: told", "line 4: one"]


def test_a_riddle_of_a_key_is_found():
    riddling = ("In words.", "Label of a", "Label.", "Null: no price.")
    source = "\n".join(f'doc("{text}")' for text in (*riddling, "Error message.", "Median, ms."))
    module = ast.parse(f'OF = "Of two."\ndoc(OF)\n{source}')
    assert list(riddles(key_texts(module, dict(constants(module))))) == [
        "Of two. begins with 'Of'",
        "In words. begins with 'In'",
        "Label of a is no sentence",
        "Label. does not say what it is",
        "Null: no price. does not say what it is",
    ]
