"""Variants that a command line declares: `--variant NAME=WORDS`, with words as a shell would take them."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path

from harness.apis import API_NAMES
from harness.errors import SpecError
from harness.spec.backend import Backend, Value, Variant
from harness.spec.strict import nearest
from harness.spec.template import PLACEHOLDER
from harness.spec.tuned import VARIANT

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?<!\.toml)")
_SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


def check_names(names: Iterable[str]) -> None:
    """Raises SpecError for a name that --backends would take for something else."""
    for name in names:
        if not _NAME.fullmatch(name) or name in (*API_NAMES, VARIANT):
            raise SpecError(
                "cannot name a variant", where=f"--variant {name}", hint="letters, digits, '.', '_' and '-'"
            )


def anchored(words: str) -> str:
    """The words with the whole path of a program, which a resumed run finds from any working directory."""
    try:
        settings, program, flags = _parts(words)
    except ValueError:
        return words  # which with_variant refuses
    if not program or "/" not in program[0] or program[0].startswith("{"):
        return words
    return shlex.join([*settings, str(Path(program[0]).expanduser().absolute()), *program[1:], *flags])


def _parts(words: str) -> tuple[list[str], list[str], list[str]]:
    """Settings, program and flags. Raises ValueError where a quote is open."""
    split = shlex.split(words)
    settings = list(takewhile(_SETTING.fullmatch, split))
    rest = split[len(settings) :]
    program = list(takewhile(lambda word: not word.startswith("-"), rest))
    return settings, program, rest[len(program) :]


def with_variant(definition: Backend, name: str, words: str) -> Backend:
    """The definition with one more variant. Raises SpecError.

    A flag whose value the definition takes from [engine.values] sets that value: the engine then gets the
    flag once, and what bench derives from the value stays right. Other flags follow those of the definition.
    """
    where = f"--variant {name}"
    if name in definition.variants:
        raise SpecError(f"backend '{definition.name}' has a variant of this name", where=where)
    try:
        settings, program, flags = _parts(words)
    except ValueError as error:
        raise SpecError(f"cannot be split into words: {error}", where=where) from None
    env: dict[str, str] = {}
    given: dict[str, str] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        (env if key.isupper() else given)[key] = value
    args, valued, following = list[str](), _valued(definition), iter(flags)
    for word in following:
        flag, equals, value = word.partition("=")
        if key := valued.get(flag, ""):
            given[key] = value if equals else next(following, "")
        else:
            args.append(word)
    for before, word in pairwise((*program, *flags)):
        key, equals, _ = word.partition("=")
        if equals and key in definition.value_kinds and not before.startswith("-"):  # else a flag's value
            hint = "variables and engine values come first, then a program, then flags"
            raise SpecError(f"'{word}' stands after a program or a flag", where=where, hint=hint)
    if not (settings or program or flags):
        raise SpecError("changes nothing", where=where)
    variant = Variant(
        description=words,
        program=tuple(program),
        args=tuple(args),
        values=_typed(definition, given, where),
        env=env,
    )
    return replace(definition, variants={**definition.variants, name: variant})


def _valued(definition: Backend) -> dict[str, str]:
    """Keys of [engine.values] by the flag that they are the whole value of."""
    return {
        flag: key[1]
        for table in definition.tables
        for flag, text in pairwise(table.args)
        if (key := PLACEHOLDER.fullmatch(text)) and key[1] in definition.value_kinds
    }


def _typed(definition: Backend, given: Mapping[str, str], where: str) -> dict[str, Value]:
    kinds, values = definition.value_kinds, dict[str, Value]()
    for key, text in given.items():
        if key not in kinds:
            raise SpecError(
                f"backend '{definition.name}' has no value '{key}'", where=where, hint=nearest(key, kinds)
            )
        try:
            values[key] = kinds[key](text)
        except ValueError:
            what = "a whole number" if kinds[key] is int else "a number"
            raise SpecError(f"{key} is {what}, not '{text}'", where=where) from None
    return values
