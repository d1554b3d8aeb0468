"""Every `bench` line in the docs is taken by the command line, and names scenarios and engines that exist."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from harness.cli.flags.parsers import ADDRESSED, COMMANDS, command_parser
from harness.errors import BenchError
from harness.spec.backend_refs import parse_backend_list
from harness.spec.scenario.definition import load_scenario

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "results" / "published" / "README.md"]
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```|^((?: {4,}[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:\$ )?(?:\w+=\S+ )*(?:\S*/)?bench(?= )")
_AFTER = ("|", ">", "&&", ";", "&")  # the rest is another command's


def commands(text):
    """Of every block the lines with `bench`, as words, but those that leave something out."""
    for block in _BLOCK.findall(text):
        lines = iter("".join(block).replace("\\\n", " ").splitlines())
        for line in lines:
            if _COMMAND.match(line) and "…" not in line:
                yield _words(line, lines)


def _words(line, following):
    """A quoted text may go on over several lines."""
    try:
        words = shlex.split(_COMMAND.sub("bench", line), comments=True)
    except ValueError:
        return _words(f"{line}\n{next(following)}", following)
    return list(takewhile(lambda word: word not in _AFTER, words))


SAID = [
    pytest.param(words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}"[:120])
    for page in PAGES
    for words in commands(page.read_text(encoding="utf-8"))
]


def test_the_pages_hold_commands():
    assert len(SAID) > 50


@pytest.mark.parametrize("words", SAID)
def test_a_command_of_the_docs_is_taken(words):
    _bench, first, *rest = words
    if first.startswith("-"):
        return
    command, given = (first, rest) if first in COMMANDS else (ADDRESSED, [first, *rest])
    try:
        arguments = command_parser(command).parse_args(given)
        if command == "run" and arguments.scenario not in (None, "NAME"):
            load_scenario(arguments.scenario)
        if command == "run" and arguments.backends and "@tuned" not in arguments.backends:  # of `bench tune`
            parse_backend_list(arguments.backends)
    except SystemExit:  # --help
        return
    except BenchError as error:
        pytest.fail(str(error))
