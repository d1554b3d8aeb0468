"""Checks the language of what people read: `make lint`. Prints place, finding and what to write; exits 1.

- Pages (Markdown, outside of code): RULES, PHRASES, the length of sentences, and a first sentence.
- Strings, docstrings and comments of harness/, page templates, and definitions in TOML: RULES and PHRASES.
- Other code: PHRASES.

No linter from elsewhere: proselint looks for clichés and typography, and vale fetches its program when it
first runs. Both would need the same rules.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "results/published/README.md", "harness/**/*.md")
CODE = (
    "harness/**/*.py",
    "harness/**/*.js",
    "harness/**/*.css",
    "compose/**/*.y*ml",
    "Makefile",
    "pyproject.toml",
)
TEXTS = ("backends/*.toml", "workloads/*.toml", "harness/cli/**/*.toml", "harness/**/*.html")
VOCABULARY = "harness/workload/prompts/words.py"  # of made-up prompts: other words are another workload
LONGEST = 45  # words of a sentence

# What readers stumbled over, as a regular expression -> what to write.
RULES = {
    r"\btold\b": "reported, given, known",
    r"\bby turns\b": "alternately",
    r"\bbeside\b": "next to, during, with",
    r"\banew\b": "again",
    r"\bwithout a word\b": "silently, unreported",
    r"\b(a|the|each|every|all) words? (is|are|on|at|once|has|have|holds?)\b": "verdict",
    r"\b(false|true|right) words?\b": "verdict",
    r"\b(numeric|another|different|other) tracks?\b|\btracks? (is|are|of)\b|\btracks:": "weights",
    r"\bnobody intended\b": "a closed loop has no schedule",
    r"\bhalf as long again\b": "1.5 × its expected time",
    r"\bonly as far as\b": "ranks them, and says when the data cannot separate them",
    r"\bthe line that it stands for\b": "the equivalent command",
    r"\bspeaks? too well of\b": "would flatter",
    r"\bno word is\b": "there is no verdict",
    r"\bbefalls?\b": "happens to",
    r"\bwhyever\b": "for whatever reason",
    r"\bin company\b": "together with others",
    r"\bcourse of its\b": "history of its",
}
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
_ANY_RULE = re.compile("|".join(f"(?:{rule})" for rule in RULES), re.IGNORECASE)
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LIST = re.compile(r"^(?:[-*]|\d+\.) +")
_END = re.compile(r"(?<=[.!?])[\"*)]* +(?=[A-Z0-9`*\[\"(])")
_LANDING = "docs/index.md"


class Finding(NamedTuple):
    place: str
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.place}:{self.line}: {self.text}: {self.instead}"


def findings(root: Path = ROOT) -> Iterator[Finding]:
    """Everything below `root` that a rule forbids."""
    for path in _files(root, PAGES):
        yield from of_page(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    for path in _files(root, TEXTS):
        yield from of_text(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    for path in _files(root, CODE):
        text, place = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        yield from _phrases(text, place)
        if path.suffix == ".py" and place != VOCABULARY:
            yield from of_code(text, place)


def of_page(text: str, place: str) -> Iterator[Finding]:
    """Of Markdown. Code keeps its lines as empty ones, so that line numbers hold."""
    prose = _COMMENT.sub(_blank, _FENCE.sub(_blank, text))
    yield from of_text(_CODE.sub("``", prose), place)
    for line, sentence in sentences(prose):
        words = len(sentence.split())
        if words > LONGEST:
            yield Finding(place, line, f"{words} words: {sentence[:50]}…", f"at most {LONGEST} in a sentence")
    if place.startswith("docs/") and place != _LANDING and not _says_what_it_is_for(text):
        yield Finding(place, 1, "no purpose below the title", '"This page …": say first what the reader gets')


def of_text(text: str, place: str) -> Iterator[Finding]:
    """Of anything that is shown as it stands."""
    yield from _phrases(text, place)
    for number, line in enumerate(text.splitlines(), 1):
        yield from _ruled(line, place, number)


def of_code(source: str, place: str) -> Iterator[Finding]:
    """Of Python: comments, and strings of two words and more. What stands in backticks is left alone."""
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text.strip():
            yield from _ruled(_CODE.sub("``", text), place, node.lineno)
    if not any("#" in line and _ANY_RULE.search(line) for line in source.splitlines()):
        return  # no comment can break a rule
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from _ruled(_CODE.sub("``", token.string), place, token.start[0])


def sentences(prose: str) -> Iterator[tuple[int, str]]:
    """Of paragraphs and list items, each with the line where that begins. Tables and headings have none."""
    start, block = 0, list[str]()
    for number, line in enumerate([*prose.splitlines(), ""], 1):
        text = line.strip()
        ends = not text or text.startswith(("|", "#", "<", "!"))
        if (ends or _LIST.match(text)) and block:
            for sentence in _END.split(" ".join(block)):
                yield start, sentence
            block = []
        if not ends:
            start = start if block else number
            block.append(_LIST.sub("", text))


def _says_what_it_is_for(text: str) -> bool:
    return text.partition("\n")[2].lstrip().startswith("This page ")


def _phrases(text: str, place: str) -> Iterator[Finding]:
    text = text.lower()
    if not any(phrase in text for phrase in PHRASES):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for phrase in PHRASES:
            if phrase in line:
                yield Finding(place, number, phrase, "nobody says this")


def _ruled(line: str, place: str, number: int) -> Iterator[Finding]:
    if not _ANY_RULE.search(line):
        return
    for rule, instead in RULES.items():
        for match in re.finditer(rule, line, re.IGNORECASE):
            yield Finding(place, number, match[0], instead)


def _files(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(root.glob(pattern))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


if __name__ == "__main__":
    found = [str(finding) for finding in findings()]
    if found:
        sys.exit("\n".join([*found, f"{len(found)} findings: .ci/prose.py has the rules"]))
