"""The command line: arguments, dispatch, exit codes. A command's module is imported when it is called."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from harness import __version__
from harness.errors import BenchError, ExitCode, SpecError

# Command -> module with add_arguments(parser) and main(arguments) -> exit code; one line of help.
COMMANDS = {
    "run": ("harness.cli.run", "measure backends under a scenario and compare them"),
    "tune": ("harness.cli.tune", "search the best engine values for a scenario on this machine"),
    "resume": ("harness.cli.resume", "measure what an interrupted run is missing"),
    "list": ("harness.cli.listing", "show scenarios, backends, models and runs"),
    "validate": ("harness.cli.validate", "check scenario and backend files"),
    "compare": ("harness.cli.compare", "hold runs against a baseline; a gate for regressions"),
    "history": ("harness.cli.history", "add runs to the history; what became slower over many of them"),
    "nightly": ("harness.cli.nightly", "a suite of runs every night, its history, and a gate"),
    "query": ("harness.cli.query", "SQL over the cells, requests, events and telemetry of all runs"),
    "verify": ("harness.cli.verify", "whether the files of a run are as they were written"),
    "report": ("harness.cli.report", "rebuild table, plots and HTML page of a run from its folder"),
    "claims": ("harness.cli.claims", "check published claims about engines against a run"),
    "up": ("harness.cli.up", "start one engine and leave it running"),
    "down": ("harness.cli.down", "stop and remove what `bench up` started"),
    "logs": ("harness.cli.logs", "what an engine in a container says"),
    "compose": ("harness.cli.compose", "Compose files for use by hand, from the definitions"),
    "engines": ("harness.cli.engines", "install engines, each into an environment of its own"),
    "probe": ("harness.cli.probe", "check a running engine against its definition"),
    "doctor": ("harness.cli.doctor", "how exact the client is on this machine, in under a minute"),
    "truth": ("harness.truth.cli", "scripted server of known timing, to check a harness against"),
}

EPILOG = """exit codes:
  0 fine   1 a limit or comparison failed   2 usage or definition   3 setup (engine, model, port, disk)
  4 INVALID measurement   130 interrupted (what was measured is kept)

`bench COMMAND --help` shows the options of a command."""


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line and a hint, like every other error, not a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise SpecError(message, hint=f"`{self.prog} --help` shows what there is")


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in given if not word.startswith("-")), None)
    try:
        _check_text(given)
        parsed = _parser(command).parse_args(given)
        if not parsed.command:
            _parser(None).print_help()
            return ExitCode.USAGE
        return int(import_module(COMMANDS[parsed.command][0]).main(parsed))
    except BenchError as error:
        from harness.cli.output import print_error

        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`bench list | head`); Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK


def _check_text(words: Sequence[str]) -> None:
    """All of them can be printed and stored: Python hands on bytes that are not UTF-8 as lone surrogates."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise SpecError("is not UTF-8 text", where=ascii(word), hint="rename the file") from None


def _parser(command: str | None) -> argparse.ArgumentParser:
    """With the options of the one command that is called: the others are not even imported."""
    parser = _Parser(
        prog="bench",
        description="Compare LLM serving engines: the same requests to each, one engine at a time.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"bench {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == command:
            import_module(module).add_arguments(sub)
    return parser
