"""Packages for another machine: resolved for its Python, less what it has, locked with hashes."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from harness.engines.provide.install import requires
from harness.engines.provide.pip import Pip
from harness.errors import SetupError, SpecError, reason
from harness.kit.target import Target

Has = Mapping[str, str]  # distributions of the machine, with their versions
_NOT_COUNTED = ("Package", "pip")  # a heading of `pip list`; the kit brings its own pip
_TRIES = 6  # each takes one more distribution along that the machine has too old


def read_has(file: Path) -> dict[str, str]:
    """Versions in `pip list`, `pip freeze` or `pip list --format json` of that machine; "" if not given.
    Raises SpecError."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {reason(error)}", where=f"--have {file}") from None
    try:
        entries = [(entry["name"], entry["version"]) for entry in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        entries = re.findall(r"^([A-Za-z0-9][\w.-]*)(?:(?:==|[ \t]+)(\d\S*).*)?$", text, re.MULTILINE)
    if not entries:
        raise SpecError(
            "lists no package", where=f"--have {file}", hint="write it there with `pip list > FILE`"
        )
    return {canonicalize_name(name): version for name, version in entries if name not in _NOT_COUNTED}


def locked(wanted: Iterable[str], has: Has, target: Target, pip: Pip, wheels: Path, room: Path) -> str:
    """A requirements file of what is wanted and not there; its files are put into `wheels`."""
    lines, kept = [_of_machine(line, has) for line in wanted], dict(has)
    for line in lines:
        need = Requirement(line)
        name: str = canonicalize_name(need.name)
        if name in kept and (need.extras or not _fits(need.specifier, kept[name])):
            del kept[name]
    for _ in range(_TRIES):
        text = _resolved(lines, kept, target, pip, room)
        text = _without(text, has)
        _download(text, target, pip, wheels, room)
        old = _too_old(text, kept, target, wheels)
        if not old:
            return text
        for name in old:
            del kept[name]
    raise SetupError(
        f"the packages of --have contradict what is to be installed: {', '.join(old)}", where="kit"
    )


def _of_machine(line: str, has: Has) -> str:
    """Pins a requirement with extras to the version that the machine has."""
    need = Requirement(line)
    version = has.get(canonicalize_name(need.name))
    if not need.extras or not version:
        return line
    return f"{need.name}[{','.join(sorted(need.extras))}]=={Version(version).public}"


def _resolved(lines: list[str], kept: Has, target: Target, pip: Pip, room: Path) -> str:
    asked, there, output = room / "in.txt", room / "there.txt", room / "lock.txt"
    asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there.write_text("\n".join(kept) + "\n", encoding="utf-8")
    pip.compile_uv(
        f"resolving for {target.name}",
        *(str(asked), *target.for_uv, "--only-binary", ":all:", "--excludes", str(there)),
        *("--generate-hashes", "--no-header", "--no-annotate", "--output-file", str(output), "--upgrade"),
    )
    return output.read_text(encoding="utf-8")


def _entries(text: str) -> list[tuple[str, str, str]]:
    """Name, version and the lines of each."""
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    found = [(re.match(r"([\w.-]+)==([^\s;]+)", part), part) for part in parts]
    return [(canonicalize_name(head[1]), head[2], part) for head, part in found if head]


def _without(text: str, has: Has) -> str:
    """Less what the machine has in the very version."""
    return "".join(
        part
        for name, version, part in _entries(text)
        if not has.get(name) or Version(has[name]).public != version
    )


def _download(text: str, target: Target, pip: Pip, wheels: Path, room: Path) -> None:
    lock = room / "lock.txt"
    lock.write_text(text, encoding="utf-8")
    flags = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", str(wheels))
    pip.run("downloading its packages", "download", *flags, *target.for_pip, "--requirement", str(lock))


def _too_old(text: str, kept: Has, target: Target, wheels: Path) -> set[str]:
    """Packages of the machine's own that a package of ours does not accept."""
    ours = {name for name, _, _ in _entries(text)}
    number = ".".join(map(str, target.python))
    environment = {
        **{key: str(value) for key, value in default_environment().items()},
        "python_version": number,
        "python_full_version": f"{number}.0",
        "platform_machine": target.cpu,
    }
    found: set[str] = set()
    for file in wheels.glob("*.whl"):
        if parse_wheel_filename(file.name)[0] not in ours:
            continue
        for line in requires(file):
            need = Requirement(line)
            name = canonicalize_name(need.name)
            asked = need.marker is None or need.marker.evaluate({**environment, "extra": ""})
            if asked and name in kept and not _fits(need.specifier, kept[name]):
                found.add(name)
    return found


def _fits(wanted: SpecifierSet, version: str) -> bool:
    try:
        return not version or wanted.contains(Version(version).public, prereleases=True)
    except InvalidVersion:
        return False
