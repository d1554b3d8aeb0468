"""What all commands have in common: typed options, --json, and a result that is printed in one place."""

import argparse
import io
import json
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from harness.cli.commands import engines, kit
from harness.cli.display.result import Result, put
from harness.cli.flags.parsers import COMMANDS, command_parser
from harness.cli.typed import Flags
from harness.errors import SetupError

# Their output is a file in a format of its own, the page of a night, or what a server of theirs writes.
WITHOUT_JSON = {"completion", "compose", "export", "logs", "nightly", "truth"}
ACTIONS = {
    "engines": {
        "install": engines.Install,
        "lock": engines.Lock,
        "outdated": engines.Outdated,
        "list": engines.Listed,
    },
    "kit": {"make": kit.Make, "run": kit.Run, "join": kit.Join},
}


def parsers():
    """Each parser that takes arguments, with the options that it fills: of commands and of their actions."""
    for name, (module, _about) in COMMANDS.items():
        parser = command_parser(name)
        if name not in ACTIONS:
            yield name, parser, import_module(module).Options
            continue
        (below,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        assert below.choices.keys() == ACTIONS[name].keys()
        for action, options in ACTIONS[name].items():
            yield f"{name} {action}", below.choices[action], options


PARSERS = [pytest.param(parser, options, id=name) for name, parser, options in parsers()]


@pytest.mark.parametrize(("parser", "options"), PARSERS)
def test_every_flag_is_a_field_and_every_field_has_a_flag(parser, options):
    """But where a command makes one value of several flags: its own tests say what becomes of them."""
    flags = {action.dest for action in parser._actions} - {"help"}
    named = {field.name for field in fields(options)}
    if options.from_parsed.__func__ is Flags.from_parsed.__func__:
        assert flags - named <= {"json"}, "which the one place that prints reads"
        assert named <= flags


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ACTIONS])
def test_what_reports_has_a_document(name):
    flags = command_parser(name)._option_string_actions
    assert ("--json" in flags) is (name not in WITHOUT_JSON)


@pytest.mark.parametrize(
    ("text", "printed"), [("a", "a\n"), ("a\n", "a\n"), (["a", "b"], "a\nb\n"), ((), "")]
)
def test_a_text_ends_with_its_line(text, printed, capsys):
    put(Result(text))
    put(Result(lambda _screen: text))
    assert capsys.readouterr().out == 2 * printed


def test_of_text_and_document_only_the_one_that_is_asked_for_is_made(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    put(Result(lambda _screen: 1 / 0, lambda: {"a": [1]}), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": [1]}
    put(Result(lambda screen: f"{screen.width} {screen.rows}", lambda: 1 / 0))
    assert capsys.readouterr().out.split()[-1] == "10000", "a pipe gets a row as one line"
    put(Result("a"), as_json=True)
    assert capsys.readouterr().out == "", "a part of a result has no document"


def test_notes_follow_the_text_on_standard_error(monkeypatch):
    both = io.StringIO()
    monkeypatch.setattr(sys, "stdout", both)
    monkeypatch.setattr(sys, "stderr", both)
    put(Result("text", notes=["a note", SetupError("is missing", where="it", hint="bring it")]))
    assert both.getvalue() == "text\na note\nerror: it: is missing\nhint: bring it\n"
