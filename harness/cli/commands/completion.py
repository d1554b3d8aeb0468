"""`bench completion`: what a shell can complete, written from the parsers of all commands."""

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.cli.flags.parsers import ADDRESSED, COMMANDS, command_parser
from harness.errors import ExitCode

EPILOG = """bash: bench completion bash > ~/.local/share/bash-completion/completions/bench

zsh: bench completion zsh > ~/.zfunc/_bench (a folder of $fpath, before compinit)

fish: bench completion fish > ~/.config/fish/completions/bench.fish"""

PROGRAMS = ("bench", "llm-servebench")


@dataclass(frozen=True, slots=True)
class Option:
    flags: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    about: str
    options: tuple[Option, ...]
    words: tuple[str, ...]  # of its positional arguments, as far as they are a closed list

    @property
    def flags(self) -> list[str]:
        return [flag for option in self.options for flag in option.flags]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=tuple(_SHELLS), help="shell to complete in")


def main(arguments: argparse.Namespace) -> int:
    completions = [_command(name, about, command_parser(name)) for name, (_module, about) in COMMANDS.items()]
    addressed = next(command for command in completions if command.name == ADDRESSED)
    typed = [command for command in completions if command.name != ADDRESSED]
    print("\n".join(_SHELLS[arguments.shell](typed, addressed)))
    return ExitCode.OK


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> Command:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = tuple(
        Option(
            tuple(argument.option_strings),
            (argument.help or "") % {"prog": parser.prog, **vars(argument)},
            argument.nargs != 0,
            _choices(argument),
        )
        for argument in shown
        if argument.option_strings
    )
    words = [word for argument in shown if not argument.option_strings for word in _choices(argument)]
    return Command(name, about, options, tuple(words))


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(map(str, action.choices or ()))


def _bash(commands: Sequence[Command], addressed: Command) -> Iterator[str]:
    yield "_bench() {"
    yield '    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=""'
    yield "    if ((COMP_CWORD == 1)); then"
    yield f"        words={shlex.quote(' '.join(command.name for command in commands))}"
    yield "    else"
    yield '        case "${COMP_WORDS[1]}" in'
    for command in (*commands, addressed):
        yield f"        {'*' if command is addressed else command.name})"
        yield '            case "$prev" in'
        for option in command.options:
            if option.takes_value:
                yield f"            {'|'.join(option.flags)}) words={_list(option.choices)} ;;"
        yield f"            *) words={_list([*command.words, *command.flags])} ;;"
        yield "            esac ;;"
    yield "        esac"
    yield "    fi"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield f"complete -o default -F _bench {' '.join(PROGRAMS)}"


def _zsh(commands: Sequence[Command], addressed: Command) -> Iterator[str]:
    yield f"#compdef {' '.join(PROGRAMS)}"
    yield "_bench() {"
    yield "    local -a commands=("
    for command in commands:
        yield f"        {shlex.quote(f'{command.name}:{command.about}')}"
    yield "    )"
    yield "    if ((CURRENT == 2)); then _describe command commands; return; fi"
    yield "    shift words; ((CURRENT--))"
    yield '    case "$words[1]" in'
    for command in (*commands, addressed):
        yield f"    {'*' if command is addressed else command.name})"
        yield "        _arguments \\"
        for option in command.options:
            after = f":value:{_zsh_values(option.choices)}" if option.takes_value else ""
            for flag in option.flags:
                yield f"            {shlex.quote(f'*{flag}[{_zsh_text(option.about)}]{after}')} \\"
        yield f"            {shlex.quote(f'*:argument:{_zsh_values(command.words)}')} ;;"
    yield "    esac"
    yield "}"
    yield '_bench "$@"'


def _fish(commands: Sequence[Command], addressed: Command) -> Iterator[str]:
    for program in PROGRAMS:
        yield f"complete -c {program} -e"
        for command in commands:
            about = _fish_text(command.about)
            yield f"complete -c {program} -n __fish_use_subcommand -a {command.name} -d {about}"
        for command in (*commands, addressed):
            seen = f"__fish_seen_subcommand_from {command.name}"
            when = "string match -q '*:*' -- (commandline -opc)" if command is addressed else seen
            start = f"complete -c {program} -n {_fish_text(when)}"
            if command.words:
                yield f"{start} -a {_fish_text(' '.join(command.words))}"
            for option in command.options:
                yield f"{start} {_fish_option(option)}"


def _fish_option(option: Option) -> str:
    names = [f"-l {flag[2:]}" if flag[:2] == "--" else f"-s {flag[1:]}" for flag in option.flags]
    values = f"-x -a {_fish_text(' '.join(option.choices))}" if option.choices else "-r"
    return " ".join([*names, *([values] if option.takes_value else []), "-d", _fish_text(option.about)])


def _list(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _zsh_values(words: Sequence[str]) -> str:
    return f"({' '.join(words)})" if words else "_files"


def _zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
