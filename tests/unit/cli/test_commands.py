"""What all commands have in common: typed options, --json, and a result that is printed in one place."""

import argparse
import io
import json
import sys
from dataclasses import fields
from importlib import import_module
from unittest.mock import Mock

import pytest

from harness.cli.display.result import Result, put
from harness.cli.display.streams import UnreadError
from harness.cli.flags.parsers import COMMANDS, command_parser
from harness.cli.typed import Flags
from harness.errors import SetupError

# Their output is a file in a format of its own, or what a server writes.
WITHOUT_JSON = {"completion", "compose", "export", "logs", "truth"}
WITH_ACTIONS = {"engines", "kit"}
OPTIONS = {name: import_module(module).Options for name, (module, _about) in COMMANDS.items()}
OWN = [name for name, each in OPTIONS.items() if each.from_parsed.__func__ is Flags.from_parsed.__func__]


def flags_of(name):
    """The destinations of a command, and of its actions."""
    for action in command_parser(name)._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (below.dest for parser in action.choices.values() for below in parser._actions)
        yield action.dest


@pytest.mark.parametrize("name", OWN)
def test_every_flag_is_a_field_and_every_field_has_a_flag(name):
    """But where a command makes one value of several flags: its own tests say what becomes of them."""
    flags, named = {*flags_of(name)} - {"help"}, {field.name for field in fields(OPTIONS[name])}
    assert flags - named <= {"json"}, "which the one place that prints reads"
    assert named <= flags


def test_most_commands_have_a_field_for_each_flag():
    assert len(OWN) > 20


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITH_ACTIONS])
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


def test_of_text_and_document_only_the_one_that_is_asked_for_is_made(capsys):
    put(Result(lambda _screen: 1 / 0, lambda: {"a": [1]}), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": [1]}
    put(Result(lambda screen: f"{screen.width} {screen.rows}", lambda: 1 / 0))
    assert capsys.readouterr().out.split()[-1] == "10000", "a pipe gets a row as one line"
    put(Result("a"), as_json=True)
    assert capsys.readouterr().out == "", "a part of a result has no document"


def test_notes_are_printed_though_nobody_reads_the_text(monkeypatch, capsys):
    closed = io.StringIO()
    monkeypatch.setattr(closed, "flush", Mock(side_effect=UnreadError))
    monkeypatch.setattr(sys, "stdout", closed)
    with pytest.raises(UnreadError):
        put(Result("text", notes=["a note"]), flush=True)
    assert capsys.readouterr().err == "a note\n"


def test_notes_follow_the_text_on_standard_error(monkeypatch):
    both = io.StringIO()
    monkeypatch.setattr(sys, "stdout", both)
    monkeypatch.setattr(sys, "stderr", both)
    put(Result("text", notes=["a note", SetupError("is missing", where="it", hint="bring it")]))
    assert both.getvalue() == "text\na note\nerror: it: is missing\nhint: bring it\n"
