"""The command line: dispatch and exit codes. A command's module is imported when it is called."""

import argparse
import json
import re
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from harness.cli.display import streams
from harness.cli.flags.parsers import (
    ADDRESSED,
    COMMANDS,
    command_parser,
    of_command,
    parser_with,
    suggested,
    takes_list,
)
from harness.errors import NO_MEMORY, BenchError, ExitCode, SetupError, SpecError, page_address, refused

_ADDRESS = re.compile(r"(?P<name>[\w.-]+=)?(\w+://|([\w.-]+|\[[\da-f:]+\]):\d+([/+]|$)|localhost$)")

_LEAST_BYTES = 1 << 30  # of addresses: OpenBLAS and DuckDB reserve more than they use

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


def main(arguments: Sequence[str] | None = None) -> int:
    streams.prepare()
    try:
        with _stopped_as_by_ctrl_c(), streams.printed():
            return _run_guarded(list(sys.argv[1:] if arguments is None else arguments))
    except BenchError as error:  # of the output itself
        return _print_error(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except streams.UnreadError:
        return ExitCode.UNREAD


@contextmanager
def _stopped_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM, which CI runners, `timeout` and Docker send, lets a command remove what is temporary."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run_guarded(given: list[str]) -> int:
    """Prints an error as a document too if JSON was asked for."""
    try:
        return _run_command(given)
    except BenchError as error:
        failed = error
    except (OSError, MemoryError, ImportError) as error:
        refusal = refused(error)
        if refusal is None:
            raise
        failed = refusal
    code = _print_error(failed)
    if "--json" in given:
        print(json.dumps({"error": str(failed), "hint": failed.hint, "exit_code": code}))
    return code


def _print_error(error: BenchError) -> int:
    try:
        from harness.cli.display.output import print_error

        print_error(error)
    except MemoryError:  # not even for that module
        print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def _run_command(given: list[str]) -> int:
    command = next((word for word in given if not word.startswith("-")), None)
    if command not in COMMANDS and _has_address(given):
        command = ADDRESSED
        given.insert(0, command)
    _check_text(given)
    parser = parser_with(command, alone=command in COMMANDS and given[0] == command)
    try:
        parsed, unknown = parser.parse_known_args(given)
    except SpecError as missing:
        # A mistyped flag is the reason that a required one is missing.
        if command in COMMANDS and (flags := _unknown_flags(parser, command, given)):
            asked = of_command(parser, command)
            raise _unrecognized(asked, flags, action=_action(asked, given)) from None
        unnamed = command == "run" and missing.what.endswith("required: --backends")
        if unnamed and (address := next(filter(None, map(_ADDRESS.match, given)), None)):
            url, name = address.string, "" if address["name"] else "openai="
            hint = f"`bench {url}` measures it alone; here it is a backend: --backends {name}{url}"
            raise SpecError(missing.what, hint=hint) from None
        raise
    if unknown:
        asked = of_command(parser, parsed.command) if parsed.command else parser
        raise _unrecognized(asked, unknown, given, getattr(parsed, "action", None))
    if not parsed.command:
        print(_NEXT_STEP)
        return ExitCode.USAGE
    if parsed.command != "list":  # it loads neither, for most of what it lists
        _check_memory()
    from harness.cli.display.result import Result, put

    called = import_module(COMMANDS[parsed.command][0])
    result: Result = called.main(called.Options.from_parsed(parsed))
    put(result, as_json=getattr(parsed, "json", False), flush=True)
    return int(result.code)


def _check_memory() -> None:
    """Refuses a limit at which a library ends the process with a code of its own: OpenBLAS does with 1, which
    of a gate says that a limit of the gate failed.
    """
    limit, _hard = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_BYTES:
        limits = f"the limit is {limit >> 20:,} MiB, and bench needs {_LEAST_BYTES >> 20:,}"
        raise SetupError(f"no memory is left: {limits}", hint=NO_MEMORY)


def _has_address(given: Sequence[str]) -> bool:
    """Whether an argument is the address of a server. After a mistyped command, `NAME=URL` is none."""
    first = given[0] if given else "-"
    command = not first.startswith("-") and not _ADDRESS.match(first)
    return any(not (command and match["name"]) for match in filter(None, map(_ADDRESS.match, given)))


def _unrecognized(
    asked: argparse.ArgumentParser,
    unknown: Sequence[str],
    given: Sequence[str] = (),
    action: str | None = None,
) -> SpecError:
    """Hints at the nearest flags of the command, and of its `action` if that is known.

    A word that is no flag, or comes after `--`, is an argument too many.
    """
    arguments = given[given.index("--") :] if "--" in given else ()
    flag = next((word for word in unknown if word.startswith("-") and word not in arguments), None)
    if flag is None:
        hint = _as_list(asked, unknown[0], given) or f"`{asked.prog} --help` shows what it takes"
        return SpecError(f"unexpected argument '{unknown[0]}'", hint=hint)
    name = flag.partition("=")[0]
    of_run = command_parser("run")._option_string_actions.get(name)
    if asked.prog.endswith(ADDRESSED) and of_run and of_run.help != argparse.SUPPRESS:
        scenario = "" if name == "--trace" else "--scenario first-look "  # a trace has one of its own
        hint = f"`bench run` has it: bench run {scenario}--backends openai=URL {name} …"
        hint += "" if name == "--trace" else ", or change the command that `bench URL` prints"
        return SpecError(f"unknown option '{name}'", hint=hint)
    program, flags = f"{asked.prog} {action}" if action else asked.prog, list(_flags(asked, action))
    command = asked.prog.rpartition(" ")[2]
    if command in (ADDRESSED, "run", "tune", "truth"):
        from harness.cli.flags.foreign import translated  # needed for a mistake alone

        if hint := translated((word.partition("=")[0] for word in unknown), command):
            return SpecError(f"unknown option '{name}'", hint=hint)
    # `bench -v list`: the command is the first that takes it.
    hint = f"it follows the command: `{program} {name}`" if name in flags else suggested(name, flags, program)
    if asked.prog == "bench run" and hint.endswith("lists them"):
        keys, other_tools = page_address("scenario"), page_address("coming-from")
        hint += f"; keys of --set: {keys}; flags of other tools: {other_tools}"
    return SpecError(f"unknown option '{name}'", hint=hint)


def _as_list(asked: argparse.ArgumentParser, word: str, given: Sequence[str]) -> str:
    """Joins a word to the list that it follows, as in `--concurrency 4 8`; "" if it follows none."""
    at = given.index(word) if word in given else 0
    flag, before = given[at - 2 : at] if at > 1 else ("", "")
    action = asked._option_string_actions.get(flag)
    if action is None or not takes_list(action):
        return ""
    return f"a list has commas and no spaces: {flag} {before.rstrip(',')},{word.lstrip(',')}"


def _unknown_flags(parser: argparse.ArgumentParser, command: str, given: Sequence[str]) -> list[str]:
    known = {"--", *_flags(parser), *_flags(of_command(parser, command))}
    return [word for word in given if word.startswith("--") and word.partition("=")[0] not in known]


def _action(asked: argparse.ArgumentParser, given: Sequence[str]) -> str | None:
    """The action that is called of a command that has some."""
    choices = (below.choices or () for below in asked._actions if below.dest == "action")
    return next((word for names in choices for word in given if word in names), None)


def _flags(parser: argparse.ArgumentParser, action: str | None = None) -> Iterator[str]:
    """The flags of a command, and of its actions if it has some, as `bench engines` does; of one that is
    named, no others'.
    """
    yield from parser._option_string_actions
    for below in parser._actions:
        if isinstance(below, argparse._SubParsersAction) and below.dest == "action":
            for name, command in below.choices.items():
                if action in (None, name):
                    yield from command._option_string_actions


def _check_text(words: Sequence[str]) -> None:
    """Refuses words that could not be printed or stored: Python passes bytes that are not UTF-8 as lone
    surrogates."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise SpecError("is not UTF-8 text", where=ascii(word), hint="rename the file") from None
