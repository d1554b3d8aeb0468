"""All of a nightly suite that can be known to be wrong before its first run, with file, entry and key."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields

from harness.errors import BenchError, SetupError, SpecError
from harness.nightly import Suite
from harness.nightly.suite import Entry
from harness.run.setup.prepare import Prepared

_FLAG = re.compile(r"--(?P<name>[a-z][a-z-]+)")
_KEYS = {field.name for field in fields(Entry)}


def check_entries(
    suite: Suite, path: str, extra: Sequence[str] = ()
) -> Iterator[Prepared | BenchError | None]:
    """Yields, for each [[run]] in order, what it would measure, or why it cannot; None for one of files.

    `extra`: flags of every run.
    """
    from harness.cli.commands.run import Options, checked
    from harness.cli.flags.parsers import command_parser

    for number, entry in enumerate(suite.run):
        if entry.files:
            yield None
            continue
        flags = [*entry.flags(), *extra]
        try:
            parsed = command_parser("run").parse_args(flags)
            yield checked(Options.from_parsed(parsed, ("bench", "run", *flags)))
        except BenchError as error:
            yield _located(error, entry, f"{path}:run[{number}]")


def _located(error: BenchError, entry: Entry, where: str) -> BenchError:
    """The error at the key of the suite instead of at the flag."""
    key = _key(error, entry)
    given = error.where or ""
    flag = _FLAG.match(given)
    about = given[flag.end() :].strip() if flag else given
    what = f"{about}: {error.what}" if about else error.what
    kind = SetupError if isinstance(error, SetupError) else SpecError
    return kind(what, where=f"{where}.{key}" if key else where, hint=error.hint)


def _key(error: BenchError, entry: Entry) -> str:
    """The key whose flag the error names, or whose value it quotes; "" if it does neither."""
    text = f"{error.where or ''} {error.what}"
    if (error.where or "").endswith(", as given") or _is_set(error.where or "", entry):
        return "set"
    named = (flag["name"].replace("-", "_") for flag in _FLAG.finditer(text))
    if key := next((name for name in named if name in _KEYS), ""):
        return key
    return next((key for key in sorted(_KEYS) if _is_quoted(getattr(entry, key), text)), "")


def _is_set(where: str, entry: Entry) -> bool:
    """Whether `set` gives the scenario what the error is about: its key, a part of it, or its value."""
    pairs = (item.partition("=") for item in entry.set)
    return any(f"{where}.".startswith(f"{key}.") or where == value for key, _, value in pairs)


def _is_quoted(value: object, text: str) -> bool:
    values = value if isinstance(value, tuple) else (value,)
    return any(f"'{given}'" in text for given in values if given)
