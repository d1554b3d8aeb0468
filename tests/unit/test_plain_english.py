"""Phrases that readers stumbled over stay out of everything a person reads."""

from pathlib import Path

import pytest

from harness.host import paths

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("harness", "docs", "workloads", "backends", "compose")
FILES = ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")
ENDINGS = {".py", ".md", ".toml", ".yaml", ".html", ".js", ".css"}
PHRASES = (
    "asked of every answer",
    "against its definition first",
    "are read this often",
    "began anew",
    "below how far they",
    "brought about",
    "does not follow from the line",
    "elsewhere alike",
    "has nothing to be compared",
    "held against",
    "held to a form",
    "hold runs against",
    "in a container says",
    "kept from running",
    "less exactly",
    "no limits to keep",
    "nothing was full",
    "so long for a",
    "stands twice",
    "that it has not",
    "under our hands",
    "what befalls",
    "what came out",
    "what else speaks",
)


def texts():
    folders = [path for place in PLACES for path in (ROOT / place).rglob("*")]
    files = [path for path in folders if path.suffix in ENDINGS and "__pycache__" not in path.parts]
    return [*files, *(ROOT / name for name in FILES)]


def test_the_search_sees_the_project():
    assert paths.__file__ in {str(path) for path in texts()}
    assert len(texts()) > 400


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_nobody_says_is_not_said(phrase):
    said = [path.relative_to(ROOT) for path in texts() if phrase in path.read_text(encoding="utf-8").lower()]
    assert not said
