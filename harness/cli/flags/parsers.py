"""Parsers of the commands: each has the flags of its own module, which is imported for no other command."""

import argparse
import sys
import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn, cast

from harness.cli.flags import argument_types
from harness.errors import ExitCode, SpecError, page_address

# Command -> module with Options, add_arguments(parser), main(given) -> Result and, for the end of its help,
# EPILOG; one line of help.
ADDRESSED = "URL"  # a command that is not typed: an address stands in its place
COMMANDS = {
    ADDRESSED: ("harness.cli.commands.url", "measure a running server; a second URL is compared with it"),
    "run": ("harness.cli.commands.run", "measure backends under a scenario and compare them"),
    "tune": ("harness.cli.commands.tune", "find the best engine settings for a scenario on this machine"),
    "resume": ("harness.cli.commands.resume", "finish an interrupted run"),
    "list": ("harness.cli.commands.listing", "show scenarios, backends, models and runs"),
    "init": ("harness.cli.commands.init", "write a commented scenario or backend file to start from"),
    "validate": ("harness.cli.commands.validate", "check files of scenarios, backends and suites"),
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
    "verify": ("harness.cli.commands.verify", "check the files and figures of a run"),
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
    "truth": ("harness.cli.commands.truth", "run a scripted server with known timing"),
    "completion": ("harness.cli.commands.completion", "print a shell's completion script"),
}

EPILOG = f"""exit codes:
  0    success
  1    a limit or comparison failed, or could not be decided
  2    usage or definition
  3    setup (engine, model, port, disk)
  4    INVALID measurement
  125  nothing worse, not all decided (compare --undecided skip)
  130  interrupted (what was measured is kept)
  141  the reader of the output went away

Run `bench COMMAND --help` for the options of a command.

Questions, by page: {page_address("index")}"""


_LISTED = {  # what is missing -> where its names are
    "RUN": "`bench list runs` lists those in results",
    "BACKEND": "`bench list backends` lists the names",
    "SUITE": "`bench list suites` lists the names",
}


_MEANT = {  # commands of other tools -> what does the same here
    "gate": "`bench compare BASELINE RUN --fail-on slower` is the gate",
    "diff": "`bench compare BASELINE RUN` says what changed",
    "serve": "`bench up BACKEND` starts an engine, `bench truth` a scripted server",
    **dict.fromkeys(("bench", "benchmark"), "`bench URL` measures a server, `bench run` engines"),
}


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line and a hint, like every other error, not a page of usage."""

    def __init__(self, **named: Any) -> None:
        super().__init__(allow_abbrev=False, **named)
        self.register("type", int, argument_types.whole_number)
        self.register("type", float, argument_types.number)

    def error(self, message: str) -> NoReturn:
        missing = message.partition("are required: ")[2].split(", ")
        hints = [_LISTED[name] for name in missing if name in _LISTED]
        if len(hints) < len(missing):
            hints.append(f"`{self.prog} --help` lists the options")
        if "--rate" in message and "--concurrency" in message:
            hints = ["with --rate, --set load.max_in_flight=N limits the requests in flight"]
        raise SpecError(message, hint="; ".join(hints))

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuses `--flag=--`, whose value Python before 3.13 would drop and give the flag an empty list."""
        if action.option_strings and arg_strings == ["--"]:
            self.error(f"argument {_flag_of(action)}: expected one argument")
        return super()._get_values(action, arg_strings)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A mistyped command or value gets the nearest ones, not all of them."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            names = [name for name in action.choices if name != ADDRESSED]
            has_password = ":" in value.partition("@")[0]
            shown = value.rpartition("@")[2] if has_password else value
            names += {f"--{value}"} & self._option_string_actions.keys()  # `bench version`
            hint = _MEANT.get(value) or suggested(value, names, self.prog)
            raise SpecError(f"unknown command '{shown}'", hint=hint)
        if action.choices is not None and value not in action.choices:
            names = list(map(str, action.choices))
            text = f"argument {_flag_of(action)}: '{value}' is not one of its values"
            raise SpecError(text, hint=suggested(str(value), names, self.prog))


def _flag_of(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def takes_list(action: argparse.Action) -> bool:
    """Whether its value is a list with commas, by the name of the value."""
    return str(action.metavar).endswith(("LIST", ",…"))


def suggested(typed: str, names: Iterable[str], program: str) -> str:
    """Hint for a mistyped name: the nearest ones, the few that there are, or where they are listed."""
    from harness.spec.strict import SUGGESTED, nearest  # needed for a mistake alone

    known = list(dict.fromkeys(names))
    hint = nearest(typed, known) or ""
    if hint.startswith("did you mean") or len(known) <= SUGGESTED:
        return hint
    return f"`{program} --help` lists them"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_rest: Any) -> NoReturn:
        from harness.host.installation import version_text

        print(f"bench {version_text()}")
        sys.exit(ExitCode.OK)


def command_parser(command: str) -> argparse.ArgumentParser:
    return of_command(parser_with(command, alone=True), command)


def parser_with(command: str | None, *, alone: bool = False) -> argparse.ArgumentParser:
    """Parser of `bench` with the options of the one command that is called.

    `alone`: nobody can ask it for the other commands. It is made in a fifth of the time without them.
    """
    parser = _Parser(
        prog="bench",
        description="Compare LLM serving engines: the same requests to each, one engine at a time.",
        epilog=EPILOG,
        formatter_class=_HelpText,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="version, commit and kind of installation"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, (module, text) in COMMANDS.items():
        if alone and name != command:
            continue
        sub = commands.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=_HelpText,
        )
        if name == command:
            called = import_module(module)
            sub.epilog = getattr(called, "EPILOG", None)
            called.add_arguments(sub)
    return parser


def of_command(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return cast(argparse.ArgumentParser, commands.choices[command])


class _HelpText(argparse.RawDescriptionHelpFormatter):
    """Fills paragraphs; one that holds an indented line, such as examples, keeps its lines."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        """The help of an option: names such as `mlx-lm` stay whole."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_paragraph(part, width, indent) for part in text.split("\n\n"))


def _paragraph(text: str, width: int, indent: str) -> str:
    lines = text.splitlines()
    if not any(line.startswith(" ") for line in lines):
        lines = [" ".join(lines)]
    return "\n".join(_wrapped(indent + line, width) for line in lines)


def _wrapped(line: str, width: int) -> str:
    begin = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line,
        width,
        subsequent_indent=f"{begin}  " if begin else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
