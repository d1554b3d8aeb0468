"""The conditions of one backend in a manifest, by the keys of the table."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from harness.conditions.keys import Key
from harness.conditions.table import TABLE
from harness.model import BackendEntry, EngineFound, Manifest, known
from harness.model.json_path import value_at

_UNSET = ("auto", "None", "", "given")  # the engine chooses: what it chose is not known
# The folder of one start, as harness.host.scratch names it; without `scratch` before 0.2.
_SCRATCH = re.compile(r"(?:[^\s=\"']*/)?bench-(?:scratch-)?engine-\w+")
_KINDS = ("info", "flag", "variable", "value")


@dataclass(frozen=True, slots=True)
class Settings:
    """`raw`: everything that was set, by kind and name, in the words of the engine."""

    known: dict[str, str] = field(default_factory=dict)  # by code of the table
    raw: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.raw}


def settings(manifest: Manifest, label: str, found: EngineFound | None = None) -> Settings:
    """Reads the settings of a run folder of any version: what it does not say is absent.

    `found`: the engine of one cell. None: as it was at its last start.
    """
    entry = manifest.backends.get(label) or BackendEntry()
    engine, backend = known(entry.engine) or {}, known(entry.backend) or ""
    stated = {key.code: value for key in TABLE if (value := _stated(key, manifest, entry)) is not None}
    if found is not None:
        engine = {**engine, "info": found.info}
        own = {"image-digest": found.image_digest, "weights-file": found.weights_sha256}
        stated |= {code: value for code, value in own.items() if value is not None}
    raw = dict(_raw(engine))
    of_start = _by_code(raw, backend) | stated
    if "gpus-visible" in of_start and manifest.pairing != "starts":
        # Of engines that are up together each one gets, in each start, the GPUs that another one had.
        of_start["gpus-visible"] = "equal parts, swapped between starts"
    return Settings(of_start, raw)


def of_engine(engine: Mapping[str, Any], backend: str) -> dict[str, str]:
    """Settings by code of the table, from the facts about one engine. `backend`: name of its definition."""
    return _by_code(dict(_raw(engine)), backend)


def of_values(values: Mapping[str, object] | None) -> dict[str, str]:
    """Keys known from the values of a definition alone, which is what older cells kept."""
    return _by_code({("value", name): words_of(value) for name, value in (values or {}).items()}, "")


@cache
def classified(kind: str, name: str, backend: str) -> tuple[Key, str] | None:
    """The row of a flag, variable, value or key of the info endpoint, and what it stands for as a flag
    without an argument. None: nobody classified it.
    """
    for key in TABLE:
        names = {"info": key.info, "flag": key.flags, "variable": key.variables, "value": key.values}[kind]
        for named in names:
            scope, slash, rest = named.rpartition("/")
            pattern, _, means = rest.partition("=")
            if (not slash or scope == backend) and fnmatchcase(name, pattern):
                return key, means
    return None


def in_words(row: tuple[Key, str], source: str, value: str) -> str:
    """What a source says, as other sources of its row say it."""
    key, means = row
    return means or key.amount(source, value)


def _by_code(raw: Mapping[tuple[str, str], str], backend: str) -> dict[str, str]:
    known: dict[str, str] = {}
    for kind in _KINDS:
        for name, value in ((name, value) for (source, name), value in raw.items() if source == kind):
            key = classified(kind, name, backend)
            if key and not key[0].several and (word := in_words(key, name, value)) not in _UNSET:
                known.setdefault(key[0].code, word)
    return known


def _stated(key: Key, manifest: Manifest, entry: BackendEntry) -> str | None:
    for path in key.manifest:
        value = value_at(entry, path[1:]) if path.startswith(".") else value_at(manifest, path)
        if value is not None:
            return words_of(value)
    return key.null if manifest.host is not None else None


def words_of(value: Any) -> str:
    """Writes a value as a person does: `on`, `off`, `4, 8`; an empty list is `none`."""
    if str(value).lower() in ("true", "false"):
        return "on" if str(value).lower() == "true" else "off"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value).removeprefix("torch.")


# Of an engine of any kind, as a bench of any version wrote it.
def _raw(engine: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for kind, found in (("info", engine.get("info")), ("value", engine.get("values"))):
        yield from (((kind, str(name)), words_of(value)) for name, value in (found or {}).items())
    command = engine.get("command") or value_at(engine, "container.command") or ()
    yield from ((("flag", name), value) for name, value in _options(command).items())
    for name, value in (engine.get("env") or {}).items():
        yield ("variable", str(name)), _SCRATCH.sub("{scratch}", str(value))


def _options(command: Sequence[Any]) -> dict[str, str]:
    """`{"--max-num-seqs": "8", "--enforce-eager": "given"}` of a command line; "" has what is not an option.

    Paths by their last part: where engines and models are kept is not what they are.
    """
    options: dict[str, str] = {}
    name = ""
    for word in command:
        text = str(word)
        if text.startswith("-") and not text[1:2].isdigit():
            name, equals, value = text.partition("=")
            options[name], name = _without_folders(value) if equals else "given", "" if equals else name
        elif options.get(name) == "given":
            options[name], name = _without_folders(text), ""
        else:
            options[""], name = f"{options.get('', '')} {_without_folders(text)}".strip(), ""
    return options


def _without_folders(text: str) -> str:
    """The last part of a path; JSON with such parts, where a name such as `org/model` stays whole."""
    is_json = text.startswith(("{", "["))
    short = re.sub('"/[^"]*/', '"', text) if is_json else text.rstrip("/").rpartition("/")[2]
    return _SCRATCH.sub("{scratch}", short)
