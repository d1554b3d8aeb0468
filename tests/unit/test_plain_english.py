"""`make lint` finds a sentence that breaks one of the rules of .ci/prose.py, and reads the whole project."""

import importlib.util
from pathlib import Path

import pytest

from harness.host import paths

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("prose", ROOT / ".ci" / "prose.py")
prose = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(prose)


def read():
    patterns = (*prose.PAGES, *prose.TEXTS, *prose.CODE)
    return {path for pattern in patterns for path in ROOT.glob(pattern)}


def page(text):
    return [str(one) for one in prose.of_page(text, "README.md")]


def test_the_check_reads_the_project():
    assert Path(paths.__file__) in read()
    assert {ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "backends" / "vllm.toml"} <= read()
    assert len(read()) > 400


@pytest.mark.parametrize(
    "sentence",
    [
        "Two servers are measured by turns.",
        "It is told in one list.",
        "The GPU is sampled beside the load.",
        "At eight no word is given.",
        "Nobody intended a time.",
        "The lock is made anew.",
        "GGUF is another numeric track.",
        "Its other runs speak too well of it.",
        "The verdict does not follow from the line.",
    ],
)
def test_a_sentence_that_breaks_a_rule_is_found_on_a_page(sentence):
    (finding,) = page(f"# Title\n\nA first line.\n{sentence}\n")
    assert finding.startswith("README.md:4: ")


@pytest.mark.parametrize("rule", prose.RULES)
def test_what_a_rule_recommends_breaks_none(rule):
    assert page(prose.RULES[rule]) == []


def test_code_is_left_alone():
    assert page("# Title\n\n```\nmeasured by turns\n```\n\nA value `told` is a name.\n") == []


def test_a_long_sentence_is_found_where_its_paragraph_begins():
    words = " ".join(["word"] * (prose.LONGEST - 1))
    assert page(f"# T\n\nShort one.\n\n- {words} end. Next.\n") == []
    (finding,) = page(f"# T\n\nShort one.\n\n- A {words} end. Next.\n")
    assert finding.startswith(f"README.md:5: {prose.LONGEST + 1} words: A word")


def test_a_page_of_docs_says_first_what_the_reader_gets():
    def purpose(text):
        return list(prose.of_page(text, "docs/some.md"))

    assert purpose("# Title\n\nThis page shows how to do it.\n") == []
    (finding,) = purpose("# Title\n\n```\nbench\n```\n")
    assert finding.text == "no purpose below the title"


def test_strings_docstrings_and_comments_are_read_and_names_are_not():
    source = (
        '"""Sent by turns."""\nGIVEN = {"told": "a value"}\nraise Error(f"{name} is not told")  # as `told`\n'
    )
    source += "told = 1  # made anew\n"
    assert sorted(one.line for one in prose.of_code(source, "some.py")) == [1, 3, 4]
