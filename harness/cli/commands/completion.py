"""`bench completion`: what a shell can complete, written from the parsers of all commands."""

import argparse
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.cli.display.result import Result
from harness.cli.flags.parsers import ADDRESSED, COMMANDS, command_parser, takes_list
from harness.cli.typed import Flags
from harness.host.paths import Kind
from harness.spec.files import names
from harness.spec.models import load_models

EPILOG = """bash: bench completion bash > ~/.local/share/bash-completion/completions/bench

zsh: bench completion zsh > ~/.zfunc/_bench (a folder of $fpath, before compinit)

fish: bench completion fish > ~/.config/fish/completions/bench.fish"""

PROGRAMS = ("bench", "llm-servebench")
# Argument -> the definitions that it takes the names of: those that are known where the script is written.
_KINDS: Mapping[str, Kind] = {
    "scenario": "workloads",
    "suite": "workloads/suites",
    **dict.fromkeys(("backend", "backends", "engines", "names"), "backends"),
}


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    about: str
    options: tuple[argparse.Action, ...]
    words: tuple[str, ...]  # of its positional arguments, as far as they are known
    later: tuple[str, ...] = ()  # those that follow one of `words`, which are actions then

    @property
    def flags(self) -> list[str]:
        return [flag for option in self.options for flag in option.option_strings]


@dataclass(frozen=True)
class Options(Flags):
    shell: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shells = f"shell to complete in: {', '.join(_SHELLS)}"
    parser.add_argument("shell", choices=tuple(_SHELLS), metavar="SHELL", help=shells)


def main(given: Options) -> Result:
    completions = [_command(name, about, command_parser(name)) for name, (_module, about) in COMMANDS.items()]
    addressed = next(command for command in completions if command.name == ADDRESSED)
    typed = [command for command in completions if command.name != ADDRESSED]
    return Result(_SHELLS[given.shell](typed, addressed))


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> Command:
    """Options and words of its actions are in it too, of all alike."""
    own = list(_shown(parser))
    below = [action for action in own if isinstance(action, argparse._SubParsersAction)]
    later = [argument for action in below for sub in action.choices.values() for argument in _shown(sub)]
    flagged = (argument for argument in (*own, *later) if argument.option_strings)
    options = {argument.option_strings[-1]: argument for argument in flagged}
    return Command(name, about, tuple(options.values()), _words(own), _words(later))


def _shown(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (action for action in parser._actions if action.help != argparse.SUPPRESS)


def _words(arguments: Iterable[argparse.Action]) -> tuple[str, ...]:
    found = (_choices(argument) for argument in arguments if not argument.option_strings)
    return tuple(dict.fromkeys(word for words in found for word in words))


def _choices(action: argparse.Action) -> tuple[str, ...]:
    if action.choices:
        return tuple(map(str, action.choices))
    if action.dest == "model":
        return tuple(load_models().models)
    return tuple(names(_KINDS[action.dest])) if action.dest in _KINDS else ()


def _bash(commands: Sequence[Command], addressed: Command) -> Iterator[str]:
    yield "_bench() {"
    yield '    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words="" list=""'
    yield "    if ((COMP_CWORD == 1)); then"
    yield f"        words={shlex.quote(' '.join(command.name for command in commands))}"
    yield "    else"
    yield '        case "${COMP_WORDS[1]}" in'
    for command in (*commands, addressed):
        yield f"        {'*' if command is addressed else command.name})"
        yield '            case "$prev" in'
        for option in command.options:
            if _takes_value(option):
                flags, known = "|".join(option.option_strings), _list(_choices(option))
                before = """ list=${cur%"${cur##*,}"}""" if takes_list(option) else ""
                yield f"            {flags}) words={known}{before} ;;"
        follow = command.later or command.words
        yield f"            *) words={_list([*follow, *command.flags])}"
        if command.later:
            yield f"                ((COMP_CWORD > 2)) || words={_list([*command.words, '--help'])}"
        yield "                ;;"
        yield "            esac ;;"
    yield "        esac"
    yield "    fi"
    yield '    COMPREPLY=($(compgen -P "$list" -W "$words" -- "${cur#"$list"}"))'
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
            after = f":value:{_zsh_value(option)}" if _takes_value(option) else ""
            for flag in option.option_strings:
                yield f"            {shlex.quote(f'*{flag}[{_zsh_text(_about(option))}]{after}')} \\"
        if command.later:
            yield f"            {shlex.quote(f'1:action:{_zsh_values(command.words)}')} \\"
        yield f"            {shlex.quote(f'*:argument:{_zsh_values(command.later or command.words)}')} ;;"
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
            if command.words and not command.later:
                yield f"{start} -a {_fish_text(' '.join(command.words))}"
            if command.later:
                acted = f"__fish_seen_subcommand_from {' '.join(command.words)}"
                for condition, words in ((f"not {acted}", command.words), (acted, command.later)):
                    asked = _fish_text(f"{seen}; and {condition}")
                    yield f"complete -c {program} -n {asked} -a {_fish_text(' '.join(words))}"
            for option in command.options:
                yield f"{start} {_fish_option(option)}"


def _fish_option(option: argparse.Action) -> str:
    names = [f"-l {flag[2:]}" if flag[:2] == "--" else f"-s {flag[1:]}" for flag in option.option_strings]
    needed, known = "-x" if option.choices else "-r", _choices(option)  # the first takes no file
    values = f"{needed} -a {_fish_text(' '.join(known))}" if known else "-r"
    return " ".join([*names, *([values] if _takes_value(option) else []), "-d", _fish_text(_about(option))])


def _takes_value(option: argparse.Action) -> bool:
    return option.nargs != 0


def _about(option: argparse.Action) -> str:
    return (option.help or "") % vars(option)


def _list(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _zsh_values(words: Sequence[str]) -> str:
    return f"({' '.join(words)})" if words else "_files"


def _zsh_value(option: argparse.Action) -> str:
    choices = _choices(option)
    if option.choices or not choices:
        return _zsh_values(choices)
    known = f"compadd - {' '.join(choices)}"
    return f"{{_sequence {known}}}" if takes_list(option) else f"{{{known}; _files}}"


def _zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
