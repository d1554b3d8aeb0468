"""What differs between the conditions of two measurements, from their manifests, and whether it decides."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from harness.paths import SCRATCH_PREFIX

Json = Mapping[str, Any]
NOT_GIVEN = "not given"

# Of a start or a shell, not of the engine.
_INCIDENTAL = {"--port", "--host", "PATH", "PWD", "OLDPWD", "HOME", "SHLVL", "TMPDIR", "BENCH_CACHE", "_"}
_SCRATCH = re.compile(rf"[^\s=]*/{SCRATCH_PREFIX}\w+")


@dataclass(frozen=True, slots=True)
class Difference:
    """`matters`: a verdict would be about this and not about what the two have in common."""

    what: str
    baseline: str
    new: str
    matters: bool

    @property
    def text(self) -> str:
        return f"{self.what}: {self.baseline} | {self.new}"


@dataclass(frozen=True, slots=True)
class Side:
    """One backend of one run."""

    manifest: Json
    label: str

    @property
    def backend(self) -> Json:
        found: Json = (self.manifest.get("backends") or {}).get(self.label) or {}
        return found


def differences(baseline: Side, new: Side) -> list[Difference]:
    """Of facts that both know: older versions kept fewer."""
    return [*_facts(baseline, new), *_settings(baseline, new)]


def _facts(baseline: Side, new: Side) -> Iterator[Difference]:
    same_backend = baseline.label == new.label
    for what, value, matters in _FACTS:
        one, two = value(baseline), value(new)
        if one is not None and two is not None and one != two:
            # Other weights are another question about one engine, and part of the question about two.
            decides = same_backend if what == "weights" else matters
            yield Difference(what, _words(one), _words(two), decides)


def _at(*path: str) -> Callable[[Side], Any]:
    return lambda side: _walk(side.manifest, path)


def _of_backend(*path: str) -> Callable[[Side], Any]:
    return lambda side: _walk(side.backend, path)


def _walk(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _server_version(side: Side) -> Any:
    return _walk(side.backend, ("engine", "package_version")) or _walk(
        side.backend, ("engine", "server_version")
    )


# What, where it stands, whether it decides.
_FACTS: tuple[tuple[str, Callable[[Side], Any], bool], ...] = (
    ("model", _at("model", "name"), True),
    ("weights", _of_backend("track"), True),
    ("prefix cache at the start", _at("scenario", "cache", "state"), True),
    ("GPUs", _at("host", "gpus"), True),
    ("CPU", _at("host", "cpu"), True),
    ("usable cores", _at("host", "cpus_usable"), True),
    ("machine", _at("host", "hostname"), False),
    ("kernel", _at("host", "kernel"), False),
    ("GPU driver", _at("host", "gpu_driver"), False),
    ("CPU governor", _at("host", "cpu_governor"), False),
    ("backend", _of_backend("backend"), False),
    ("variant", _of_backend("variant"), False),
    ("engine version", _server_version, False),
    ("started as", _of_backend("launch", "mode"), False),
    ("image", _of_backend("engine", "container", "image", "name"), False),
    ("image digest", _of_backend("engine", "container", "image", "digest"), False),
    ("weights file", _of_backend("engine", "weights_sha256"), False),
    ("harness version", _at("packages", "llm-servebench"), False),
    ("seed", _at("seeds", "run"), False),
    ("scenario", _at("scenario", "scenario", "name"), True),
)


def _words(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _settings(baseline: Side, new: Side) -> Iterator[Difference]:
    """Of one engine, key by key; two engines have nothing to tell apart here."""
    if baseline.backend.get("backend") != new.backend.get("backend"):
        return
    for kind, read in (("value", _values), ("flag", _options), ("variable", _environment)):
        one, two = read(baseline), read(new)
        if not one or not two:
            continue
        for name in dict.fromkeys((*one, *two)):
            before, after = one.get(name, NOT_GIVEN), two.get(name, NOT_GIVEN)
            if before != after and name not in _INCIDENTAL:
                what = f"{kind} {name}" if name else "command"
                yield Difference(what, before or "given", after or "given", False)


def _values(side: Side) -> dict[str, str]:
    return {key: str(value) for key, value in (_walk(side.backend, ("engine", "values")) or {}).items()}


def _environment(side: Side) -> dict[str, str]:
    variables = _walk(side.backend, ("engine", "env")) or {}
    return {key: _SCRATCH.sub("{scratch}", str(value)) for key, value in variables.items()}


def _options(side: Side) -> dict[str, str]:
    """`{"--max-num-seqs": "8", "--enforce-eager": ""}` of the engine's command line; "" what is no option.

    Paths by their last part: where engines and models are kept is not what they are.
    """
    found: dict[str, str] = {}
    name = ""
    for word in _walk(side.backend, ("engine", "command")) or ():
        text = _SCRATCH.sub("{scratch}", str(word))
        text = PurePosixPath(text).name if "/" in text else text
        if text.startswith("-") and not text[1:2].isdigit():
            name, equals, value = text.partition("=")
            found[name], name = value, "" if equals else name
        else:
            found[name] = f"{found[name]} {text}".strip() if name in found else text
            name = ""
    return found
