"""The command line: arguments, dispatch, exit codes. A command's module is imported when it is called."""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn, cast

from harness.cli.display import streams
from harness.cli.flags.help_text import HelpText
from harness.errors import BenchError, ExitCode, SpecError, refused

SUGGESTED = 3  # commands or flags in a hint

# Command -> module with add_arguments(parser) and main(arguments) -> exit code; one line of help.
ADDRESSED = "URL"  # a command that is not typed: an address stands in its place
COMMANDS = {
    ADDRESSED: ("harness.cli.commands.url", "measure a running server; a second URL is compared with it"),
    "run": ("harness.cli.commands.run", "measure backends under a scenario and compare them"),
    "tune": ("harness.cli.commands.tune", "find the best engine settings for a scenario on this machine"),
    "resume": ("harness.cli.commands.resume", "finish an interrupted run"),
    "list": ("harness.cli.commands.listing", "show scenarios, backends, models and runs"),
    "init": ("harness.cli.commands.init", "write a commented scenario or backend file to start from"),
    "validate": ("harness.cli.commands.validate", "check scenario and backend files"),
    "compare": ("harness.cli.commands.compare", "compare runs with a baseline; regression gate"),
    "history": ("harness.cli.commands.history", "track runs over time and find regressions"),
    "nightly": ("harness.cli.commands.nightly", "run a nightly suite with history and regression gate"),
    "query": ("harness.cli.commands.query", "query cells, requests, events and telemetry with SQL"),
    "export": (
        "harness.cli.commands.export",
        "write cells, verdicts or records of runs as CSV, JSON lines or Parquet",
    ),
    "import": ("harness.cli.commands.imports", "read results of other tools as runs"),
    "publish": ("harness.cli.commands.publish", "log runs in MLflow or W&B"),
    "verify": ("harness.cli.commands.verify", "check a run's files for damage"),
    "report": ("harness.cli.commands.report", "rebuild table, plots and HTML report of a run"),
    "claims": ("harness.cli.commands.claims", "check published claims about engines against a run"),
    "up": ("harness.cli.commands.up", "start one engine and keep it running"),
    "down": ("harness.cli.commands.down", "stop and remove what `bench up` started"),
    "logs": ("harness.cli.commands.logs", "show a container engine's log"),
    "compose": ("harness.cli.commands.compose", "write Compose files from the engine definitions"),
    "engines": ("harness.cli.commands.engines", "install engines into isolated environments"),
    "kit": ("harness.cli.commands.kit", "collect everything for a machine without network"),
    "probe": ("harness.cli.commands.probe", "check a running engine against its definition"),
    "doctor": ("harness.cli.commands.doctor", "measure how exact the load generator is on this machine"),
    "cluster": ("harness.cli.commands.cluster", "start, stop or show a Ray cluster that sends load"),
    "truth": ("harness.mockserver.cli", "run a scripted server with known timing"),
    "completion": ("harness.cli.commands.completion", "print a shell's completion script"),
}

_ADDRESS = re.compile(r"\w+://|[\w.-]+:\d+(/|$)|localhost$")

_NEXT_STEP = """Where to start:
 bench http://127.0.0.1:8000
     measure a server that is running
 bench run --scenario first-look --backends llamacpp
     nothing is running yet: llama.cpp and a small model (300 MB, no GPU needed)
 bench run --scenario shared-prefix --backends llamacpp,llamacpp@no-prefix-cache
     compare two engines, or one with two settings
 bench list scenarios
     what can be measured; `bench list backends` lists the engines

`bench --help` lists the commands, `bench COMMAND --help` their options."""

EPILOG = """exit codes:
  0    success
  1    a limit or comparison failed
  2    usage or definition
  3    setup (engine, model, port, disk)
  4    INVALID measurement
  130  interrupted (what was measured is kept)
  141  the reader of the output went away

Run `bench COMMAND --help` for the options of a command."""


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line and a hint, like every other error, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(message, hint=f"`{self.prog} --help` lists the options")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A mistyped command or value gets the nearest ones, not all of them."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            names = [name for name in action.choices if name != ADDRESSED]
            raise SpecError(f"unknown command '{value}'", hint=_suggested(value, names, self.prog))
        if action.choices is not None and value not in action.choices:
            names = list(map(str, action.choices))
            text = f"argument {_flag_of(action)}: '{value}' is not one of its values"
            raise SpecError(text, hint=_suggested(str(value), names, self.prog))


def _flag_of(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _suggested(typed: str, names: Iterable[str], program: str) -> str:
    close = get_close_matches(typed, list(names), n=SUGGESTED)
    if not close:
        return f"`{program} --help` lists them"
    first, *others = (f"`{name}`" for name in close)
    return f"did you mean {first}?" + (f" or {', '.join(others)}" if others else "")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_rest: Any) -> NoReturn:
        from harness.host.installation import version_text

        print(f"bench {version_text()}")
        sys.exit(ExitCode.OK)


def main(arguments: Sequence[str] | None = None) -> int:
    streams.prepare()
    try:
        with streams.printed():
            return _told(list(sys.argv[1:] if arguments is None else arguments))
    except BenchError as error:  # of the output itself
        return _failed(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except streams.UnreadError:
        return ExitCode.UNREAD


def _told(given: list[str]) -> int:
    """An error is a document as well where documents are asked for."""
    try:
        return _called(given)
    except BenchError as error:
        failed = error
    except (OSError, MemoryError, ImportError) as error:
        told = refused(error)
        if told is None:
            raise
        failed = told
    code = _failed(failed)
    if "--json" in given:
        print(json.dumps({"error": str(failed), "hint": failed.hint, "exit_code": code}))
    return code


def _failed(error: BenchError) -> int:
    try:
        from harness.cli.display.output import print_error

        print_error(error)
    except MemoryError:  # not even for that module
        print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def _called(given: list[str]) -> int:
    command = next((word for word in given if not word.startswith("-")), None)
    if command not in COMMANDS and any(map(_ADDRESS.match, given)):
        command = ADDRESSED
        given.insert(0, command)
    _check_text(given)
    parser = _parser(command)
    try:
        parsed, unknown = parser.parse_known_args(given)
    except SpecError:
        # A mistyped flag is the reason that a required one is missing.
        if command in COMMANDS and (flags := _unknown_flags(parser, command, given)):
            raise _unrecognized(parser, command, flags) from None
        raise
    if unknown:
        raise _unrecognized(parser, parsed.command, unknown)
    if not parsed.command:
        print(_NEXT_STEP)
        return ExitCode.USAGE
    return int(import_module(COMMANDS[parsed.command][0]).main(parsed))


def _unrecognized(parser: argparse.ArgumentParser, command: str | None, unknown: Sequence[str]) -> SpecError:
    """The nearest flags of the command; a word that is no flag is one too many."""
    flag = next((word for word in unknown if word.startswith("-")), None)
    if flag is None:
        return SpecError(f"unexpected argument '{unknown[0]}'", hint="`bench --help` lists the commands")
    name = flag.partition("=")[0]
    asked = _of_command(parser, command) if command else parser
    return SpecError(
        f"unknown option '{name}'", hint=_suggested(name, asked._option_string_actions, asked.prog)
    )


def _unknown_flags(parser: argparse.ArgumentParser, command: str, given: Sequence[str]) -> list[str]:
    known = {*parser._option_string_actions, *_of_command(parser, command)._option_string_actions}
    return [word for word in given if word.startswith("--") and word.partition("=")[0] not in {*known, "--"}]


def _of_command(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    commands = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return cast(argparse.ArgumentParser, commands.choices[command])


def _check_text(words: Sequence[str]) -> None:
    """All of them can be printed and stored: Python hands on bytes that are not UTF-8 as lone surrogates."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise SpecError("is not UTF-8 text", where=ascii(word), hint="rename the file") from None


def command_parser(command: str) -> argparse.ArgumentParser:
    """Of one command alone."""
    return _of_command(_parser(command), command)


def _parser(command: str | None) -> argparse.ArgumentParser:
    """With the options of the one command that is called: the others are not even imported."""
    parser = _Parser(
        prog="bench",
        description="Compare LLM serving engines: the same requests to each, one engine at a time.",
        epilog=EPILOG,
        formatter_class=HelpText,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="version, commit and kind of installation"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            allow_abbrev=False,
            formatter_class=HelpText,
        )
        if name == command:
            import_module(module).add_arguments(sub)
    return parser
