"""Every `bench` line in the docs is taken by the command line, and names scenarios and engines that exist."""

import argparse
import functools
import re
import shlex
import shutil
import wave
from itertools import takewhile
from pathlib import Path

import pytest

from harness.cli.commands.run import Options
from harness.cli.flags.parsers import ADDRESSED, COMMANDS, command_parser
from harness.errors import BenchError
from harness.run.setup.prepare import prepare
from harness.spec.backend_refs import parse_backend_list
from harness.spec.scenario.definition import load_scenario
from tests.factories.replays import write_mooncake, write_sessions

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "results" / "published" / "README.md"]
_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```|^((?: {4,}[^\n]*\n)+)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:\$ )?(?:\w+=\S+ )*(?:\S*/)?bench(?= )")
EARLIER = "20261120T070251Z-shared-prefix-a8d2cb"  # a published run that a page replays
_OPEN = re.compile(r"\$|@tuned| NAME | --help\b")
_AFTER = ("|", ">", "&&", "||", ";", "&")  # the rest is another command's


parser_of, scenario_of = functools.cache(command_parser), functools.cache(load_scenario)


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


def test_the_page_of_the_commands_has_every_one():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert {name for name in COMMANDS if not re.search(rf"`bench {name}\b", page)} == set()


def flags_of(parser):
    """Shown flags of a command and of its actions."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from flags_of(below)
        elif action.help != argparse.SUPPRESS:
            yield from (flag for flag in action.option_strings if flag.startswith("--"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_on_a_page(command):
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert {*flags_of(command_parser(command))} - {*re.findall(r"--[a-z][a-z0-9-]*", pages)} == set()


def test_the_page_of_the_commands_has_every_environment_variable():
    """But what bench sets itself, and what Compose alone reads, which the head of its files lists."""
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(BENCH_\w+?)_?…?`", page))
    files = [path for path in ROOT.glob("harness/**/*.py") if path.parts[-2:] != ("containers", "files.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    read = set(re.findall(r'"(BENCH_\w+?)_?"', source))
    assert "BENCH_CACHE" in read
    assert read - named == {"BENCH_KIT", "BENCH_INSTALL"}


@pytest.mark.parametrize("words", SAID)
def test_a_command_of_the_docs_is_taken(words):
    _bench, first, *rest = words
    if first.startswith("-"):
        return
    command, given = (first, rest) if first in COMMANDS else (ADDRESSED, [first, *rest])
    try:
        arguments = parser_of(command).parse_args(given)
        if command == "run" and arguments.scenario not in (None, "NAME"):
            scenario_of(arguments.scenario)
        if command == "run" and arguments.backends and "@tuned" not in arguments.backends:  # of `bench tune`
            parse_backend_list(arguments.backends, own=arguments.variants)
    except SystemExit:  # --help
        return
    except BenchError as error:
        pytest.fail(str(error))


def planned():
    """Distinct lines that start a run, but those with a name to fill in or with what `bench tune` stored."""
    lines = dict.fromkeys(shlex.join(words) for (words,) in (said.values for said in SAID))
    return [line for line in lines if line.startswith("bench run ") and not _OPEN.search(line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the pages take for there: traces, an earlier run, prompts, schemas, recordings, models."""
    folder = tmp_path_factory.mktemp("reader")
    write_mooncake(folder / "FILE", requests=20)
    write_sessions(folder / "weka.jsonl", sessions=16)
    shutil.copytree(ROOT / "results" / "published" / EARLIER, folder / "results" / EARLIER)
    prompts = (f'{{"prompt": "Why is the sky {colour}?"}}\n' for colour in ("blue", "red", "grey", "black"))
    (folder / "mine.jsonl").write_text("".join(prompts))
    bills = (f'"Bill {number}, as JSON.","{{""type"": ""object""}}"\n' for number in range(40))
    (folder / "bills.csv").write_text("".join(["prompt,schema\n", *bills]))
    asked = [(kind, index) for kind in ("math", "code") for index in range(20)]
    turns = (f'{{"category": "{kind}", "turns": ["What is {kind} {index}?"]}}\n' for kind, index in asked)
    (folder / "question.jsonl").write_text("".join(turns))
    for name in ("FOLDER", "speech", "bge-small-en"):
        (folder / name).mkdir()
    (folder / "FOLDER" / "one.json").write_text('{"type": "object"}')
    with wave.open(str(folder / "speech" / "01.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", None))
        file.writeframes(bytes(32_000))
    (folder / "bge-small-en" / "config.json").write_text('{"model_type": "bert"}')
    (folder / "model.gguf").write_bytes(b"GGUF")
    return folder


@pytest.mark.parametrize("line", planned())
def test_a_run_of_the_docs_is_one_that_can_be_planned(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("harness.cluster.options.find_spec", lambda name: name)  # Ray, an extra
    for name in ("MY_KEY", "KEY_A", "KEY_B", "GATE_KEY"):
        monkeypatch.setenv(name, "secret")
    try:
        prepare(Options.from_parsed(parser_of("run").parse_args(shlex.split(line)[2:]), ("bench",)).run)
    except BenchError as error:
        pytest.fail(f"{error}; {error.hint}")
